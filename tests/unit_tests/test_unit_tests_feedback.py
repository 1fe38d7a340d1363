"""What the feedback says, for each shape of test and each way to fail."""

from collections.abc import Awaitable, Callable

import pytest
from inline_snapshot import snapshot

from mulligan.core.records import Feedback

Judge = Callable[..., Awaitable[Feedback]]

ADD = "def add(a, b):\n    return a - b\n"


async def test_which_passed_and_which_failed_with_the_value(judge: Judge) -> None:
    feedback = await judge(
        ADD, "assert add(1, 0) == 1\nassert add(1, 2) == 3\nassert 7 == add(5, 2)\nassert add(0, 0) == 0"
    )
    assert (feedback.passed, feedback.score, feedback.source) == (False, 0.5, "unit_tests")
    assert feedback.text == snapshot(
        """\
Tests passed:
assert add(1, 0) == 1
assert add(0, 0) == 0

Tests failed:
assert add(1, 2) == 3  # add(1, 2) returned -1
assert 7 == add(5, 2)  # add(5, 2) returned 3\
"""
    )


SHAPES = {
    "not": ("assert not add(2, 1)", "add(2, 1) returned 1"),
    "near": ("assert abs(add(1.5, 1) - 2.5) < 1e-6", "add(1.5, 1) returned 0.5"),
    "in": ("assert add(1, 2) in (3, 4)", "add(1, 2) returned -1"),
    "less": ("assert 1 < add(1, 2) < 4", "add(1, 2) returned -1"),
    "is None": ("assert add(1, 2) is None", "add(1, 2) returned -1"),
    "is not None": ("assert add(1, 1) is not None and add(1, 1)", "add(1, 1) returned 0"),
    "and": ("assert add(1, 0) == 1 and add(1, 1) == 2", "add(1, 0) returned 1; add(1, 1) returned 0"),
    "or": ("assert add(1, 1) == 3 or add(1, 2) == 3", "add(1, 1) returned 0; add(1, 2) returned -1"),
    "index": ("assert [add(1, 1)][0] == 2", "add(1, 1) returned 0"),
    "bare": ("assert add(1, 1)", "add(1, 1) returned 0"),
    "nested": ("assert add(add(1, 1), 3) == 5", "add(1, 1) returned 0; add(add(1, 1), 3) returned -3"),
    "wrapped": ("assert str(add(1, 1)) == '2'", "add(1, 1) returned 0"),
    "method": ("assert add(1, 1).bit_length() == 2", "add(1, 1) returned 0"),
    "message": ("assert add(1, 1) == 2, 'ones'", "add(1, 1) returned 0; ones"),
    "all of": (
        "assert all(add(x, 1) == x + 1 for x in [1, 2])",
        "add(x, 1) returned 0; with x = 1",
    ),
}


@pytest.mark.light_cases(5)
@pytest.mark.parametrize("shape", SHAPES)
async def test_the_value_is_given_whatever_the_shape(judge: Judge, shape: str) -> None:
    tests, said = SHAPES[shape]
    feedback = await judge(ADD, tests)
    expression = tests.partition(", 'ones'")[0]
    assert feedback.text == f"Tests passed:\n(none)\n\nTests failed:\n{expression}  # {said}"


OTHERS = {
    "a variable": ("r = add(1, 2)\nassert r == 3", "assert r == 3  # with r = -1"),
    "a loop": (
        "for x, y in [(1, 0), (2, 1), (3, 1)]:\n    assert add(x, y) == x + y",
        "assert add(x, y) == x + y  # add(x, y) returned 1; with x = 2, y = 1; failed in 2 of 3 rounds",
    ),
    "a test function": (
        "def test_add():\n    for x in (0, 1):\n        assert add(x, x) == 2 * x",
        "test_add: assert add(x, x) == 2 * x  # add(x, x) returned 0; with x = 1",
    ),
    "rows": (
        "import pytest\n@pytest.mark.parametrize('x', [0, 4])\ndef test_add(x):\n    assert add(x, x) == 2 * x",
        "test_add[4]: assert add(x, x) == 2 * x  # add(x, x) returned 0; with x = 4",
    ),
    "a helper called twice": (
        "def same(a, b):\n    assert a == b\nsame(add(1, 0), 1)\nsame(add(1, 1), 2)",
        "same(add(1, 1), 2): assert a == b  # with a = 0, b = 2",
    ),
    "a helper in a loop": (
        "def same(a, b):\n    assert a == b\nfor row in [[1, 0], [1, 1]]:\n    same(add(*row), sum(row))",
        "same(add(*row), sum(row)): assert a == b  # with row = [1, 1], a = 0, b = 2; failed in 1 of 2 rounds",
    ),
    "nothing raised": (
        "import pytest\nwith pytest.raises(ValueError):\n    add(1, 1)",
        "with pytest.raises(ValueError): add(1, 1)  # raised AssertionError: nothing was raised, expected ValueError",
    ),
    "a value of the wrong kind": (
        "assert add({1}, {2})[0] == 1",
        "assert add({1}, {2})[0] == 1  # raised TypeError: 'set' object is not subscriptable",
    ),
    "an exception": (
        "assert add('a', 1) == 1",
        "assert add('a', 1) == 1  # raised TypeError: unsupported operand type(s) for -: 'str' and 'int' "
        "(line 2: `return a - b`)",
    ),
}


