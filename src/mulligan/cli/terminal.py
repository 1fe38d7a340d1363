"""Writes results to stdout and messages to stderr, whatever their encoding, and even if a pipe is closed.

All commands draw their tables and pages here: on a terminal within its width and in colour, in a pipe plain.
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

MIN_WIDTH, INDENT = 20, 4
"""The minimum width of the last column beside the others. If there is less room, it follows below, indented."""
MAX_EXTRA_LINES = 2
"""The number of lines that a cell beside the others may have more than below them."""
_HANGING = re.compile(r"\s*(?:\S[^:]{0,20}:\s{2,}|\w[\w ]{0,20}\s{2,}|[-\u2022] |\d+\. )")
"""The hanging indent of a wrapped line: a name before two spaces, or the mark of a list item."""
MIN_OTHER_WIDTH = 10
"""The minimum width to which another column is shortened."""
EMPTY = {"", "-"}
"""Empty cells."""
_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
_STYLE_OF = {
    **dict.fromkeys(("✓", "+", "solved", "passed", "success", "active", "trusted"), "green"),
    **dict.fromkeys(("✗", "x", "failed", "failure", "not solved", "exhausted", "error", "stuck", "gave_up"), "red"),
    **dict.fromkeys(("paused", "interrupted", "over_budget", "quarantined", "unsure"), "yellow"),
    **dict.fromkeys(("retired", "superseded", "absent", "-"), "dim"),
    "running": "blue",
}
"""The styles of cells with only this word."""
T = TypeVar("T")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Drawn(str):
    """Clean text for the terminal, which may have colours."""


def prepare() -> None:
    """Makes stdout and stderr write an escape for a character that their encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def emit(text: str) -> None:
    """Writes text to stdout. On a terminal, a single line is wrapped, and control sequences are removed."""
    plain = on_terminal() and not isinstance(text, Drawn)
    _write(sys.stdout, sentence(clean(_COLOUR.sub("", text)), sys.stdout) if plain else text)


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return bool(sys.stdout) and sys.stdout.isatty()


def width() -> int:
    """Returns the width of the terminal in columns."""
    import shutil  # here, so that `--help` is quick

    return shutil.get_terminal_size().columns


def styled(text: str, style: str) -> str:
    """Returns the text in a style of `_STYLES` ("" for none), if stdout is a terminal with colours."""
    shows = on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if shows and style and text else text


def symbol(fine: bool) -> str:
    """Returns a cell that says whether something works: a symbol on a terminal, else a word."""
    from mulligan.text.states import STATES, state_of  # here, so that `--help` is quick

    if not on_terminal():
        return "ok" if fine else "no"
    state = STATES[state_of(fine)]
    try:
        state.symbol.encode(sys.stdout.encoding)
    except (UnicodeEncodeError, LookupError):
        return state.ascii
    return state.symbol


