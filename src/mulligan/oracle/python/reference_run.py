"""Runs asserts like the executor in Reflexion's code, in the sandbox. It imports nothing of Mulligan.

Each test gets a process, which is killed when its time is over: no state leaks, and `sys.exit`, a crash or an endless
loop fails only that test. The value that a failed test saw is computed in another process: the left side of its
comparison, else the whole expression. The candidate shares these processes, so the report can be forged.
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
"""The module in which the reference runs code: its executor."""
TIMEOUT = "TIMEOUT"
GONE = "the process ended by itself"
GROWING = 0.5
"""Seconds. The reference does not limit memory: code that reaches our limit after that would run out of time there."""


def space() -> dict[str, Any]:
    """The names of a new module, which is registered: dataclasses and type hints need that, and classes print it."""
    module = sys.modules[MODULE] = type(sys)(MODULE)
    names: dict[str, Any] = module.__dict__
    names["__builtins__"] = builtins
    return names


def holds(code: str, test: str) -> str:
    """Run the code and the test. Raises what they raise."""
    exec(compile(f"{PRELUDE}{code}\n{test}", "<string>", "exec"), space())
    return ""


def value(code: str, test: str) -> str:
    """The value that a test looks at, as text."""
    names = space()
    exec(compile(f"{PRELUDE}{code}", "<string>", "exec"), names)
    statement: Any = ast.parse(test).body[0]
    condition: Any = statement.test
    looked_at: Any = getattr(condition, "left", condition)
    return str(eval(compile(ast.unparse(looked_at), "<string>", "eval"), names))


def words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:
        return type(error).__name__


def within(seconds: float, work: Callable[[str, str], str], code: str, test: str) -> tuple[bool, str]:
    """Do the work in another process. Returns whether it raised nothing, and its text or that of the exception."""
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
    """Do the work in the child, in a group of its own, without input and output."""
    pid, dumps, leave, started = os.getpid(), json.dumps, os._exit, monotonic()
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    try:
        answer = [True, work(code, test)]
    except BaseException as error:
        grown = isinstance(error, MemoryError) and monotonic() - started > GROWING
        answer = [False, TIMEOUT if grown else words(error)]
    if os.getpid() != pid:  # the code has forked
        leave(0)
    return dumps(answer).encode() + b"\n"


def _read(pipe: int, ends: float) -> bytes:
    """Read a line, or to the end of the pipe. Raises `TimeoutError`."""
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
    """Read a job from standard input, and write a report to standard output."""
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
