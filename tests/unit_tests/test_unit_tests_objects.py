"""Objects, values and exceptions that the attempt gives: what passes in plain Python passes, and no lie does."""

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from course_programs import programs
from lying_objects import ERRORS, EXPECTING, LIES
from test_unit_tests_course import judged

from mulligan.core.records import Feedback

Judge = Callable[..., Awaitable[Feedback]]
SLOW = pytest.mark.slow
RIGHT = {row.name: (row.code, row.tests) for row in programs(Path(__file__).parent, "objects.txt")}


def sample(names: list[str], everything: bool, size: int) -> list[str]:
    return names if everything else random.Random(118).sample(names, size)


@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=SLOW)])
async def test_what_passes_in_plain_python_passes(everything: bool) -> None:
    names = sample(list(RIGHT), everything, 25)
    verdicts = await judged(RIGHT[name] for name in names)
    assert [(n, one.passed, one.text) for n, one in zip(names, verdicts, strict=True) if one.passed is not True] == []


@pytest.mark.slow
@pytest.mark.parametrize("everything", [False, pytest.param(True, marks=SLOW)])
async def test_no_lying_object_passes_and_none_chooses_the_path(everything: bool) -> None:
    names = sample(list(LIES), everything, 40)
    verdicts = await judged(LIES[name] for name in names)
    assert [(n, one.notes) for n, one in zip(names, verdicts, strict=True) if one.passed or one.notes] == []


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("beside", ["", "import inspect\n"])
async def test_no_exception_of_the_attempt_is_taken_for_one_of_python(beside: str) -> None:
    """On both paths, except that in one process the attempt can replace the builtin itself."""
    pairs = {
        (error, how): (ERRORS[error], beside + EXPECTING[how])
        for error in ERRORS
        for how in EXPECTING
        if not (beside and error in ("a builtin that is replaced", "a class that claims to be one"))
    }
    verdicts = await judged(pairs.values())
    assert [name for name, one in zip(pairs, verdicts, strict=True) if one.passed is not False] == []


UNDECIDED = {
    "a difference with a plain value": (
        "class T:\n    def __init__(self, v): self.v = v\n    def __sub__(self, other): return self.v - other\n"
        "def t(v): return T(v)",
        "x = t(3)\nassert x - 1 == 2",
        "line 2 of the tests uses __sub__ of an object from the code",
    ),
    "a plain value in an object": (
        "class I:\n    def __contains__(self, x): return x < 3\ndef i(): return I()",
        "assert 2 in i()",
        "line 1 of the tests asks an object from the code whether a plain value is in it",
    ),
    "a property of an exception": (
        "class E(Exception):\n    value = property(lambda self: 3)\ndef f(): raise E",
        "try:\n    f()\nexcept Exception as error:\n    assert error.value == 3",
        "line 4 of the tests reads the attribute .value of an exception",
    ),
    "a mapping and a dict": (
        "from collections import UserDict\nclass D(UserDict):\n    def double(self): return 2\ndef d(): return D(a=1)",
        "assert d() == {'a': 1}",
        "line 1 of the tests compares an object from the code with a plain value",
    ),
    "what it swallows": (
        "from contextlib import suppress\ndef quiet(): return suppress(ValueError)",
        "def test_it():\n    with quiet():\n        int('x')",
        "leaves it to the code whether ValueError is caught",
    ),
    "a part of pytest that is not there": (
        "def f(): return 1",
        "import pytest\ndef test_it():\n    pytest.freeze('x')\n    assert f() == 1",
        "line 3 of the tests uses pytest.freeze",
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
async def test_what_cannot_be_judged_from_outside_is_unknown_and_names_the_line(judge: Judge, name: str) -> None:
    code, tests, said = UNDECIDED[name]
    feedback = await judge(code, tests)
    assert feedback.passed is None
    assert said in feedback.text


async def test_a_failure_before_what_is_undecided_is_a_failure(judge: Judge) -> None:
    code, tests, _ = UNDECIDED["a plain value in an object"]
    feedback = await judge(code + "\ndef f(): return 1", f"assert f() == 2\n{tests}")
    assert feedback.passed is False


async def test_the_user_can_have_the_tests_run_beside_the_attempt(judge: Judge) -> None:
    code, tests, _ = UNDECIDED["a plain value in an object"]
    feedback = await judge(code, tests, tests_run="beside")
    assert (feedback.passed, feedback.notes) == (True, ("in-process: can be forged (as you chose)",))
