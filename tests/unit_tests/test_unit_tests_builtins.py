"""Functions named like builtins: whether a name means the attempt's is for the tests to say, never for the attempt."""

from collections.abc import Awaitable, Callable

import pytest
from each_row import each_row

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.given_tests import GivenTests
from mulligan.oracle.python.plan import read
from mulligan.sandbox.local import LocalSandbox

Judge = Callable[..., Awaitable[Feedback]]

CHECK = "def check(candidate):\n    assert candidate([3, 1]) == [1, 3]\n    assert len(candidate([])) == 0\n"
MEANT = {
    "asserts alone": "assert sorted([3, 1]) == [1, 3]\nassert sorted([]) == []",
    "handed to check": CHECK + "check(sorted)",
    "handed to check, beside another name": CHECK + "check(sorted)\nassert other() is None",
    "handed to another function": CHECK.replace("check", "verify") + "verify(sorted)",
    "imported": "from solution import sorted\nassert sorted([3, 1]) == [1, 3]\nassert other() is None",
    "of the module": "import solution\nassert solution.sorted([3, 1]) == [1, 3]",
    "a test function": "def test_it():\n    xs = sorted([3, 1])\n    assert xs == [1, 3]\n    print('done')",
    "rows": "import pytest\n@pytest.mark.parametrize('xs', [[3, 1]])\ndef test_it(xs):\n    assert sorted(xs) == [1, 3]",
    "a helper": "def same(a, b):\n    assert all(x == y for x, y in zip(a, b))\nsame(sorted([3, 1]), [1, 3])",
    "raises": "import pytest\nassert sorted([3, 1]) == [1, 3]\nwith pytest.raises(TypeError):\n    sorted(None)",
    "in one process": "import inspect\nassert sorted([3, 1]) == [1, 3]",
}
SORTED = (
    "def sorted(xs):\n    out = []\n    for x in xs:\n        at = 0\n        while at < len(out) and out[at] < x:\n"
    "            at += 1\n        out.insert(at, x)\n    return out\ndef other(): pass\n"
)


@pytest.mark.light_cases(10)
@pytest.mark.parametrize("how", MEANT)
@pytest.mark.parametrize(
    ("code", "passed"),
    [(SORTED, True), ("def sorted(xs): return xs\ndef other(): pass", False), ("def other(): pass", False)],
    ids=["right", "wrong", "missing"],
)
async def test_a_function_named_like_a_builtin_is_judged(judge: Judge, how: str, code: str, passed: bool) -> None:
    feedback = await judge(code, MEANT[how])
    assert feedback.passed is passed, feedback.text


RIGHT = {
    "max": ("def max(a, b):\n    return a if a > b else b", "assert max(1, 2) == 2\nassert max(3, 2) == 3"),
    "sum": ("def sum(a, b): return a + b", "def check(candidate):\n    assert candidate(1, 2) == 3\ncheck(sum)"),
    "filter": (
        "def filter(xs, least): return [x for x in xs if x >= least]",
        "assert filter([1, 2, 3], 2) == [2, 3]",
    ),
    "reversed": ("def reversed(xs): return xs[::-1]", "assert list(reversed([1, 2])) == [2, 1]"),
    "list": ("def list(n): return (n, n)", "assert list(1) == (1, 1)"),
    "isinstance": ("def isinstance(a, b): return 'no'", "assert isinstance(1, 'int') == 'no'"),
    "print": ("def print(x): return x", "from solution import print\nassert print(3) == 3"),
    "id": ("def id(x): return x", "assert id(3) == 3"),
    "type": ("def type(x): return 'number'", "assert type(3) == 'number'"),
    "repr": ("def repr(x): return 'r'", "assert repr(3) == 'r'"),
}


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("name", RIGHT)
async def test_a_right_function_passes_whatever_its_name(judge: Judge, name: str) -> None:
    """Nor do the examiner's own instruments use it."""
    code, tests = RIGHT[name]
    feedback = await judge(code, tests)
    assert (feedback.passed, feedback.score, feedback.notes) == (True, 1.0, ()), feedback.text
    feedback = await judge(code.replace("return ", "return None and "), tests)
    assert feedback.passed is False, feedback.text


USES = (
    "assert all(x > 0 for x in f(2))\nassert len(f(2)) == 2 and abs(f(1)[0]) == 1\nassert isinstance(f(1), list)\n"
    "def check(candidate):\n    for n in range(3):\n        assert sorted(candidate(n)) == list(range(1, n + 1))\n"
    "check(f)\ndef near(a, kind):\n    assert type(a) is kind and max(a) == sum(a) == 1\nnear(f(1), list)\n"
)
SHADOWS = ("all", "len", "abs", "isinstance", "sorted", "list", "range", "type", "max", "sum", "iter", "repr")


@pytest.mark.light_cases(3)
@pytest.mark.parametrize("name", SHADOWS)
@pytest.mark.parametrize("first", ["", "import inspect\n"], ids=["outside", "in process"])
async def test_an_attempt_that_defines_a_builtin_changes_no_verdict(judge: Judge, name: str, first: str) -> None:
    good = "def f(n):\n    return [*map(int, '123'[:n])]\n"
    for value in ("True", "0", "[]"):
        shadow = f"def {name}(*a, **k): return {value}\n"
        assert (await judge(shadow + good, first + USES)).passed is True
        assert (await judge(shadow + "def f(n): return [0]\n", first + USES)).passed is False


@each_row(
    ("tests", "wanted"),
    [
        ("assert sorted([2, 1]) == list(range(1, 3))", ("sorted",)),
        ("assert [1, 2] == sorted([2, 1])", ("sorted",)),
        ("assert list(filter(None, [1])) == [1]", ("filter",)),
        ("assert round(sum([0.1, 0.2]), 2) == 0.3", ("sum",)),
        ("assert len('abc') == 3", ("len",)),
        ("assert all(x > 0 for x in range(1, 3))\nassert all([])", ("all",)),
        ("assert sorted([2, 1]) == [1, 2]\nassert max(sorted([2, 1])) == 2", ("sorted",)),
        ("assert sum([1]) == 1\nassert max([1]) == 1", ("max", "sum")),
        ("assert f(1) == sorted([2, 1])", ("f",)),
        ("assert LIMITS == sorted([2, 1])", ("LIMITS",)),
        ("def check(c, ref):\n    assert c(1) == ref(1)\ncheck(f, abs)", ("f",)),
        ("def check(c, ref):\n    assert c(1) == ref(1)\ncheck(abs, f)", ("abs", "f")),
        ("def sorted(xs):\n    return xs\nassert sorted(f(1)) == [1]", ("f",)),
        ("def test_a():\n    raise ValueError\nassert 1 == 1", ()),
        ("xs = sorted([2, 1])\nassert xs == [1, 2]\nprint('done', len(xs))", ("sorted",)),
    ],
)
def test_what_the_tests_ask_of_the_attempt(tests: str, wanted: tuple[str, ...]) -> None:
    assert read(tests).names.wanted == wanted


async def test_a_list_of_tests_is_of_the_function_that_the_task_asks_for() -> None:
    task = Task("def reversed(xs):\n    '''The list from its end.'''\n")
    evaluator = GivenTests(["assert list(reversed(range(3))) == [2, 1, 0]"], sandbox=LocalSandbox())
    for code, passed in (("def reversed(xs): return xs[::-1]", True), ("def reversed(xs): return 'WRONG'", False)):
        feedback = await evaluator.evaluate(Episode("e", task, trials=(Trial(1, Attempt(code)),)))
        assert feedback.passed is passed, feedback.text
