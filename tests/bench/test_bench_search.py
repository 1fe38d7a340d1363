"""`reflexion-ucs` from end to end on HumanEval's shape: fail, reflect, grow from the best, solve; cut off anywhere."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mulligan import ScriptedModel
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.core.questions import Question, Sampling
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

PROMPT = 'def clamp(x, low, high):\n    """x, but not below low and not above high."""\n'
WRITES_TESTS = "assert clamp(5, 0, 9) == 5\nassert clamp(-1, 0, 9) == 0\nassert clamp(11, 0, 9) == 9\n"
HIDDEN = "def check(candidate):\n    assert candidate(4, 1, 3) == 3\n    assert candidate(0, 1, 3) == 1\n"
CODE = {
    1: "return low",  # 2 of 3 fail
    2: "return 7",  # all fail
    3: "return min(x, high)",  # 1 of 3 fails: the next ones grow from it
    4: "return min(x, low + 9)",  # the same verdicts as 3: never grown from
    5: "return x",  # 2 of 3 fail
    6: "return max(low, min(x, high))",
}
TREE = [(1, None), (2, 1), (3, 1), (4, 1), (5, 3), (6, 3)]
CALLS = 6 + 2 + 1


class Coder(ScriptedModel):
    """Writes the attempts above by their seed, one lesson for each parent, and the tests. Cut off at call `stop`."""

    def __init__(self, stop: int | None = None) -> None:
        super().__init__(self._answer, "coder")
        self.asked: Counter[str] = Counter()
        self.stop = stop

    def _answer(self, question: Question, sampling: Sampling) -> str:
        kind = self._kind(question)
        self.asked[kind if kind != "act" else f"act {sampling.seed}"] += 1
        if self.asked.total() == self.stop:
            (main,) = (task for task in asyncio.all_tasks() if task.get_name() == "run")
            main.cancel()
        if kind == "act":
            assert sampling.temperature == (0.0 if sampling.seed == 1 else 0.75)
            return f"{PROMPT}    {CODE[sampling.seed or 0]}\n"
        return WRITES_TESTS if kind == "tests" else f"Lesson of clamp: {kind}."

    def _kind(self, question: Question) -> str:
        system, last = question.messages[0].text.lower(), question.messages[-1].text
        if "unit tests" in system or "asserts" in system:
            return "tests"
        if "review" not in system:
            return "act"
        return f"mind what {next(n for n, code in CODE.items() if code in last)} did"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    row = {"task_id": "own/1", "prompt": PROMPT, "entry_point": "clamp", "test": HIDDEN}
    row["canonical_solution"] = "    return max(low, min(x, high))\n"
    file = tmp_path / "HumanEval.jsonl.gz"
    file.write_bytes(gzip.compress(json.dumps(row).encode()))
    return file


async def ran(store: SqliteStore, data: Path, model: Coder) -> Finished:
    return await run_benchmark("humaneval", model=model, store=store, data=str(data), method="reflexion-ucs", trials=9)


async def the_episode(store: SqliteStore) -> Episode:
    (episode,) = await store.list()
    return episode


def tree(episode: Episode) -> list[Any]:
    return [(t.number, t.parent, t.attempt.output, t.feedback, t.reflection) for t in episode.trials]


async def test_fail_reflect_solve(tmp_path: Path, data: Path) -> None:
    store, model = SqliteStore(tmp_path / "m.db"), Coder()
    finished = await ran(store, data, model)
    (result,) = finished.results
    assert (result.status, result.episodes[0].scores) == ("solved", (0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    episode = await the_episode(store)
    assert [(trial.number, trial.parent) for trial in episode.trials] == TREE
    assert [r.text for r in episode.reflections] == [
        "Lesson of clamp: mind what 1 did.",
        "Lesson of clamp: mind what 3 did.",
    ]
    shown = model.questions[-1].messages[-1].text
    assert "mind what 3 did" in shown
    assert CODE[3] in shown
    assert model.asked.total() == CALLS
    await store.close()


STOPS = [pytest.param(stop, marks=[] if stop in (2, 7) else pytest.mark.slow) for stop in range(1, CALLS + 1)]


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("stop", STOPS)
async def test_it_goes_on_wherever_it_was_cut_off(tmp_path: Path, data: Path, stop: int) -> None:
    whole = SqliteStore(tmp_path / "whole.db")
    await ran(whole, data, Coder())
    expected = tree(await the_episode(whole))
    await whole.close()
    store, model = SqliteStore(tmp_path / f"{stop}.db"), Coder(stop)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.create_task(ran(store, data, model), name="run")
    (run,) = await store.benches.runs()
    (result,) = (await resume_benchmark(run.id, model=model, store=store)).results
    assert result.status == "solved"
    assert tree(await the_episode(store)) == expected
    assert model.asked.total() <= CALLS + 1, "only the call that was cut off is made again"
    assert result.usage.calls == CALLS
    await store.close()
