"""ALFWorld as a benchmark: its cases, a curve over trials, going on in the middle of a game, the reference's files."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from households import HOUSES, House, needs_alfworld

from mulligan.bench.alfworld import _env_results as env_results
from mulligan.bench.alfworld._env_results import EnvResult
from mulligan.bench.alfworld.alfworld import Alfworld
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.extras import install_command
from mulligan.core.questions import Question, Sampling
from mulligan.models.scripted import ScriptedModel
from mulligan.store.sqlite import SqliteStore

NEEDED = {"put": 0, "examine": 0, "puttwo": 2}
"""Plans without which a game of this kind is not won by `Household`; of the other kinds, one."""


def games(root: Path, houses: Sequence[House] = HOUSES) -> Path:
    for number, house in enumerate(houses):
        house.write(root, f"trial_{number:02}")
    return root


class Household:
    """Plays by what stands in the prompt alone. It leaves out what plans have not told it yet: its last two
    actions, and looks about, twice, instead."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.model = ScriptedModel(self._answer)
        self.acted, self.reflected = list[str](), list[str]()

    def _answer(self, question: Question, sampling: Sampling) -> str:
        text = question.messages[-1].text
        if text.endswith("New plan:"):
            self.reflected.append(text)
            return f"Leave out no step. This is plan {text.count('- Leave out') + 1}."
        assert text.endswith("\n>")
        before, _, trajectory = text.rpartition("Here is the task:\n")
        house = next(house for house in HOUSES if f"Your task is to: {house.task}." in trajectory)
        if self.fails and self.fails in trajectory:
            raise ModelError("the provider is away")
        self.acted.append(text)
        learned = sum(line.startswith("Trial ") for line in before.splitlines())
        actions = [action for action in house.actions if not action.startswith("think:")]
        if learned < NEEDED.get(house.kind, 1):
            actions = [*actions[:-2], "look", "look"]
        return f"> {actions[trajectory.count(chr(10) + '> ')]}"


async def played(model: ScriptedModel, root: Path, **options: Any) -> tuple[Finished, SqliteStore]:
    store = SqliteStore(root / "m.db")
    finished = await run_benchmark("alfworld", model=model, store=store, data=str(root / "data"), **options)
    return finished, store


def solved_by(finished: Finished, trials: int) -> list[int]:
    """How many cases were solved after trial 1, 2, …"""
    scores = [result.episodes[-1].scores for result in finished.results]
    return [sum(1.0 in score[:n] for score in scores) for n in range(1, trials + 1)]


@pytest.mark.slow
@needs_alfworld
async def test_what_is_reflected_mends_the_next_trial(tmp_path: Path) -> None:
    games(tmp_path / "data")
    player = Household()
    finished, store = await played(player.model, tmp_path, trials=4, parallel=2)
    await store.close()
    assert solved_by(finished, 4) == [4, 10, 12, 12]
    assert len(player.reflected) == 8 + 2
    for text in player.reflected:
        assert "Observation 1: You are in the middle of a room." in text
        assert "the same action 2 times in a row: 'look'" in text
    last = next(text for text in player.acted if "\nTrial 2: " in text)
    plans = "Trial 1: Leave out no step. This is plan 1.\nTrial 2: Leave out no step. This is plan 2."
    assert f"oldest first:\n{plans}\n\nHere is the task:\n" in last
    assert last.count("Your task is to:") == 3  # two examples of the kind, and the task


@pytest.mark.slow
@needs_alfworld
async def test_without_memory_nothing_is_mended(tmp_path: Path) -> None:
    games(tmp_path / "data")
    player = Household()
    finished, store = await played(player.model, tmp_path, trials=3, method="resample")
    await store.close()
    assert solved_by(finished, 3) == [4, 4, 4]
    assert player.reflected == []


@pytest.mark.slow
@needs_alfworld
async def test_a_run_goes_on_in_the_middle_of_a_game(tmp_path: Path) -> None:
    games(tmp_path / "data", HOUSES[2:3])
    player = Household(fails="You open the chest 1")  # in the second trial: the first ends before that
    finished, store = await played(player.model, tmp_path, trials=3)
    (broken,) = finished.results
    assert (broken.status, broken.episodes[0].scores[0]) == ("error", 0.0)
    before, reflected = list(player.acted), len(player.reflected)
    assert reflected == 1
    player.fails = ""
    finished = await resume_benchmark(finished.run.id, model=player.model, store=store)
    episode = await store.load(finished.results[0].episodes[-1].episode)
    await store.close()
    assert solved_by(finished, 3) == [0, 1, 1]
    assert len(player.reflected) == reflected
    assert player.acted[: len(before)] == before
    assert len(player.acted) == len(set(player.acted))  # no question was asked twice
    observed = [step.observation for step in episode.trials[1].attempt.steps]
    assert observed[-1] == "You move the fork 1 to the chest 1."


