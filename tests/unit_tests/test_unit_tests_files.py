"""Which test files can be used, what in them is a test, and which path they take. No code is run here."""

import random
import string
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from each_row import each_row

from mulligan.core.errors import InvalidInput, SandboxError
from mulligan.core.protocols import Channel, Job, Ran
from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.oracle.python import fixtures, names
from mulligan.oracle.python.plan import read

Judge = Callable[..., Awaitable[Feedback]]


@each_row(
    ("tests", "said"),
    [
        ("assert f(1) ==\n", "mine.py, line 1: invalid syntax: assert f(1) =="),
        ("x = 1\n\ndef helper():\n    return 2\n", "mine.py contains no test: write asserts"),
        ("", "mine.py contains no test"),
        ("# only a comment about assert\n", "mine.py contains no test"),
        ("def check(candidate):\n    pass\n", "mine.py contains no test"),
        ("def check(candidate):\n    pass\ncheck(f)\n", "mine.py contains no test: write asserts"),
        ("def assertion(out, exp):\n    same = out == exp\nassertion(f(1), 2)\n", "mine.py contains no test: write"),
        (
            "def check(candidate):\n    assert candidate(1)\n",
            "mine.py contains no test: check asserts, and nothing calls it: add a line such as `check(add)`.",
        ),
        (
            "\ndef test_a(caplog):\n    assert f(caplog)\n",
            "mine.py, line 2: test_a takes 'caplog', which this file does not",
        ),
        ("import nowhere_to_be_found\nassert f()\n", "mine.py, line 1: no module 'nowhere_to_be_found' is installed"),
        ("from . import f\nassert f()\n", "mine.py, line 1: a relative import"),
        ("assert f('\0')\n", "mine.py"),
    ],
)
def test_a_tests_file_that_cannot_be_used_is_refused_with_file_and_line(tests: str, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        UnitTests.check(tests, "mine.py")
    assert str(refused.value).startswith(said)


@pytest.mark.slow
def test_the_fixtures_that_a_file_may_ask_for_are_those_that_the_examiner_has() -> None:
    assert fixtures.PYTEST_FIXTURES.keys() == names.PYTEST_FIXTURES


def test_a_tests_file_that_is_too_large_for_the_wire_is_refused_before_anything_runs() -> None:
    noise = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=1_500_000))
    value = f"assert f({noise!r}) == 1\n"
    UnitTests.check(value[:10] + value[1_000_000:], "mine.py")
    with pytest.raises(InvalidInput, match=r"^mine\.py is too large: 1 asserts .* more than 900,000 characters"):
        UnitTests.check(value, "mine.py")


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(
    "tests",
    [
        "assert f()\n" * 2_501,
        "def test_a():\n" + "    assert f()\n" * 2_501,
        pytest.param("def check(f):\n" + "    assert f()\n" * 2_501 + "check(g)\n", marks=pytest.mark.slow),
    ],
)
def test_more_asserts_than_can_fit_are_refused_before_they_are_instrumented(tests: str) -> None:
    with pytest.raises(InvalidInput, match=r"^mine\.py is too large: more than 2,500 asserts cannot be judged\. Write"):
        UnitTests.check(tests, "mine.py")


@pytest.mark.parametrize(
    "literal", [[[-1, "a", (2.5, None)]] * 60, {n: {n, -n} for n in range(90)}, ((),) * 120, [[1] * 99, [2] * 3]]
)
async def test_a_large_literal_is_the_value_that_it_is_written_as(judge: Judge, literal: object) -> None:
    pairs = "def check(c):\n    rows = " + repr(literal).replace(", ", ",\n      ") + "\n    assert c(rows) == rows\n"
    tests = f"{pairs}check(f)\nassert f({literal!r}) == {literal!r}\nassert f(0) != {literal!r}\n"
    assert (await judge("def f(x): return x", tests)).score == 1.0
    feedback = await judge("def f(x): return x if x == 0 else [x]", tests)
    assert (feedback.passed, feedback.score) == (False, 1 / 3)


@pytest.mark.slow
async def test_as_many_asserts_as_are_read_fit_on_the_wire(judge: Judge) -> None:
    tests = "".join(f"assert add({n}, [{n}, 'text {n}']) == {n * n}\n" for n in range(2_450))
    feedback = await judge("def add(a, b): return a * a", tests)
    assert (feedback.passed, feedback.score) == (True, 1.0)


def test_a_file_that_takes_seconds_to_parse_is_refused_by_its_length() -> None:
    with pytest.raises(InvalidInput, match=r"^mine\.py is too large: 2,000,011 characters \(the limit is 2,000,000"):
        UnitTests.check("assert f()" + "\n" * 2_000_001, "mine.py")


class NoSandbox:
    level = "none"

    async def run(self, job: Job) -> Ran:
        raise SandboxError("there is none")

    def open(self, job: Job) -> AbstractAsyncContextManager[Channel]:
        raise SandboxError("there is none")


def test_seconds_must_be_positive() -> None:
    with pytest.raises(InvalidInput, match="seconds must be greater than 0"):
        UnitTests("assert f()", sandbox=NoSandbox(), seconds=0)
    with pytest.raises(InvalidInput, match="longest must be greater than 0"):
        UnitTests("assert f()", sandbox=NoSandbox(), longest=0)


