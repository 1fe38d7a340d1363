"""Every forging attack on both verdict paths. What the in-process path cannot hold is listed here, exactly."""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from forging import ATTACKS, CANNOT_HOLD, EQUALS, IN_PROCESS, TESTS
from other_user import run_as_another

from mulligan.core.records import Feedback

Judge = Callable[..., Awaitable[Feedback]]


@pytest.mark.light_cases(8)
@pytest.mark.parametrize("name", ATTACKS)
async def test_no_attack_passes_when_the_verdict_is_computed_outside(judge: Judge, name: str) -> None:
    feedback = await judge(ATTACKS[name], TESTS, seconds=3.0)
    assert feedback.notes == ()
    assert (feedback.passed, feedback.score) == (False, 0.0), feedback.text


@pytest.mark.light_cases(10)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "recursion" else name for name in ATTACKS]
)
async def test_in_process_exactly_the_listed_attacks_pass(judge: Judge, name: str) -> None:
    feedback = await judge(ATTACKS[name], IN_PROCESS, seconds=3.0)
    assert feedback.notes == ("in-process: can be forged (the tests import inspect)",)
    assert feedback.passed == (name in CANNOT_HOLD), feedback.text


CHOOSING = {
    "a class where a function is expected": "class add:\n    def __new__(cls, a, b): return Any()\n",
    "an argument that only just crossed": "def add(a, b): return 'x' * 999_980 if a == 5 else Any()",
    "an argument that is too deep": "def add(a, b):\n    v = 0\n    for _ in range(198): v = [v]\n    return v",
    "an endless argument": "def add(a, b):\n    while True: yield 1",
    "a function as an argument": "def add(a, b): return lambda: 3",
    "an exception as an argument": "def add(a, b): return ValueError()",
    "an array as an argument": "import numpy\ndef add(a, b): return numpy.array([Any(), 3], dtype=object)",
    "an array of no plain type": "import numpy\ndef add(a, b): return numpy.zeros(2, dtype='i4,f8')",
}


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("how", CHOOSING)
async def test_the_candidate_cannot_choose_the_path_that_can_be_forged(judge: Judge, how: str) -> None:
    """Whatever it returns, even what the tests hand on, does not move them into its process."""
    tests = TESTS + "assert add(add(5, 5), [[add(5, 5)]]) == 3\nassert add(map(str, add(5, 5)), 1) == 3\n"
    feedback = await judge(EQUALS + CHOOSING[how], tests)
    assert (feedback.passed, feedback.notes) == (False, ())


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_the_same_for_an_unprivileged_user(tmp_path: Path) -> None:
    passed = json.loads(run_as_another([str(Path(__file__).parent / "forging.py")], tmp_path))
    assert passed["outside"] == []
    assert set(passed["in_process"]) == CANNOT_HOLD