@pytest.mark.slow
@needs_alfworld
async def test_the_files_of_the_reference_are_written_and_resumed_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, out = tmp_path / "home", tmp_path / "out"
    monkeypatch.setenv("MULLIGAN_HOME", str(home))
    games(tmp_path / "data")
    finished = await run_benchmark("alfworld", model=Household().model, data=str(tmp_path / "data"), trials=2)
    command = [sys.executable, "-m", "mulligan", "bench", "export", finished.run.id, "--env-results", str(out)]
    exported = await anyio.run_process(command)
    assert exported.stdout.decode().endswith("env_results_trial_1.json: 10 of 12 solved\n")
    first, second = (json.loads((out / f"env_results_trial_{n}.json").read_text()) for n in (0, 1))
    assert [row["name"] for row in first] == [f"env_{n}" for n in range(12)]
    assert set(first[0]) == {"name", "memory", "is_success", "skip"}
    assert [sum(row["is_success"] for row in rows) for rows in (first, second)] == [4, 10]
    assert {len(row["memory"]) for row in first} == {0, 1}
    unsolved = [row["name"] for row in second if not row["is_success"]]
    second[int(unsolved[0][4:])]["skip"] = True
    for row in second:
        row["memory"] *= 2  # as if the plans of two trials were known
    (out / "later.json").write_text(json.dumps(second))
    player = Household()
    settings = {"benchmark": {"results": str(out / "later.json")}}
    again, store = await played(player.model, tmp_path, settings=settings)
    await store.close()
    assert [(result.case[:12], result.status) for result in again.results] == [("pick_two_obj", "solved")]
    assert "Trial 2: Leave out no step" in player.acted[0]
    assert player.reflected == []


def _bare(root: Path, folder: str, **game: object) -> Path:
    """A game that can be loaded as a case, and not played."""
    file = root / folder / "trial_1" / "game.tw-pddl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"grammar": '"rhs": "Your task is to: sit."', "solvable": True, **game}))
    return file


async def test_without_the_extra_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mulligan.core.extras.find_spec", dict[str, str]().get)
    _bare(tmp_path / "data", "look_at_obj-A")
    model, store = ScriptedModel([]), SqliteStore(tmp_path / "m.db")
    with pytest.raises(InvalidInput, match=re.escape(install_command("alfworld"))):
        await run_benchmark("alfworld", model=model, store=store, data=str(tmp_path / "data"))
    assert not model.questions
    assert not await store.benches.runs()
    await store.close()


def test_cases(tmp_path: Path) -> None:
    names = ["pick_and_place_simple-A-None-B-1", "look_at_obj_in_light-A-None-B-2", "pick_two_obj_and_place-A-None-B-3"]
    files = [_bare(tmp_path, name) for name in names]
    files += [_bare(tmp_path, "pick_and_place_with_movable_recep-A-B-C-4")]
    files += [_bare(tmp_path, "pick_heat_then_place_in_recep-AppleSliced-None-B-5")]
    files += [_bare(tmp_path, "pick_cool_then_place_in_recep-A-None-B-6", solvable=False)]
    benchmark = Alfworld()
    cases = benchmark.load(files)
    assert [case.id for case in cases] == [f"{name}/trial_1" for name in names]
    assert cases[1].task.prompt == "Your task is to: sit."
    methods = benchmark.methods()
    assert next(iter(methods)) == "reflexion"
    kinds = [benchmark.play(case, methods["resample"]).actor.settings["kind"] for case in cases]
    assert kinds == ["put", "examine", "puttwo"]
    world = benchmark.play(cases[0], methods["resample"]).environment
    assert world is not None
    assert world.settings == {"game": str(files[0])}


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("elsewhere", "{}"),
        ("look_at_obj-A", "{}"),
        ("look_at_obj-A", "no"),
        ("look_at_obj-A", '{"solvable": true, "grammar": "Your task is to: sit."}'),
        ("look_at_obj-A", '{"solvable": true, "grammar": 7}'),
    ],
)
def test_a_file_that_is_not_a_game_is_named(folder: str, text: str, tmp_path: Path) -> None:
    file = _bare(tmp_path, folder)
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"trial_1/game\.tw-pddl"):
        Alfworld().load([file])


def test_solved_and_skipped_games_are_not_played(tmp_path: Path) -> None:
    files = [_bare(tmp_path, f"pick_and_place_simple-{letter}") for letter in "ABCD"]
    rows = [EnvResult("env_0", ("a",), is_success=True), EnvResult("env_1", ("b", "c")), EnvResult("env_2", skip=True)]
    results = tmp_path / "env_results_trial_3.json"
    results.write_text(env_results.rendered(rows))
    benchmark = Alfworld(results=str(results))
    cases = benchmark.load(files)
    assert [case.target for case in cases] == [{"env": "env_1", "memory": ["b", "c"]}, {"env": "env_3", "memory": []}]
    method = benchmark.play(cases[0], benchmark.methods()["reflexion"])
    assert method.strategy.settings["earlier"] == method.reflector.settings["earlier"] == ["b", "c"]
    assert "earlier" not in benchmark.play(cases[0], benchmark.methods()["resample"]).reflector.settings


def test_results_of_other_data_are_refused(tmp_path: Path) -> None:
    results = tmp_path / "r.json"
    results.write_text(env_results.rendered([EnvResult("env_7")]))
    with pytest.raises(
        InvalidInput, match="belongs to different data: it contains a result for 'env_7', but this data has 1 game"
    ):
        Alfworld(results=str(results)).load([_bare(tmp_path, "pick_and_place_simple-A")])
    with pytest.raises(InvalidInput, match="cannot be read"):
        Alfworld(results=str(tmp_path / "none.json")).load([])