@pytest.mark.parametrize("what", OTHERS)
async def test_failures_beyond_one_assert(judge: Judge, what: str) -> None:
    tests, line = OTHERS[what]
    feedback = await judge(ADD, tests)
    assert feedback.passed is False
    assert feedback.text.partition("Tests failed:\n")[2] == line


async def test_a_check_function_is_as_many_tests_as_it_has_asserts(judge: Judge) -> None:
    tests = "def check(candidate):\n    assert candidate(1, 0) == 1\n    assert candidate(1, 1) == 2\n\ncheck(add)\n"
    feedback = await judge(ADD, tests)
    assert feedback.score == 0.5
    assert feedback.text == snapshot(
        """\
Tests passed:
assert add(1, 0) == 1

Tests failed:
assert add(1, 1) == 2  # add(1, 1) returned 0\
"""
    )


@pytest.mark.slow
async def test_a_hanging_test_is_named_and_does_not_take_the_others_with_it(judge: Judge) -> None:
    code = "def f(x):\n    while x == 1:\n        pass\n    return x\n"
    feedback = await judge(code, "assert f(0) == 0\nassert f(1) == 1\nassert f(2) == 2", seconds=3.0)
    assert (feedback.passed, feedback.score) == (False, 2 / 3)
    assert "assert f(1) == 1  # timed out after 1.0 s" in feedback.text


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("first", ["", "import inspect\n"])
async def test_the_whole_file_is_bounded_when_every_test_hangs(judge: Judge, first: str) -> None:
    tests = first + "\n".join(f"assert f({n}) == {n}" for n in range(50))
    feedback = await judge("def f(x):\n    while True:\n        pass\n", tests, seconds=2.0)
    assert (feedback.passed, feedback.score) == (False, 0.0)
    assert "assert f(0) == 0  # timed out after 0.5 s" in feedback.text
    assert "not run: the 2 s for all tests were used up" in feedback.text


async def test_a_dying_candidate_does_not_take_the_other_tests_with_it(judge: Judge) -> None:
    code = "import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x\n"
    feedback = await judge(code, "assert f(0) == 0\nassert f(1) == 1\nassert f(2) == 2")
    assert feedback.score == 2 / 3
    assert "assert f(1) == 1  # the process ended by itself during this test" in feedback.text


LOADING = {
    "syntax": (
        "def f(x)\n    return x\n",
        "The code cannot be loaded: SyntaxError: expected ':' in line 1: `def f(x)`.",
    ),
    "exception": ("import os\nprint(1 / 0)\n", "ZeroDivisionError: division by zero in line 2: `print(1 / 0)`."),
    "import": ("import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all' in line 1"),
    "exit": ("import sys\nsys.exit(0)\n", "The code cannot be loaded: SystemExit: 0 in line 2: `sys.exit(0)`."),
    "null": ("x = '\0'\n", "The code cannot be loaded: SyntaxError: source code string cannot contain null bytes"),
    "hang": ("while True:\n    pass\n", "The code cannot be loaded: timed out after 1 s."),
}


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("first", ["", "import inspect\n"])
@pytest.mark.parametrize("how", LOADING)
async def test_code_that_cannot_be_loaded_is_reported_once(judge: Judge, how: str, first: str) -> None:
    code, said = LOADING[how]
    feedback = await judge(code, first + "assert f(1) == 1\nassert f(2) == 2", seconds=1.0 if how == "hang" else 10.0)
    assert (feedback.passed, feedback.score) == (False, 0.0)
    assert said in feedback.text
    assert feedback.text.endswith("No test was run.")


async def test_a_missing_function_is_named_with_what_is_there(judge: Judge) -> None:
    feedback = await judge("def ad(a, b):\n    return a + b\nLIMIT = 3\n", "assert add(1, 2) == 3")
    assert feedback.text == snapshot(
        """\
Missing: the tests use add, which the code does not define; it defines ad, LIMIT instead.

Tests passed:
(none)

Tests failed:
assert add(1, 2) == 3  # raised NameError: name 'add' is not defined\
"""
    )


