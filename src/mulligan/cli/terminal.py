"""Writes to the terminal: results to stdout, all else to stderr. Survives odd encodings and closed pipes.

Tables and pages are drawn here for all commands: in a pipe as they are, on a terminal within its width and in colour.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, TypeVar

from mulligan.text.plain import clean as clean
from mulligan.text.plain import one_line as one_line

if TYPE_CHECKING:
    from mulligan.text.pages import Block

LEAST, INDENT = 20, 4
"""The least width of the last column beside the others; if there is less, it follows below, indented."""
LINES = 2
"""How many more lines a cell may take beside the others than below them."""
_HANGING = re.compile(r"\s*(?:\S[^:]{0,20}:\s{2,}|\w[\w ]{0,20}\s{2,}|[-\u2022] |\d+\. )")
"""What the further lines of a wrapped line stand to the right of: a name before two spaces, or a list's mark."""
NARROW = 10
"""The least width that another column is shortened to."""
EMPTY = {"", "-"}
"""Cells that say nothing."""
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
_STYLE_OF = {
    **dict.fromkeys(("✓", "+", "solved", "passed", "success", "active", "trusted"), "green"),
    **dict.fromkeys(("✗", "x", "failed", "failure", "not solved", "exhausted", "error", "stuck", "gave_up"), "red"),
    **dict.fromkeys(("paused", "interrupted", "over_budget", "quarantined", "unsure"), "yellow"),
    **dict.fromkeys(("retired", "superseded", "absent", "-"), "dim"),
    "running": "blue",
}
"""How a cell that holds this word alone is drawn."""
T = TypeVar("T")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Drawn(str):
    """Text for the terminal that is clean, and may have colours."""


