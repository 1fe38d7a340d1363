"""Test files are run by pytest's rules: what pytest passes is passed, and what it fails is failed."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from course_programs import plain, programs
from test_unit_tests_course import judged

from mulligan.core.records import Feedback

Judge = Callable[..., Awaitable[Feedback]]
ROWS = programs(Path(__file__).parent, "pytest_rules.txt")


@pytest.mark.slow
def test_pytest_itself_passes_each_program_and_fails_its_mistake() -> None:
    said = plain([(row.code, row.tests) for row in ROWS] + [(row.mistaken, row.tests) for row in ROWS])
    assert [(row.name, text) for row, text in zip(ROWS, said, strict=False) if text] == []
    assert [row.name for row, text in zip(ROWS, said[len(ROWS) :], strict=True) if not text] == []


TEARDOWN = """
import pytest
@pytest.fixture
def one():
    yield 1
    raise RuntimeError("teardown")
def test_a(one):
    assert f(one) == 1
"""


async def test_an_error_of_the_teardown_does_not_hide_the_failure_of_the_test(judge: Judge) -> None:
    feedback = await judge("def f(x): return 2", TEARDOWN)
    assert "f(one) returned 2" in feedback.text
    feedback = await judge("def f(x): return 1", TEARDOWN)
    assert (feedback.passed, "RuntimeError: teardown" in feedback.text) == (False, True)


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=pytest.mark.slow)])
async def test_each_program_is_judged_as_by_pytest(everything: bool) -> None:
    rows = ROWS if everything else ROWS[:3]
    right = await judged((row.code, row.tests) for row in rows)
    assert [(row.name, one.text) for row, one in zip(rows, right, strict=True) if one.passed is not True] == []
    mistaken = await judged((row.mistaken, row.tests) for row in rows)
    assert [(row.name, one.text) for row, one in zip(rows, mistaken, strict=True) if one.passed is not False] == []
