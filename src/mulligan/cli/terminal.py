"""What goes to the terminal: results to stdout, all else to stderr, whatever the encoding and whoever has hung up."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from mulligan.text.plain import clean as clean
from mulligan.text.plain import one_line as one_line


def prepare() -> None:
    """A character that the terminal's encoding lacks is written as an escape, instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def emit(text: str) -> None:
    """To stdout, with a line end; to a terminal cleaned, as what a model says may steer it."""
    _write(sys.stdout, clean(text) if sys.stdout and sys.stdout.isatty() else text)


def say(line: str) -> None:
    """To stderr, with a line end. What cannot be told there (a full disk, a closed descriptor) stops no work."""
    with suppress(OSError):
        _write(sys.stderr, line)


def overwrite(line: str) -> None:
    """On a terminal, this in place of the line that was overwritten last; "" leaves none. Elsewhere nothing."""
    if sys.stderr and sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        with suppress(OSError):
            sys.stderr.write(f"\r\x1b[K{one_line(line, width)}")
            sys.stderr.flush()


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns as wide as they need."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def standard_input(what: str) -> str:
    """All of standard input, stripped. `what` it should be is said when it is not UTF-8. Raises `InvalidInput`."""
    from mulligan.core.errors import InvalidInput

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The {what} on standard input is not UTF-8: {error}.") from None


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # Python's answer to a descriptor that was closed before it began
        return
    try:
        stream.write(text if text.endswith("\n") else f"{text}\n")
        stream.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough: the rest goes nowhere, quietly
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def put(text: str, output: str | None) -> None:
    """What a command makes: into this file, or to stdout. Raises `InvalidInput` when it cannot be written."""
    if output is None:
        emit(text)
        return
    from pathlib import Path

    from mulligan.core.errors import InvalidInput

    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}.") from error
    say(f"{output} written")
