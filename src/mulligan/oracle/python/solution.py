"""Loads the candidate's code, and describes in plain values what it defines and what it raises.

It knows nothing of the tests. Runs inside the sandbox, so it imports only what is quick to import.
"""

from __future__ import annotations

import posix
import sys

from mulligan.oracle.python.wire import encode, stdlib_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader
    from typing import Any

FILE = "solution.py"
CAUSES = 5
"""Exceptions that are reported as the cause of another."""


def channel() -> tuple[BufferedReader, Callable[[str], None]]:
    """A file to read lines from, and a function that writes a line. From now on, 0, 1 and 2 lead to /dev/null."""
    reader = open(posix.dup(0), "rb")  # noqa: SIM115  (for as long as the process lives)
    write_to = posix.dup(1)
    null = posix.open("/dev/null", posix.O_RDWR)
    for descriptor in (0, 1, 2):
        posix.dup2(null, descriptor)

    def send(line: str) -> None:
        data = line.encode("ascii", "backslashreplace") + b"\n"
        while data:
            data = data[posix.write(write_to, data) :]

    return reader, send


def load(code: str) -> dict[str, Any]:
    """Run the code as the module `solution`. Returns its names, and raises what it raises."""
    module = type(sys)("solution")
    sys.modules["solution"] = module
    module.__file__ = FILE
    exec(compile(code.removeprefix("\ufeff"), FILE, "exec", dont_inherit=True), module.__dict__)
    return module.__dict__


def defined(space: dict[str, Any]) -> list[str]:
    """The public names that the code itself defines, without imports."""
    return [
        name
        for name, value in list(space.items())
        if not name.startswith("_")
        and not isinstance(value, type(sys))
        and getattr(value, "__module__", "solution") == "solution"
    ]


def failure(error: BaseException, code: str, hold: Callable[[Any], str | None], causes: int = CAUSES) -> list[Any]:
    """An exception as plain values: lineage, arguments, attributes, message, line of the code, its text, cause and
    context.

    hold: makes the tokens of values that cannot cross, as `special` of `encode`.
    """
    try:
        message = str(error)[:2000]
    except BaseException:
        message = "(its message cannot be shown)"
    line, text = place(error, code)
    parts: list[str] = []
    encodings: list[tuple[Any, Any]] = [(list(error.args), [message]), (dict(vars(error)), {})]
    for part, instead in encodings:
        try:
            parts.append(encode(part, hold))
        except BaseException:
            parts.append(encode(instead))
    related = [
        failure(other, code, hold, causes - 1) if causes and isinstance(other, BaseException) else None
        for other in (error.__cause__, error.__context__)
    ]
    return [lineage(type(error)), *parts, message, line, text, *related]


def lineage(kind: type) -> list[Any] | str:
    """A class of exceptions: its name if it is of the standard library, else its number, name and bases."""
    if (name := stdlib_name(kind)) is not None:
        return name
    bases = [lineage(base) for base in kind.__bases__ if issubclass(base, BaseException)]
    return [str(id(kind)), str(kind.__name__), bases]


def place(error: BaseException, code: str) -> tuple[int, str]:
    """Where an exception was raised in the candidate's code: the line (0 for nowhere) and its text."""
    line = 0
    if isinstance(error, SyntaxError) and error.filename == FILE:
        line = error.lineno or 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    lines = code.splitlines()
    return line, lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""