async def test_trouble_with_the_sandbox_is_no_verdict() -> None:
    episode = Episode("e", Task("task"), trials=(Trial(1, Attempt("def f(): return 1")),))
    with pytest.raises(SandboxError, match="there is none"):
        await UnitTests("assert f()", sandbox=NoSandbox()).evaluate(episode)


@each_row(
    ("tests", "texts"),
    [
        ("assert f(1)\nassert f(2)  # two\n", ["assert f(1)", "assert f(2)"]),
        (
            "def check(candidate):\n    assert candidate(1) == 2\n    assert True\ncheck(f)",
            ["assert f(1) == 2", "assert True"],
        ),
        ("def test_a():\n    assert f(1)\n    assert f(2)\n", ["test_a"]),
        ("def check(c):\n    assert c(1)\n\ndef test_check():\n    check(f)\n\ntest_check()\n", ["assert f(1)"]),
        ("for x in [1, 2]:\n    assert f(x)\n", ["assert f(x)"]),
        ("def same(a, b):\n    assert a == b\nsame(f(1), 1)\nsame(f(2), 2)\n", ["same(f(1), 1)", "same(f(2), 2)"]),
        (
            "def check(candidate):\n    for inp, exp in [([1], 2)]:\n        assertion(candidate(*inp), exp, 0)\n"
            "def assertion(out, exp, atol):\n    assert out == exp\ncheck(f)\n",
            ["assertion(f(*inp), exp, 0)"],
        ),
        (
            "def same(a, b):\n    assert a == b\ndef near(a, b):\n    same(round(a), round(b))\n"
            "def check(c):\n    near(c(1), 1)\n    x = c(2)\n    [same(x, y) for y in [2, 3]]\ncheck(f)\n",
            ["near(f(1), 1)", "[same(x, y) for y in [2, 3]]"],
        ),
        (
            "def test_one(c):\n    assert c(1)\ndef check(c):\n    test_one(c)\n    assert c(2)\ncheck(f)\n",
            ["test_one(f)", "assert f(2)"],
        ),
        ("import numpy as np\nnp.testing.assert_allclose(f(1), 2)\n", ["np.testing.assert_allclose(f(1), 2)"]),
        ("from numpy.testing import assert_equal\nassert_equal(f(1), 2)\n", ["assert_equal(f(1), 2)"]),
        ("if f(1) != 2:\n    raise ValueError\n", ["if f(1) != 2: raise ValueError"]),
        ("class Checks:\n    def run(self, g):\n        assert g(1)\nChecks().run(f)\n", ["Checks().run(f)"]),
        ("import pytest\nwith pytest.raises(ValueError):\n    f(1)\n", ["with pytest.raises(ValueError): f(1)"]),
        ("class TestF:\n    def test_a(self):\n        assert f(1)\n", ["TestF.test_a"]),
        ("if __name__ == '__main__':\n    assert f(1)\nassert f(2)\n", ["assert f(2)"]),
        ("assert f([\n    1,\n    2,\n]) == 3\n", ["assert f([1, 2]) == 3"]),
        (
            "try:\n    f(1)\n    assert False\nexcept ValueError:\n    pass\n",
            ["try: f(1) assert False except ValueError: pass"],
        ),
    ],
)
def test_what_is_a_test(tests: str, texts: list[str]) -> None:
    assert [test.text for test in read(tests).tests if not test.quiet] == texts


@each_row(
    ("tests", "why"),
    [
        ("assert f(1) == 2", None),
        ("from solution import f\nassert f(1) == 2", None),
        ("import solution\nassert solution.f(1) == 2", None),
        ("import math\nassert math.isclose(f(1), 2.0)", None),
        ("import numpy as np\nassert np.allclose(f(np.array([1])), [2.0]) and f(1).shape == (1,)", None),
        ("import random\nrng = random.Random(1)\nassert f(rng.randint(1, 2)) > 0", None),
        ("a = [1]\nf(a)\nassert a == [1, 2]", None),
        ("assert f(1) is None and f(2) is not True", None),
        ("assert type(f(1)) is int", None),
        ("assert isinstance(f(1), int)", None),
        ("assert sorted(f(1).items()) == []", None),
        ("assert Two_Words(1) == 2", None),
        ("assert PI > 3", None),
        ("s = Stack()\nassert s.pop() == 1", "the tests use the candidate's class Stack"),
        ("assert LRU(2)", "line 1 of the tests uses the candidate's class LRU"),
        ("assert f(lambda x: x) == 1", "line 1 of the tests hands over a function"),
        ("assert f.__name__ == 'f'", "line 1 of the tests reads f.__name__"),
        ("assert f(1).left == 2", "line 1 of the tests reads the attribute left"),
        ("a = [1]\nassert f(a) is a", "line 2 of the tests compares identity"),
        ("assert f(1)(2) == 3", "line 1 of the tests calls what a call returned"),
        ("g = f(1)\nassert g() == 3", "line 2 of the tests calls g, which was made at run time"),
        ("import inspect\nassert inspect.isfunction(f)", "the tests import inspect"),
        ("import hypothesis\nassert f(1)", "the tests import hypothesis, whose values only one process can hold"),
    ],
)
def test_the_path_is_chosen_from_the_tests_alone(tests: str, why: str | None) -> None:
    assert read(tests).why == why
