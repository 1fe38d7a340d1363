"""Two runs that ask a model the same thing: with `reuse` the second takes the first one's answer, and pays nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from mulligan.bench.harness.running import run_benchmark
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Usage
from mulligan.store.sqlite import SqliteStore


class Counting:
    """Answers every question with the same function, and counts them."""

    name = id = "counting"

    def __init__(self) -> None:
        self.calls = 0

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        self.calls += 1
        return Answer("def double(n):\n    return 2 * n", self.id, Usage(10, 5, 1))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [
        {
            "task_id": f"own/{n}",
            "prompt": f'def double(n):\n    """Twice n. Case {n}."""\n',
            "entry_point": "double",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n",
            "canonical_solution": "    return n + n\n",
        }
        for n in range(3)
    ]
    file = tmp_path / "HumanEval.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    return file


async def test_only_what_is_new_is_asked(tmp_path: Path, data: Path) -> None:
    store, model = SqliteStore(tmp_path / "m.db"), Counting()
    try:
        first = await run_benchmark("humaneval", model=model, store=store, data=str(data), method="simple", limit=2)
        assert model.calls == 2
        again = await run_benchmark("humaneval", model=model, store=store, data=str(data), method="simple", reuse=True)
        assert model.calls == 3  # the third case was not in the first run
        paid = await run_benchmark("humaneval", model=model, store=store, data=str(data), method="simple")
        assert model.calls == 6
        reseeded = await run_benchmark(
            "humaneval", model=model, store=store, data=str(data), method="simple", reuse=True, seed=7
        )
        assert model.calls == 9  # another seed is another request
    finally:
        await store.close()
    for run in (first, again, paid, reseeded):
        assert all(result.solved and result.usage == Usage(10, 5, 1) for result in run.results)
