"""Writes to the terminal: results to stdout, all else to stderr. Survives odd encodings and closed pipes."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from mulligan.text.plain import clean as clean
from mulligan.text.plain import one_line as one_line


def prepare() -> None:
    """Make stdout and stderr write an escape for a character that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def emit(text: str) -> None:
    """Write a line to stdout. On a terminal it is cleaned, as a model's text may contain control sequences."""
    _write(sys.stdout, clean(text) if sys.stdout and sys.stdout.isatty() else text)


def say(line: str) -> None:
    """Write a line to stderr. Where that fails (a full disk, a closed descriptor), it and all later lines are
    discarded, also what Python would flush as it ends."""
    with suppress(OSError):
        _write(sys.stderr, line)


def has_screen() -> bool:
    """Whether stderr is a terminal that can redraw a line."""
    return bool(sys.stderr) and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns as wide as they need."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def standard_input(what: str) -> str:
    """All of standard input, stripped. Raises `InvalidInput`, naming `what` was expected, if it is not UTF-8."""
    from mulligan.core.errors import InvalidInput

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The {what} on standard input is not UTF-8: {error}.") from None


def _write(stream: TextIO | None, text: str) -> None:
    """Where a stream takes no more, what is left of it is discarded: Python would try again as it ends, and exit with
    120."""
    if stream is None:  # Python's value for a descriptor that was closed before it started
        return
    try:
        stream.write(text if text.endswith("\n") else f"{text}\n")
        stream.flush()
    except OSError as error:
        _discard(stream)
        if not isinstance(error, BrokenPipeError):  # the reader, such as `head`, has closed the pipe
            raise


def _discard(stream: TextIO) -> None:
    """Send what is written to this stream from now on to nowhere."""
    with suppress(OSError):  # its descriptor may be closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def put(text: str, output: str | None) -> None:
    """Write the output of a command to this file, or to stdout. Raises `InvalidInput` if it cannot be written."""
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