def drawn(lines: Iterable[str], styles: Sequence[tuple[str, str]] = ()) -> str:
    """Returns the parts of a page, one below the other.

    On a terminal, parts that are not drawn yet are cleaned, wrapped at words with their indentation, and styled.

    Args:
        styles: pairs of a pattern that matches the beginning of a line, and the line's style.
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
            page += [styled(part, style) for part in wrapped(line, width())]
    return Drawn("\n".join(page))


def page_text(blocks: Iterable[Block], max_tokens: int | None = None) -> str:
    """Returns a page made of blocks. On a terminal, tables keep to its width, and headings have colours.

    max_tokens: the tokens of a long text that are shown.
    """
    from mulligan.text.pages import Table, paragraphs

    parts: list[str] = []
    for block, text in paragraphs(blocks, max_tokens):
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
    """Returns the line in parts of at most this width, cut at words, and within a word that is longer."""
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
    """Writes a line to stderr. On a terminal, it is wrapped.

    If writing fails, for example because the disk is full or the descriptor is closed, this and all later lines are
    discarded.
    """
    with suppress(OSError):
        _write(sys.stderr, sentence(line, sys.stderr))


def newest(entries: Sequence[T], limit: int) -> Sequence[T]:
    """Returns the first `limit` entries, and says on stderr if there are more."""
    if len(entries) > limit:
        say(f"Only the newest {limit} are listed. To list more: --limit N")
    return entries[:limit]


def sentence(line: str, stream: TextIO | None) -> str:
    """Returns the line, wrapped at words if the stream is a terminal.

    Several lines, JSON and indented commands are not wrapped.
    """
    fixed = line.startswith((" ", "\x1b", "{", "[")) or "\n" in line.rstrip("\n")
    return line if fixed or not stream or not stream.isatty() else "\n".join(wrapped(line.rstrip("\n"), width()))


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
    """Returns a table with these rows of cells.

    On a terminal, the table fits the terminal's width: empty columns are omitted, columns in `shorten` are shortened,
    and the last column is wrapped. If a table with a heading is still too wide, each row becomes a paragraph.

    Args:
        heading: whether the first row contains the columns' names.
        fold: whether the last column is wrapped. Otherwise, it is shortened.
        shorten: the numbers of the columns that may be shortened.
        inset: the indentation of the table.
    """
    widths, margin = [max(map(len, column)) for column in zip(*rows, strict=True)], " " * inset
    if heading and on_terminal() and inset + sum(widths) + 2 * (len(widths) - 1) > width():
        empty = [n for n, column in enumerate(zip(*rows[1:], strict=True)) if n and set(column) <= EMPTY]
        if empty:
            rows = [[cell for n, cell in enumerate(row) if n not in empty] for row in rows]
            shorten = [n - sum(gap < n for gap in empty) for n in shorten if n not in empty]
            return columns(rows, fold=fold, shorten=shorten, inset=inset)
    if not on_terminal():
        lines = ("  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)) for row in rows)
        return "\n".join(f"{margin}{line}".rstrip() for line in lines)
    last = 0 if fold and widths[-1] > 2 * MIN_WIDTH else min(widths[-1], 2 * MIN_WIDTH)  # a longer one goes below
    for n in shorten:
        excess = inset + sum(widths[:-1]) + 2 * (len(widths) - 1) + last - width()
        if excess > 0:
            widths[n] = max(min(widths[n], MIN_OTHER_WIDTH), widths[n] - excess)
    before = inset + sum(widths[:-1]) + 2 * (len(widths) - 1)
    if heading and before > width():
        return _paragraphs(rows, inset)
    has_room = width() - before >= min(MIN_WIDTH if fold else MIN_WIDTH // 2, widths[-1])
    page: list[str] = []
    for n, row in enumerate(rows):
        cells = [
            _cell(one_line(cell, max(size, 3)), size, "dim" if heading and n == 0 else None if heading else "mark")
            for cell, size in zip(row[:-1], widths[:-1], strict=True)
        ]
        text = clean(row[-1])
        style = "dim" if heading and n == 0 else _STYLE_OF.get(text, "")
        parts = _parts(text, width() - before, fold) if has_room else []
        head, *rest = parts or [""]
        at = before
        if not parts:
            at, rest = inset + INDENT, wrapped(text, width() - inset - INDENT)
        if first := (margin + "  ".join([*cells, styled(head, style)])).rstrip():
            page.append(first)
        page += [" " * at + styled(part, style) for part in rest]
    return Drawn("\n".join(page))


def _parts(text: str, room: int, fold: bool) -> list[str]:
    """Returns the lines of a last cell beside the others.

    Returns none if the cell is better placed below, where no word is cut or there are far fewer lines.
    """
    if not fold:
        return [one_line(text, room)]
    lines, below = wrapped(text, room), width() - INDENT
    longest = max(map(len, text.split()), default=0)
    return [] if room < longest <= below or len(lines) > len(wrapped(text, below)) + MAX_EXTRA_LINES else lines


def _paragraphs(rows: Sequence[Sequence[str]], inset: int) -> str:
    """Returns each row as a paragraph: its first cell, and below it the others with the names of their columns."""
    (_, *names), *others = rows
    page: list[str] = []
    for first, *rest in others:
        text = ", ".join(f"{name} {clean(cell)}" for name, cell in zip(names, rest, strict=True) if cell not in EMPTY)
        page += [f"{' ' * inset}{clean(first)}", *wrapped(f"{' ' * (inset + INDENT)}{text}", width())]
    return Drawn("\n".join(page))


def _cell(text: str, size: int, style: str | None) -> str:
    """Returns a cell, filled up to its width.

    style: one of `_STYLES`; None for the style of its word; "mark" for that of its word only if it is one character,
    since the first column of a table without a heading may have any word as a name.
    """
    if style is None or style == "mark":
        style = _STYLE_OF.get(text, "") if style is None or len(text) == 1 else ""
    return styled(text, style) + " " * max(size - len(text), 0)


def standard_input(what: str) -> str:
    """Returns all of standard input, stripped. Raises `InvalidInput`, which names `what`, if it is not UTF-8."""
    from mulligan.core.errors import InvalidInput

    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"The {what} on standard input is not valid UTF-8: {error}.") from None


def _write(stream: TextIO | None, text: str) -> None:
    """Writes to a stream. If that fails, the rest is discarded: otherwise Python would try again and exit with 120."""
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
    """Discards all further output to this stream."""
    with suppress(OSError):  # its descriptor may be closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def put(text: str, output: str | None) -> None:
    """Writes the output of a command to this file, or to stdout. Raises `InvalidInput` if it cannot be written."""
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
