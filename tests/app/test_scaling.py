"""Several trajectories of one task: in parallel with lessons from their contrast, or checked and refined one by one."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest
from each_row import each_row

import mulligan
from mulligan.app.config import load
from mulligan.app.memory import open_bank
from mulligan.bench.harness.running import run_benchmark
from mulligan.bench.harness.stream import read_arm, shipped_arms
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode, Feedback
from mulligan.core.scaling import MAX_PARALLEL, Scale
from mulligan.models.scripted import ScriptedModel
from mulligan.store import open_store
from support.forked import run_forked

MORTAL = Path(__file__).parents[1] / "support" / "mortal_scale.py"


class Length:
    """The longer the output the better; "tea!" passes."""

    expects: Literal["text"] = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        output = episode.trials[-1].attempt.output
        return Feedback(output == "tea!", "", score=len(output) / 10, source="length")


def text_of(question: Question) -> str:
    return "\n".join(message.text for message in question.messages)


def properties_of(question: Question) -> dict[str, Any]:
    """Those of the schema of its answer; none of a free text."""
    schema: Any = question.schema
    return {} if schema is None else schema["properties"]


def number_of(sampling: Sampling) -> int:
    """The number of the trajectory that asks, by its seed."""
    return (sampling.seed or 0) // 1000 + 1


class Agents(ScriptedModel):
    """Trajectory n gives outputs[n - 1]; extractors give one lesson; a comparison names `best`.

    The first answer comes once `meet` questions are under way.
    """

    def __init__(self, *outputs: Any, best: Any = 1, meet: int = 1) -> None:
        self._outputs, self._best = outputs, best
        self._meet, self._met = meet, asyncio.Event()
        self.running = self.most = 0
        super().__init__(self._answer)

    def _answer(self, question: Question, sampling: Sampling) -> Any:
        properties = properties_of(question)
        if "best" in properties:
            return self._best if isinstance(self._best, Exception) else {"reasoning": "It is.", "best": self._best}
        if "lessons" in properties:
            lesson = {"title": "Say tea", "description": "When asked.", "content": "Answer with tea.", "steps": [1]}
            return {"why": "w", "lessons": [lesson], "nothing_because": ""}
        return self._outputs[number_of(sampling) - 1]

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.running >= self._meet:
                self._met.set()
            await asyncio.wait_for(self._met.wait(), 60)
            return await super().ask(question, sampling)
        finally:
            self.running -= 1

    def asked_for(self, name: str) -> list[str]:
        return [text_of(q) for q in self.questions if name in properties_of(q)]

    @property
    def acted(self) -> list[int]:
        return sorted(number_of(s) for q, s in zip(self.questions, self.samplings, strict=True) if q.schema is None)


async def solved(model: Agents, scale: str, **given: Any) -> Episode:
    options: dict[str, Any] = {"evaluator": Length(), "strategy": "none", "trials": 1, **given}
    if "bank" in options:
        options["settings"] = {"memory": {"learn_share": 1}}
    return await mulligan.solve("Name a drink.", model=model, scale=scale, **options)


async def test_the_best_of_several_is_returned_and_the_bank_learns_from_all_by_contrast() -> None:
    model = Agents("a", "tea!", "abc", "ab", "abcdefg", meet=MAX_PARALLEL)
    episode = await solved(model, "parallel:5", bank="drinker")
    assert episode.solved
    assert episode.id == f"{episode.run}.2"
    assert model.acted == [1, 2, 3, 4, 5]
    assert model.most == MAX_PARALLEL
    assert {s.temperature for q, s in zip(model.questions, model.samplings, strict=True) if q.schema is None} == {0.7}
    (asked,) = model.asked_for("lessons")
    assert all(output in asked for output in ("tea!", "abcdefg", "ab"))
    assert "You compare several records" in asked
    assert model.questions[-1].schema["properties"]["lessons"]["maxItems"] == 5
    async with open_store(load().store) as store:
        assert len(await store.list(run=episode.run)) == 5
    async with open_bank("drinker") as bank:
        assert [lesson.title for lesson in await bank.list()] == ["Say tea"]


async def test_without_contrast_the_bank_learns_from_each_alone() -> None:
    model = Agents("a", "tea!", "abc")
    await solved(model, "vanilla:3", bank="drinker")
    asked = model.asked_for("lessons")
    assert len(asked) == 3
    assert ["tea!" in text for text in asked] == [False, True, False]


async def test_no_trajectory_sees_another_or_what_was_learned_meanwhile() -> None:
    model = Agents("first-output", "second-output")
    await solved(model, "parallel:2", bank="drinker")
    acts = [text_of(q) for q in model.questions if q.schema is None]
    assert not any("-output" in text or "Say tea" in text for text in acts)


@pytest.mark.parametrize(("best", "chosen"), [(3, 3), (1, 1), (ModelError("down"), 1)])
async def test_of_equal_attempts_a_judge_names_the_best_once(best: Any, chosen: int) -> None:
    model = Agents("aaa", "b", "ccc", "ddd", best=2 if chosen == 3 else best)
    episode = await solved(model, "parallel:4:judge")
    assert episode.id.endswith(f".{chosen}")
    (asked,) = model.asked_for("best")[-1:]
    assert "Attempt 3:" in asked
    assert "Attempt 4:" not in asked, "the evaluator holds b to be worse, so it is not compared"
    if not isinstance(best, Exception):
        again = await mulligan.resume(episode.run, model=model, evaluator=Length())
        assert again.id == episode.id
        assert len(model.asked_for("best")) == 1, "the answer is in the record"


async def test_the_evaluator_alone_takes_the_first_of_equal_attempts() -> None:
    model = Agents("aaa", "bbb")
    assert (await solved(model, "parallel:2")).id.endswith(".1")
    assert not model.asked_for("best")


async def test_a_trajectory_that_broke_is_resumed_alone_and_then_the_bank_learns() -> None:
    model = Agents("a", ModelError("the provider is down"), "abc")
    episode = await solved(model, "parallel:3", bank="drinker")
    assert not model.asked_for("lessons"), "nothing is learned from a part of the group"
    better = Agents("x", "tea!", "y")
    whole = await mulligan.resume(episode.run, model=better, evaluator=Length())
    assert better.acted == [2]
    assert whole.id.endswith(".2")
    (asked,) = better.asked_for("lessons")
    assert "abc" in asked


async def test_attempts_are_checked_again_and_every_note_is_a_source_of_lessons() -> None:
    answers = iter(["draft", "NOTE ONE", "better", "NOTE TWO", "best"])

    def answer(question: Question, sampling: Sampling) -> Any:
        if question.schema is None:
            return next(answers)
        lesson = {"title": "Say tea", "description": "When asked.", "content": "Answer with tea.", "steps": [1]}
        return {"why": "w", "lessons": [lesson], "nothing_because": ""}

    model = ScriptedModel(answer)
    episode = await mulligan.solve(
        "Name a drink.",
        model=model,
        scale="sequential:3",
        evaluator=Length(),
        bank="drinker",
        settings={"memory": {"learn_share": 1}},
    )
    assert [trial.attempt.output for trial in episode.trials] == ["draft", "better", "best"]
    texts = [text_of(question) for question in model.questions]
    assert "look through all of it once more" in texts[1]
    assert "NOTE ONE" in texts[2]
    assert "draft" in texts[2]
    assert "check again" in texts[3]
    assert "NOTE ONE" in texts[3]
    assert "NOTE ONE" in texts[4]
    assert "NOTE TWO" in texts[4]
    assert "NOTE ONE" in texts[5], "the extractor sees every note"
    assert "NOTE TWO" in texts[5]


async def test_refining_ends_when_an_attempt_passes() -> None:
    model = ScriptedModel(["tea!"])
    episode = await mulligan.solve("Name a drink.", model=model, scale="sequential:3", evaluator=Length())
    assert len(episode.trials) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": "parallel"}, "A scale must be parallel:K"),
        ({"scale": "parallel:0"}, "from 1 to 64"),
        ({"scale": "parallel:65"}, "from 1 to 64"),
        ({"scale": "tree:3"}, "A scale must be parallel:K"),
        ({"scale": "sequential:3:judge"}, "only the evaluator judges"),
        ({"scale": "parallel:3", "restarts": 2}, "parallel:3 and restarts cannot be combined"),
        ({"scale": "sequential:3", "restarts": 2}, "sequential:3 and restarts cannot be combined"),
        ({"scale": "sequential:3", "trials": 2}, "sequential:3 already sets trials"),
        ({"scale": "sequential:3", "strategy": "none"}, "already sets strategy"),
        ({"scale": "sequential:3", "evaluator": "unjudged"}, "so it needs a judge"),
        ({"scale": "parallel:3", "workspace": "."}, "a workspace accepts only one: use sequential:3"),
    ],
)
async def test_what_does_not_go_together_is_refused_before_a_model_is_asked(given: Any, message: str) -> None:
    model = ScriptedModel(["tea"])
    options: dict[str, Any] = {"evaluator": Length(), "model": model, **given}
    with pytest.raises(InvalidInput, match=message):
        await mulligan.solve("Name a drink.", **options)
    assert not model.questions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 2, "scale": "parallel:3"}, "scale and samples both make several"),
        ({"restarts": 2, "scale": "parallel:3"}, "scale and restarts both make several"),
        ({"trials": 2, "scale": "sequential:3"}, "already sets trials"),
    ],
)
async def test_a_benchmark_refuses_the_same(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        await run_benchmark(str(drinks(tmp_path)), model=ScriptedModel(["tea"]), method="resample", **options)


AGENT = """---
name: drinker
description: Names a drink.
version: 1.0.0
pattern: oneshot
scale: parallel:3:judge
---
Name a drink.
"""


@pytest.mark.parametrize(("scale", "chosen"), [(None, 3), ("parallel:2", 1)])
async def test_an_agent_names_its_scale_and_the_caller_another(tmp_path: Path, scale: str | None, chosen: int) -> None:
    (tmp_path / "AGENT.md").write_text(AGENT)
    model = Agents("milk", "tea", "juice", best=3)
    episode = await mulligan.run(tmp_path, "Now.", model=model, scale=scale)
    assert episode.id.endswith(f".{chosen}")
    assert model.acted == ([1, 2, 3] if scale is None else [1, 2])


@each_row("name", sorted({*shipped_arms()} - {"langmem", "mem0"}))  # need packages: bench/test_memories.py
def test_each_shipped_arm_can_be_read(name: str) -> None:
    if name in ("langmem", "mem0") and find_spec(name) is None:
        with pytest.raises(InvalidInput, match="pip install"):
            read_arm(name, load())
        return
    arm = read_arm(name, load())
    assert (arm.memory is None) == name.startswith("none")
    assert (arm.scale is not None) == name.endswith(("x3", "x5", "-3"))


def test_an_arm_with_a_scale_that_is_none_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('scale = "parallel"\n')
    with pytest.raises(InvalidInput, match=r"mine\.toml: A scale must be"):
        read_arm(str(tmp_path / "mine.toml"), load())


def drinks(folder: Path) -> Path:
    file = folder / "drinks.toml"
    judges = 'evaluator = "unjudged"\nhidden = { answer = "tea" }'
    file.write_text(f'[[task]]\nid = "one"\nprompt = "Name a drink."\n{judges}\n')
    return file


async def test_a_search_takes_no_scale(tmp_path: Path) -> None:
    row = '{"task_id": "a/1", "prompt": "def one():\\n", "entry_point": "one", "test": "def check(f):\\n    assert f() == 1"}'
    (tmp_path / "mine.jsonl").write_text(row)
    given: dict[str, Any] = {"method": "reflexion-ucs", "scale": "parallel:3"}
    with pytest.raises(InvalidInput, match="this method searches a tree"):
        await run_benchmark(str(tmp_path / "mine.jsonl"), model=ScriptedModel(["x"]), **given)


@pytest.mark.parametrize(("best", "status"), [(2, "solved"), (3, "failed")])
async def test_in_a_benchmark_the_chosen_trajectory_is_scored_and_the_target_chooses_nothing(
    tmp_path: Path, best: int, status: str
) -> None:
    model = Agents("milk", "tea", "juice", best=best)
    options: dict[str, Any] = {"method": "resample", "trials": 1}
    finished = await run_benchmark(str(drinks(tmp_path)), model=model, scale="parallel:3:judge", **options)
    (result,) = finished.results
    assert len(result.episodes) == 3
    assert result.episodes[0].episode.endswith(f".1.{best}")
    assert result.status == status
    assert result.usage.calls == 4, "the comparison counts"
    assert model.acted == [1, 2, 3]


def test_a_scale_is_read_and_counts_its_episodes() -> None:
    assert Scale.parse("parallel:5:judge") == Scale("parallel", 5, judge=True)
    assert Scale.parse("sequential:3").siblings == 1
    assert Scale.parse("vanilla:3").siblings == 3


@pytest.mark.slow
def test_killed_in_the_middle_of_a_group_no_trajectory_is_repeated(tmp_path: Path) -> None:
    """Five trajectories of two trials; the process is killed at each of its calls in turn, and resumed."""
    for at in range(1, 14):
        home, log = tmp_path / str(at), tmp_path / f"{at}.log"
        env = {**os.environ, "MULLIGAN_HOME": str(home), "MULLIGAN_STORE": ""}
        killed = run_forked([sys.executable, str(MORTAL), str(log), str(at)], env=env, cwd=tmp_path)
        if killed.returncode == 0:  # all was done before that call
            continue
        assert killed.returncode == -9, killed.stderr
        done = Counter(line for line in log.read_text().split("\n") if line.startswith("answered"))
        ran = run_forked([sys.executable, str(MORTAL), str(log), "0"], env=env, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == "5 trajectories, the best is 4, 1 lesson\n"
        after = Counter(line for line in log.read_text().split("\n") if line.startswith("answered"))
        assert max(after.values()) <= 1 + (max(done.values()) if done else 0)
        again = [line for line, times in after.items() if times > 1]
        assert len(again) <= MAX_PARALLEL, "only a call under way at the kill is made again"
