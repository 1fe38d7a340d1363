"""Runs that an earlier version recorded can be shown, resumed and forked: their recipes mean what they meant."""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from stored_runs import RUNS, restored

import mulligan
from mulligan import Episode, ScriptedModel
from mulligan.app.config import load
from mulligan.app.recipe import Recipe
from mulligan.bench.harness.running import resume_benchmark
from mulligan.bench.report.about import command_of
from mulligan.cli.main import main
from mulligan.core.errors import InvalidInput, JournalDiverged, UnknownName
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Spec
from mulligan.store import open_store

BAD, GOOD = "def add(a, b):\n    return a - b", "def add(a, b):\n    return a + b"


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    restored(tmp_path, Path(os.environ["MULLIGAN_HOME"]))


class Player(ScriptedModel):
    """Gives these answers in order, one lesson whenever it is asked for one, and none for the bank."""

    def __init__(self, lesson: str, *answers: str) -> None:
        left = list(answers)

        def answer(question: Question, sampling: Sampling) -> Any:
            if question.schema is not None:  # the bank learns
                return {"why": "w", "lessons": [], "nothing_because": "It is known."}
            text = question.messages[-1].text
            return lesson if text.endswith(("Lesson:", "as asked.")) else left.pop(0)

        super().__init__(answer)


async def resumed(run: str, lesson: str, *answers: str) -> Episode:
    """The run, resumed. Where a prompt that ships was edited since, as a fork, which takes it as it is now."""
    with suppress(JournalDiverged):
        return await mulligan.resume(RUNS[run], model=Player(lesson, *answers))
    return await mulligan.resume(RUNS[run], model=Player(lesson, *answers), fork=True)


PROGRAMMING = ("programming", "add(1, 2) is 3: return a + b.", GOOD)
REASONING = ("reasoning", "Six times seven is more than 41.", "It is 42.", "Finish[42]")
AGENT = ("agent", "", "The sea, the sea!", "DONE")


@pytest.mark.parametrize(
    ("run", "outputs"),
    [
        (PROGRAMMING, [BAD, GOOD]),
        (REASONING, ["41", "42"]),
        (AGENT, ["The sea is wet.", "The sea, the sea!"]),
        (("restarts", "", "water"), ["water"]),
    ],
)
async def test_a_run_goes_on_where_it_stopped(run: tuple[str, ...], outputs: list[str]) -> None:
    episode = await resumed(*run)
    assert episode.solved
    assert [trial.attempt.output for trial in episode.trials] == outputs


async def test_a_run_of_a_strategy_that_was_removed_says_how_to_go_on() -> None:
    with pytest.raises(UnknownName, match=r"adaptive.*was removed.*thompson_strategy"):
        await resumed("adaptive", "Say water, not tea.", "water")


async def test_a_recorded_recipe_keeps_its_options() -> None:
    programming = (await resumed(*PROGRAMMING)).head.settings
    assert programming["actor"]["settings"]["temperatures"] == [0.0, 0.8]
    assert programming["strategy"] == {"name": "evidence_and_reflexion", "settings": {"window": 2}}
    assert (programming["limits"]["trials"], programming["seed"]) == (3, 7)
    reasoning = (await resumed(*REASONING)).head.settings
    assert (reasoning["bank"], reasoning["learns"], reasoning["memory"]) == ("", True, {"forms": "lessons"})
    assert reasoning["limits"]["tokens"] == 90000
    assert reasoning["limits"]["identical"] is None
    agent = (await resumed(*AGENT)).head.settings
    assert (agent["limits"]["trials"], agent["limits"]["seconds"], agent["limits"]["tokens"]) == (3, 600, 5000)
    assert agent["agent"]["model"] == "scripted"


async def test_a_group_goes_on_with_the_trajectory_that_was_cut_off() -> None:
    episode = await mulligan.resume(RUNS["scale"], model=ScriptedModel(["water"]))
    assert (episode.id, episode.solved) == (f"{RUNS['scale']}.2", True)


async def test_a_run_that_is_over_is_forked_with_other_options() -> None:
    with pytest.raises(InvalidInput, match="nothing to resume"):
        await resumed("over", "", "yes")
    fork = await mulligan.resume(
        RUNS["programming"],
        fork=True,
        model=ScriptedModel([GOOD]),
        strategy="evidence",
        limits={"trials": 2},
        settings={"actor": {"temperatures": [0.3]}},
    )
    assert (fork.solved, fork.head.settings["strategy"]["name"], len(fork.trials)) == (True, "evidence", 2)


@pytest.mark.parametrize("run", [name for name in RUNS if name != "bench"])
def test_a_run_is_shown(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["runs", "show", RUNS[run], "--json"])
    assert all(episode["run"] == RUNS[run] for episode in json.loads(capsys.readouterr().out))


async def test_a_benchmark_run_is_resumed() -> None:
    finished = await resume_benchmark(RUNS["bench"], model=Player("Multiply 2 by 4: 8.", "8"))
    assert [result.status for result in finished.results] == ["solved", "solved"]
    assert finished.run.options["limits"] == {"seconds": 60.0}
    assert "--max-seconds 60" in command_of(finished.run)


@pytest.mark.slow
async def test_the_options_of_a_run_are_what_they_were() -> None:
    """Every setting that was recorded is recorded again, under its name of then."""
    async with open_store(load().store) as store:
        before = (await store.load(f"{RUNS['programming']}.1")).head.settings
    after = (await resumed(*PROGRAMMING)).head.settings
    assert set(before) <= set(after)
    assert {name: after[name] for name in before if name not in ("limits",)} == {
        name: before[name] for name in before if name not in ("limits",)
    }


def test_the_earlier_name_of_learning_by_rule_alone_is_understood() -> None:
    roles = Recipe(Spec("a"), Spec("e"), Spec("r"), Spec("s")).to_json()
    before = {**cast(dict[str, Any], roles), "memory": {"extraction": "none", "top_k": 2}}
    recipe = Recipe.from_json(before)
    assert recipe.memory == {"top_k": 2, "learn_share": 0}
    assert Recipe.completed(before)["memory"] == recipe.memory, "a resume sees no change"
