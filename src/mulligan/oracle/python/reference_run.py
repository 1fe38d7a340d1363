"""Runs asserts as the executor of Reflexion's code does, in the sandbox. A program that imports nothing of Mulligan's.

Each test gets a process, which is killed when its time is over: no state leaks, and `sys.exit`, a crash or an endless
loop fail that test alone. What a test looks at is computed in another one: the left side of its comparison, else the
whole expression. The candidate shares these processes, so that the report can be forged.
"""

from __future__ import annotations

import ast
import builtins
import json
import os
import select
import signal
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PRELUDE = "from typing import *\n"
MODULE = "executors.py_executor"
"""Where the reference's code runs: in its executor's own module."""
TIMEOUT = "TIMEOUT"
GONE = "the process ended by itself"
GROWING = 0.5
"""Seconds. The reference has no limit of memory: what comes to ours after that long would run out of time there."""


def space() -> dict[str, Any]:
    """Of a module that can be found by its name, as dataclasses and type hints want; classes print the name."""
    module = sys.modules[MODULE] = type(sys)(MODULE)
    names: dict[str, Any] = module.__dict__
    names["__builtins__"] = builtins
    return names


def holds(code: str, test: str) -> str:
    """Raises what the code or the test raises."""
    exec(compile(f"{PRELUDE}{code}\n{test}", "<string>", "exec"), space())
    return ""


def value(code: str, test: str) -> str:
    """What the test looks at, as text."""
    names = space()
    exec(compile(f"{PRELUDE}{code}", "<string>", "exec"), names)
    statement: Any = ast.parse(test).body[0]
    whole: Any = statement.test
    looked_at: Any = getattr(whole, "left", whole)
    return str(eval(compile(ast.unparse(looked_at), "<string>", "eval"), names))


def words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return type(error).__name__


def within(seconds: float, work: Callable[[str, str], str], code: str, test: str) -> tuple[bool, str]:
    """Whether the work came to an end without an exception, and its text or that of the exception."""
    mine, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(mine)
        answer = _alone(work, code, test)
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(answer)
        os._exit(0)
    os.close(theirs)
    answer = b""
    try:
        answer = _read(mine, monotonic() + seconds)
    except TimeoutError:
        return False, TIMEOUT
    finally:
        os.close(mine)
        _end(child)
    try:
        good, text = json.loads(answer)
    except ValueError:
        return False, GONE
    return good, text


def _alone(work: Callable[[str, str], str], code: str, test: str) -> bytes:
    """In the child: its own group, no input and no output."""
    own, dumps, leave, began = os.getpid(), json.dumps, os._exit, monotonic()
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    try:
        answer = [True, work(code, test)]
    except BaseException as error:
        grown = isinstance(error, MemoryError) and monotonic() - began > GROWING
        answer = [False, TIMEOUT if grown else words(error)]
    if os.getpid() != own:  # the code has forked
        leave(0)
    return dumps(answer).encode() + b"\n"


def _read(pipe: int, ends: float) -> bytes:
    """To the first line's end, or to that of the pipe. Raises `TimeoutError`."""
    parts: list[bytes] = []
    while (left := ends - monotonic()) > 0:
        if not select.select([pipe], [], [], left)[0]:
            break
        part = os.read(pipe, 1 << 20)
        parts.append(part)
        if not part or part.endswith(b"\n"):
            return b"".join(parts)
    raise TimeoutError


def _end(child: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except OSError:
            continue
    os.waitpid(child, 0)


def judge() -> None:
    """One job on the standard input, one report on the standard output."""
    job = json.load(sys.stdin)
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    __import__("typing")  # so that the children need not

    report: list[list[Any]] = []
    for test in job["tests"]:
        good, _ = within(job["seconds"], holds, job["code"], test)
        answer = "" if good else within(job["seconds"], value, job["code"], test)[1]
        report.append([good, answer])
    sys.stdout.write(json.dumps(report))
