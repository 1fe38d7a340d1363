"""What cannot leave the attempt's process fails the test that asked for it, whatever that test catches."""

from collections.abc import Awaitable, Callable

import pytest

from mulligan.core.records import Feedback

Judge = Callable[..., Awaitable[Feedback]]

RIGHT = "def check_pos(x):\n    assert x > 0\n    return x\n"
DEEP = "def check_pos(x):\n    value = x\n    for _ in range(500): value = [value]\n    return value"
UNREADABLE = (
    "class Odd(list):\n    def __iter__(self): raise ValueError\n    def __len__(self): raise ValueError\n"
    "def check_pos(x): return Odd()"
)
GARBAGE = (
    "import os\ndef check_pos(x):\n    for fd in range(3, 20):\n        try: os.write(fd, {line!r})\n"
    "        except OSError: pass\n    return x"
)
REFUSED = {
    "too large": ("def check_pos(x): return 'x' * 50_000_000", "is too large"),
    "too deep": (DEEP, "nested more than 200 deep"),
    "unreadable": (UNREADABLE, "cannot be read"),
    "a garbage line": (GARBAGE.format(line=b"l3 svalue nothing\n"), "what came back"),
    "a reply of no form": (GARBAGE.format(line=b"l2 s5 s6\n"), "the returned value is not a reply"),
    "an exception of no form": (GARBAGE.format(line=b"l6 sraise l0 s s iz s\n"), "what came back"),
    "an exception without a name": (
        GARBAGE.format(line=b"l6 sraise l0 s s i0 s\n"),
        "the returned value is not a reply",
    ),
    "it ends": ("import os\ndef check_pos(x): os._exit(0)", "the process ended by itself"),
    "it hangs": ("def check_pos(x):\n    while True: pass", "timed out"),
    "an iterator of too large": (
        "def check_pos(x):\n    def items():\n        yield 'x' * 50_000_000\n    return items()",
        "is too large",
    ),
}
PYTEST = "import pytest, contextlib\n"
CALL = "for _ in iter(check_pos(-1)): pass"
CATCHING = {
    "raises AssertionError": f"{PYTEST}with pytest.raises(AssertionError):\n    {CALL}",
    "raises Exception": f"{PYTEST}with pytest.raises(Exception):\n    {CALL}",
    "raises BaseException": f"{PYTEST}with pytest.raises(BaseException):\n    {CALL}",
    "raises, in a test function": f"{PYTEST}def test_it():\n    with pytest.raises(BaseException):\n        {CALL}",
    "raises, called": f"{PYTEST}def run():\n    {CALL}\npytest.raises(BaseException, run)",
    "except Exception": f"try:\n    {CALL}\n    assert False\nexcept Exception:\n    pass",
    "a bare except": f"ok = False\ntry:\n    {CALL}\nexcept:\n    ok = True\nassert ok",
    "a bare except, in a check": (
        f"def check(c):\n    for _ in range(2):\n        try:\n            {CALL}\n        except:\n            continue\n"
        "        assert False\n    assert True\ncheck(check_pos)"
    ),
    "suppress": f"{PYTEST}with contextlib.suppress(BaseException):\n    {CALL}\n    assert False\nassert True",
    "finally": f"def run():\n    try:\n        {CALL}\n        return False\n    finally:\n        return True\nassert run()",
    "a manager of its own": (
        "class Quiet:\n    def __enter__(self): return self\n    def __exit__(self, *about): return True\n"
        f"done = []\nwith Quiet():\n    {CALL}\n    done.append(1)\nassert not done"
    ),
    "a test function that skips": (
        f"{PYTEST}def test_it():\n    try:\n        {CALL}\n        assert False\n    except:\n        pytest.skip('later')\n"
        "def test_other():\n    assert check_pos(1) == 1"
    ),
}


COMMON = ("too large", "raises AssertionError")


@pytest.mark.light_cases(5)
@pytest.mark.parametrize(
    ("why", "how"),
    [
        pytest.param(why, how, marks=() if COMMON[0] == why or COMMON[1] == how else pytest.mark.slow)
        for why in REFUSED
        for how in CATCHING
    ],
)
async def test_no_test_can_catch_a_refusal(judge: Judge, why: str, how: str) -> None:
    code, said = REFUSED[why]
    feedback = await judge(code, CATCHING[how], seconds=2.0)
    assert (feedback.passed, feedback.notes) == (False, ()), feedback.text
    assert said in feedback.text