def prepare() -> None:
    """Make stdout and stderr write an escape for a character that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def emit(text: str) -> None:
    """Write text to stdout. On a terminal it is cleaned, as a model's text may contain control sequences, and wrapped
    at words if it is one sentence."""
    plain = on_terminal() and not isinstance(text, Drawn)
    _write(sys.stdout, sentence(clean(_COLOUR.sub("", text)), sys.stdout) if plain else text)


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return bool(sys.stdout) and sys.stdout.isatty()


def width() -> int:
    """The columns of the terminal."""
    import shutil  # not above: `--help` is quick

    return shutil.get_terminal_size().columns


def styled(text: str, style: str) -> str:
    """The text in a style of `_STYLES`, where stdout is a terminal that shows colours. "" is no style."""
    shows = on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if shows and style and text else text


def symbol(fine: bool) -> str:
    """Whether something works, as a cell: a mark on a terminal (ASCII where its encoding needs that), else a word."""
    from mulligan.text.states import STATES, state_of  # not above: `--help` is quick

    if not on_terminal():
        return "ok" if fine else "no"
    state = STATES[state_of(fine)]
    try:
        state.symbol.encode(sys.stdout.encoding)
    except (UnicodeEncodeError, LookupError):
        return state.ascii
    return state.symbol


def drawn(lines: Iterable[str], styles: Sequence[tuple[str, str]] = ()) -> str:
    """The parts of a page, one below the other.

    On a terminal a part that is not drawn yet is cleaned, wrapped at words with its indentation, and styled: `styles`
    has pairs of an expression that a line begins with, and its style.
    """
    if not on_terminal():
        return "\n".join(lines)
    page: list[str] = []
    for part in lines:
        if isinstance(part, Drawn):
            page.append(part)
            continue
        for line in clean(part).expandtabs(4).split("\n"):
            style = next((style for begin, style in styles if re.match(begin, line)), "")
            page += [styled(one, style) for one in wrapped(line, width())]
    return Drawn("\n".join(page))


def page_text(blocks: Iterable[Block], most: int | None = None) -> str:
    """A page made of blocks. On a terminal its tables keep to the width, and its signs have their colours.

    most: tokens of one text that are shown.
    """
    from mulligan.text.pages import Table, paragraphs

    parts: list[str] = []
    for block, text in paragraphs(blocks, most):
        if isinstance(block, Table) and on_terminal() and max(map(len, text.split("\n"))) > width():
            parts += ["", columns([block.columns, *block.rows])]
        else:
            parts.append(drawn([text], [("", _style(block))]))
    return Drawn("\n".join(parts)) if on_terminal() else "\n".join(parts)


def _style(block: Block) -> str:
    from mulligan.text.pages import Bar, Heading, Line, Quote
    from mulligan.text.states import STATES

    match block:
        case Heading(mark=mark) | Bar(mark=mark) if mark and STATES[mark].colour != "default":
            return STATES[mark].colour
        case Heading():
            return "bold"
        case Line(small=True):
            return "dim"
        case Quote():
            return STATES["lesson"].colour
        case _:
            return ""


def wrapped(line: str, columns: int) -> list[str]:
    """The line in parts of at most this width, cut at words and, where a word is longer, within it."""
    import textwrap

    if len(line) <= columns:
        return [line]
    indent = len(line) - len(line.lstrip())
    hanging = len(mark[0]) if (mark := _HANGING.match(line)) else indent
    begin, after = line[: min(indent, columns // 2)], " " * min(hanging, columns // 2)
    return textwrap.wrap(
        line[len(begin) :],
        columns,
        initial_indent=begin,
        subsequent_indent=after,
        replace_whitespace=False,
        break_on_hyphens=False,
    ) or [line]


def say(line: str) -> None:
    """Write a line to stderr, on a terminal wrapped at words; a command that stands in a line of its own stays whole.
    Where that fails (a full disk, a closed descriptor), it and all later lines are discarded, also what Python would
    flush as it ends."""
    with suppress(OSError):
        _write(sys.stderr, sentence(line, sys.stderr))


def newest(entries: Sequence[T], limit: int) -> Sequence[T]:
    """The first `limit` of these, and a line on stderr if there are more."""
    if len(entries) > limit:
        say(f"This list has only the newest {limit}. To list more: --limit N")
    return entries[:limit]


def sentence(line: str, stream: TextIO | None) -> str:
    """The line, wrapped at words where the stream is a terminal: not a command, which stands to the right, JSON, or
    several lines."""
    whole = line.startswith((" ", "\x1b", "{", "[")) or "\n" in line.rstrip("\n")
    return line if whole or not stream or not stream.isatty() else "\n".join(wrapped(line.rstrip("\n"), width()))


def has_screen() -> bool:
    """Whether stderr is a terminal that can redraw a line."""
    return bool(sys.stderr) and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def columns(
    rows: Sequence[Sequence[str]],
    *,
    heading: bool = True,
    fold: bool = True,
    shorten: Sequence[int] = (),
    inset: int = 0,
) -> str:
    """Rows of cells in columns.

    In a pipe they are as wide as they need. On a terminal the table keeps to its width: columns without a value are
    left out, those of `shorten` are shortened as far as needed, and the last one is wrapped at words or, without
    `fold`, shortened. If that is too wide and has a heading, it has each row as a paragraph.

    Args:
        heading: whether the first row has the names of the columns.
        inset: how far the table stands to the right.
    """
    widths, margin = [max(map(len, column)) for column in zip(*rows, strict=True)], " " * inset
    if heading and on_terminal() and inset + sum(widths) + 2 * (len(widths) - 1) > width():
        empty = [n for n, column in enumerate(zip(*rows[1:], strict=True)) if n and set(column) <= EMPTY]
        if empty:
            rows = [[cell for n, cell in enumerate(row) if n not in empty] for row in rows]
            shorten = [n - sum(one < n for one in empty) for n in shorten if n not in empty]
            return columns(rows, fold=fold, shorten=shorten, inset=inset)
    if not on_terminal():
        lines = ("  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(f"{margin}{line}".rstrip() for line in lines)
    last = 0 if fold and widths[-1] > 2 * LEAST else min(widths[-1], 2 * LEAST)  # a longer one may follow below
    for n in shorten:
        excess = inset + sum(widths[:-1]) + 2 * (len(widths) - 1) + last - width()
        if excess > 0:
            widths[n] = max(min(widths[n], NARROW), widths[n] - excess)
    before = inset + sum(widths[:-1]) + 2 * (len(widths) - 1)
    if heading and before > width():
        return _paragraphs(rows, inset)
    beside = width() - before >= min(LEAST if fold else LEAST // 2, widths[-1])
    page: list[str] = []
    for n, row in enumerate(rows):
        cells = [
            _cell(one_line(cell, max(wide, 3)), wide, "dim" if heading and n == 0 else None if heading else "mark")
            for cell, wide in zip(row[:-1], widths[:-1], strict=True)
        ]
        text = clean(row[-1])
        style = "dim" if heading and n == 0 else _STYLE_OF.get(text, "")
        parts = _parts(text, width() - before, fold) if beside else []
        head, *rest = parts or [""]
        at = before
        if not parts:
            at, rest = inset + INDENT, wrapped(text, width() - inset - INDENT)
        if first := (margin + "  ".join([*cells, styled(head, style)])).rstrip():
            page.append(first)
        page += [" " * at + styled(part, style) for part in rest]
    return Drawn("\n".join(page))


def _parts(text: str, room: int, fold: bool) -> list[str]:
    """The lines of a last cell beside the others; none if they are better below: a word would be cut, or the lines
    would be many more."""
    if not fold:
        return [one_line(text, room)]
    lines, below = wrapped(text, room), width() - INDENT
    longest = max(map(len, text.split()), default=0)
    return [] if room < longest <= below or len(lines) > len(wrapped(text, below)) + LINES else lines


def _paragraphs(rows: Sequence[Sequence[str]], inset: int) -> str:
    """Each row below its first cell, with the names of its columns."""
    (_, *names), *others = rows
    page: list[str] = []
    for first, *rest in others:
        text = ", ".join(f"{name} {clean(cell)}" for name, cell in zip(names, rest, strict=True) if cell not in EMPTY)
        page += [f"{' ' * inset}{clean(first)}", *wrapped(f"{' ' * (inset + INDENT)}{text}", width())]
    return Drawn("\n".join(page))


def _cell(text: str, wide: int, style: str | None) -> str:
    """The text, filled up to its width. style: one of `_STYLES`; None: by its word; "mark": by its word if it is a
    mark, as the first column of a table without a heading may have any word as a name."""
    if style is None or style == "mark":
        style = _STYLE_OF.get(text, "") if style is None or len(text) == 1 else ""
    return styled(text, style) + " " * max(wide - len(text), 0)


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
    say(f"Wrote {output}")
