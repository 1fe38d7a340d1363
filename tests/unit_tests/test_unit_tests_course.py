"""Real programs: what passes in plain Python is never judged false, and a mistake that its tests catch never passes."""

import asyncio
import gzip
import json
import random
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from course_programs import Program, plain, programs

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox
from mulligan.text.programs import meaning_solution

DATA = Path(__file__).parents[3] / "shared/data/programming"
SLOW = pytest.mark.slow
needs_data = pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")


async def judged(pairs: Iterable[tuple[str, str]], seconds: float = 30.0) -> list[Feedback]:
    sandbox, slots = LocalSandbox(), asyncio.Semaphore(2)

    async def one(code: str, tests: str) -> Feedback:
        async with slots:
            judge = UnitTests(tests, sandbox=sandbox, seconds=seconds)
            return await judge.evaluate(Episode("e", Task(""), trials=(Trial(1, Attempt(code)),)))

    return await asyncio.gather(*(one(code, tests) for code, tests in pairs))


def sample(everything: bool) -> list[Program]:
    rows = programs()
    return rows if everything else random.Random(118).sample(rows, 20)


@pytest.mark.slow
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=SLOW)])
def test_the_tests_of_each_program_pass_in_plain_python_and_catch_its_mistake(everything: bool) -> None:
    rows = sample(everything)
    said = plain([(row.code, row.tests) for row in rows] + [(row.mistaken, row.tests) for row in rows])
    right, mistaken = said[: len(rows)], said[len(rows) :]
    assert [(row.name, text) for row, text in zip(rows, right, strict=True) if text] == []
    assert [row.name for row, text in zip(rows, mistaken, strict=True) if not text] == []


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=SLOW)])
async def test_a_right_program_is_never_judged_false_and_a_mistake_never_passes(everything: bool) -> None:
    rows = sample(everything)
    right = await judged((row.code, row.tests) for row in rows)
    assert [(row.name, one.text) for row, one in zip(rows, right, strict=True) if one.passed is False] == []
    unknown = [(row.name, one.text) for row, one in zip(rows, right, strict=True) if one.passed is None]
    assert len(unknown) <= 0.02 * len(rows), unknown
    mistaken = await judged((row.mistaken, row.tests) for row in rows)
    assert [row.name for row, one in zip(rows, mistaken, strict=True) if one.passed] == []


def test_there_are_a_hundred_and_fifty_programs() -> None:
    assert len({row.name for row in programs()}) == len(programs()) >= 150


def benchmark(name: str) -> list[tuple[str, str, str]]:
    """Code, code that returns nothing, and tests, of each task."""
    with gzip.open(DATA / f"{name}-OriginFmt.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    if name == "HumanEvalPlus":
        calls = [f"{row['test']}\n\ncheck({row['entry_point']})\n" for row in rows]
        texts = [(row["prompt"] + row["canonical_solution"], row["prompt"] + "    pass\n") for row in rows]
        return [(*pair, tests) for pair, tests in zip(texts, calls, strict=True) if "find_zero" not in tests]
    rows = [row for row in rows if "assert " in row["test"]]  # the tests of three judge nothing
    asked = [next(n for n in re.findall(r"def (\w+)", row["code"]) if n in row["test_list"][0]) for row in rows]
    return [
        (row["code"], f"def {name}(*_): pass\n", meaning_solution(row["test"], name))
        for row, name in zip(rows, asked, strict=True)
    ]


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("name", ["HumanEvalPlus", "MbppPlus"])
async def test_no_task_of_a_benchmark_is_judged_false_and_no_empty_answer_passes(name: str) -> None:
    """Left out: `find_zero`, whose tests raise a TypeError whatever the code does, and `combinations_colors`, whose
    results take more than the memory of an attempt."""
    rows = [row for row in benchmark(name) if "assertion(combinations_colors(" not in row[2]]
    right = await judged(((code, tests) for code, _, tests in rows), 240.0)
    assert [one.text for one in right if one.passed is False] == []
    assert sum(one.passed is None for one in right) <= 0.02 * len(rows)
    empty = await judged(((code, tests) for _, code, tests in rows), 240.0)
    assert [row[2][-300:] for row, one in zip(rows, empty, strict=True) if one.passed] == []