@pytest.mark.parametrize("how", CATCHING)
async def test_an_exception_of_the_attempt_is_caught_as_ever(judge: Judge, how: str) -> None:
    feedback = await judge(RIGHT, CATCHING[how])
    assert (feedback.passed, feedback.notes) == (True, ()), feedback.text


async def test_one_refusal_fails_one_test(judge: Judge) -> None:
    code = "def f(x):\n    if x == 1: return 'x' * 50_000_000\n    raise ValueError"
    rows = "".join(f"with pytest.raises(Exception):\n    f({n})\n" for n in range(4))
    feedback = await judge(code, f"{PYTEST}{rows}")
    assert (feedback.passed, feedback.score) == (False, 0.75)


async def test_a_method_of_what_stays_behind_is_called_there(judge: Judge) -> None:
    tests = f"{PYTEST}with pytest.raises(AttributeError):\n    f(1).append(2)"
    assert (await judge("def f(x): return (x,)", tests)).passed is True
    feedback = await judge("class A:\n    def append(self, x): pass\ndef f(x): return A()", tests)
    assert feedback.passed is False
    assert "nothing was raised" in feedback.text


async def test_a_caught_need_for_one_process_still_chooses_it(judge: Judge) -> None:
    tests = "class P:\n    x = 3\ntry:\n    got = f(P())\nexcept:\n    got = 3\nassert got == 3"
    feedback = await judge("def f(p): return p.x + 1", tests)
    assert feedback.passed is False
    assert feedback.notes == ("in-process: can be forged (an argument is an object of type P)",)


async def test_a_timeout_in_process_cannot_be_caught_either(judge: Judge) -> None:
    tests = "import inspect\ntry:\n    f(1)\nexcept:\n    pass\nassert True"
    feedback = await judge("def f(x):\n    while True: pass", tests, seconds=1.0)
    assert feedback.passed is False
    assert "timed out" in feedback.text


async def test_stop_iteration_ends_what_python_iterates_and_is_an_exception_elsewhere(judge: Judge) -> None:
    code = "def f(x):\n    if x == 1: raise StopIteration\n    return x"
    assert (await judge(code, "assert all(map(f, [2, 1, 0]))")).passed is True
    assert (await judge(code, "for x in [2, 1]:\n    assert f(x)")).passed is False


LISTENS = (
    "import socket\ndef port():\n    with socket.socket() as s:\n        s.bind(('127.0.0.1', 0))\n        return 1\n"
)


@pytest.mark.parametrize("beside", [False, True])
async def test_what_the_sandbox_does_not_permit_is_no_failure_of_the_code(judge: Judge, beside: bool) -> None:
    settings = {"tests_run": "beside"} if beside else {}
    tests = "import urllib.request\nassert port() == 1"
    feedback = await judge(LISTENS, tests, **settings)
    assert feedback.passed is None
    assert "the sandbox refused an operation in line 3 of the code" in feedback.text
    assert (await judge(LISTENS, f"{tests}\nassert not issubclass(int, int)", **settings)).passed is False
    assert (await judge(LISTENS, "assert port() == 1", **settings)).passed is False, "these tests need no network"


async def test_loading_what_the_sandbox_does_not_permit_is_no_failure_either(judge: Judge) -> None:
    feedback = await judge(
        "import socket\nserver = socket.socket()\ndef f(): return 1", "from http.client import OK\nassert f() == 1"
    )
    assert feedback.passed is None
    assert "line 2 of the code" in feedback.text


@pytest.mark.parametrize(
    ("test", "unsupported"),
    [
        ("def test_a(capsys):\n    with capsys.disabled(): assert f(1) == 1\n", "capsys.disabled"),
        (
            "import pytest\ndef test_a():\n    with pytest.warns(UserWarning) as record: assert f(1) == 1\n"
            "    assert record.pop(UserWarning)\n",
            "pop of recorded warnings",
        ),
    ],
)
async def test_what_a_fixture_lacks_is_no_failure_of_the_code(judge: Judge, test: str, unsupported: str) -> None:
    feedback = await judge("import warnings\ndef f(x):\n    warnings.warn('x')\n    return x", test)
    assert feedback.passed is None
    assert unsupported in feedback.text