async def test_a_missing_function_that_is_imported_is_named_likewise(judge: Judge) -> None:
    feedback = await judge("def ad(a, b):\n    return a + b\n", "from solution import sum\nassert sum(1, 2) == 3")
    assert feedback.text == snapshot("""\
Missing: the tests use sum, which the code does not define; it defines ad instead.

Tests passed:
(none)

Tests failed:
from solution import sum  # raised NameError: name 'sum' is not defined
assert sum(1, 2) == 3  # not reached: sum has no value, see above\
""")


async def test_what_follows_a_failed_statement_is_not_reached(judge: Judge) -> None:
    feedback = await judge("def f():\n    raise ValueError('no')\n", "r = f()\nassert r == 1\nassert 1 == 1")
    assert feedback.score == 1 / 3
    assert feedback.text.partition("Tests failed:\n")[2] == snapshot(
        """\
r = f()  # raised ValueError: no (line 2: `raise ValueError('no')`)
assert r == 1  # not reached: r has no value, see above\
"""
    )


async def test_in_a_check_what_follows_a_failed_statement_is_not_reached_and_the_rest_is(judge: Judge) -> None:
    tests = "def check(c):\n    r = c(0)\n    assert r == 1\n    assert c(2) == 0.5\n\ncheck(f)\n"
    feedback = await judge("def f(x): return 1 / x", tests)
    assert feedback.text == snapshot("""\
Tests passed:
assert f(2) == 0.5

Tests failed:
r = f(0)  # raised ZeroDivisionError: division by zero (line 1: `def f(x): return 1 / x`)
assert r == 1  # not reached: r has no value, see above\
""")


@pytest.mark.parametrize(
    ("code", "tests", "said"),
    [
        ("def f(): return (x for x in 'ab')", "assert list(f()) == ['a']", "<generator that gave 'a', 'b'>"),
        ("f = 3", "assert f(1) == 1", "raised TypeError: 'int' object is not callable"),
    ],
)
async def test_a_value_where_something_else_was_expected(judge: Judge, code: str, tests: str, said: str) -> None:
    feedback = await judge(code, tests)
    assert feedback.passed is False
    assert said in feedback.text


BROKEN = {
    "a name of the tests": "x = undefined_thing + 1\nassert f(1) == x",
    "an error before any call": "x = 1 / 0\nassert f(1) == 1",
}


@pytest.mark.parametrize("how", BROKEN)
async def test_broken_tests_are_no_verdict(judge: Judge, how: str) -> None:
    feedback = await judge("def f(x): return x", BROKEN[how])
    assert (feedback.passed, feedback.score) == (None, None)
    assert feedback.text.startswith(
        "The tests could not judge the code, they are broken themselves: line 1 of the tests"
    )


async def test_tests_that_run_nothing_are_no_verdict(judge: Judge) -> None:
    feedback = await judge("def f(x): return x", "for x in []:\n    assert f(x)")
    assert feedback.passed is None


@pytest.mark.slow
async def test_tests_that_hang_without_a_call_are_no_verdict(judge: Judge) -> None:
    feedback = await judge("def f(x): return x", "while True:\n    pass\nassert f(1)", seconds=0.5)
    assert feedback.passed is None
    assert "did not finish within 0.5 s" in feedback.text


@pytest.mark.parametrize("first", ["", "import inspect\n"])
async def test_long_values_and_many_tests_are_cut_and_say_so(judge: Judge, first: str) -> None:
    tests = first + "\n".join(f"assert f({n}) == {n}" for n in range(60)) + "\nassert len(f(0)) == 20_000"
    feedback = await judge("def f(x):\n    return 'abc' * 3000\n", tests)
    assert len(feedback.text) < 4_500
    assert "characters left out" in feedback.text
    assert "... and 5" in feedback.text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(): return f()", "RecursionError"),
        ("def f(): return len(bytearray(64 << 30))", "MemoryError"),
        ("def f(): return 'x' * 50_000_000", "is too large"),
        ("def f(): return object()", "f() returned <object of type object>"),
        ("def f():\n    a = []\n    a.append(a)\n    return a", "nested more than 200 deep"),
        ("import sys\ndef f(): sys.exit(0)", "raised SystemExit: 0 (line 2: `def f(): sys.exit(0)`)"),
        ("import threading\ndef f(): threading.Thread(target=print).join()", "raised RuntimeError: cannot join thread"),
    ],
)
async def test_trouble_in_the_candidate_is_false_with_its_reason(judge: Judge, code: str, said: str) -> None:
    feedback = await judge(code, "assert f() == 1")
    assert (feedback.passed, feedback.score) == (False, 0.0)
    assert said in feedback.text
