"""All 164 items of HumanEval, and some of HumanEval+: the canonical solutions pass, the same with the body replaced by
`pass` fail."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox

FOLDER = Path(__file__).parents[3] / "shared/data/programming"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not FOLDER.exists(), reason="needs ../shared/data")]


async def graded(column: str, name: str = "HumanEval", step: int = 1) -> list[Feedback]:
    """The verdicts on prompt + the row's `column`, or on prompt + `pass`, for each row or each `step`th."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = [json.loads(line) for line in file][::step]
    sandbox, slots = LocalSandbox(), asyncio.Semaphore(2)

    async def one(row: dict[str, Any]) -> Feedback:
        async with slots:
            tests = UnitTests(f"{row['test']}\n\ncheck({row['entry_point']})\n", sandbox=sandbox, seconds=60.0)
            attempt = Attempt(row["prompt"] + row.get(column, "    pass\n"))
            return await tests.evaluate(Episode("e", Task(""), trials=(Trial(1, attempt),)))

    return await asyncio.gather(*map(one, rows))


async def test_every_canonical_solution_passes_and_nearly_all_by_the_outside_path() -> None:
    verdicts = await graded("canonical_solution")
    assert [n for n, verdict in enumerate(verdicts) if verdict.passed is not True or verdict.score != 1.0] == []
    outside = sum(verdict.notes == () for verdict in verdicts)
    print(f"{outside} of {len(verdicts)} by the outside path")
    assert (len(verdicts), outside) == (164, 164)


async def test_every_solution_without_a_body_fails() -> None:
    verdicts = await graded("no such column")
    assert len(verdicts) == 164
    assert [n for n, verdict in enumerate(verdicts) if verdict.passed is not False] == []


async def test_hundreds_of_inputs_to_a_row_as_in_humaneval_plus() -> None:
    """Every 7th row; the tests of row 32 raise TypeError whatever the code does: `*candidate(*inp)` of a float."""
    good = await graded("canonical_solution", "HumanEvalPlus-OriginFmt", 7)
    assert [(verdict.passed, verdict.notes) for verdict in good] == [(True, ())] * 24
    empty = await graded("no such column", "HumanEvalPlus-OriginFmt", 7)
    assert [(verdict.passed, verdict.notes) for verdict in empty] == [(False, ())] * 24
