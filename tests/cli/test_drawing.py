"""Tables and pages on a terminal: within its width, cut at words, in colour where that is wanted; in a pipe as they are."""

import io
import os
import pty
import re
from collections.abc import Callable, Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.cli.terminal import Drawn, columns, drawn, emit, page_text, styled, symbol, wrapped
from mulligan.text.pages import Facts, Heading, Line, Table

ROWS = [
    ("run", "state", "model", "task"),
    ("b1", "solved", "local:qwen2.5-coder-1.5b", "Write a function that returns the nearest hundred of a number."),
    ("b2", "not solved", "local:smollm2-135m", "Name the capital of France."),
]
Widths = Callable[[int], None]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[Widths]:
    """Makes stdout a terminal of this width."""
    person, program = pty.openpty()
    stdout = io.TextIOWrapper(io.FileIO(program, "w"), encoding="utf-8")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def begin(width: int) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.stdout", stdout)

    yield begin
    monkeypatch.undo()
    stdout.close()
    os.close(person)


def bare(text: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", text)


def test_in_a_pipe_a_table_is_as_wide_as_it_needs() -> None:
    lines = columns(ROWS).splitlines()
    assert lines[1].endswith("Write a function that returns the nearest hundred of a number.")
    assert "\x1b" not in columns(ROWS)
    assert [symbol(True), symbol(False)] == ["ok", "no"]
    assert drawn(["a\x1b[31mb", "c"]) == "a\x1b[31mb\nc"


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_table_keeps_to_the_terminal_and_cuts_no_word(terminal: Widths, width: int) -> None:
    terminal(width)
    table = columns(ROWS, shorten=(2,))
    lines = bare(table).splitlines()
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for word in ["Write", "a", "function", "that", "returns", "the", "nearest", "hundred", "of", "a", "number."]:
        assert word in words
    one_each = columns(ROWS, shorten=(2,), fold=False)
    assert len(one_each.splitlines()) == len(ROWS) or width == 40


def test_columns_without_a_value_are_left_out_before_a_table_becomes_paragraphs(terminal: Widths) -> None:
    several = [("id", "by", "title", "why"), ("b1", "-", "Look at all pages of the order history", "-")]
    terminal(40)
    assert bare(columns(several)).splitlines() == [
        "id  title",
        "b1  Look at all pages of the order",
        "    history",
    ]
    terminal(60)
    assert bare(columns(several)).splitlines()[0].split() == ["id", "by", "title", "why"]


@pytest.mark.parametrize("width", [40, 200])
def test_a_page_of_blocks_keeps_to_the_terminal(terminal: Widths, width: int) -> None:
    terminal(width)
    table = Table(["run", "tokens per solved case", "95 % interval"], [["reflexion", "451", "86.2% to 100.0%"]])
    page = bare(page_text([Heading(1, "Report"), Facts({"Solved": "24 of 24, " * 5}), table, Line("Means. " * 12)]))
    assert max(map(len, page.splitlines())) <= width
    assert "Solved  24 of 24," in page
    assert ("\n        of 24," in page) == (width == 40)  # below the value, not below its name
    assert ("reflexion                     451" in page) == (width == 200)


@pytest.mark.parametrize("width", [60, 200])
def test_colours_say_nothing_that_a_word_does_not_say(
    terminal: Widths, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal(width)
    coloured = columns(ROWS)
    assert "\x1b[32msolved\x1b[0m" in coloured
    assert "\x1b[31mnot solved\x1b[0m" in coloured
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as without:
            without.setenv(name, value)
            assert columns(ROWS) == bare(coloured)
            assert styled("x", "red") == "x"


def test_a_page_is_wrapped_with_its_indentation(terminal: Widths) -> None:
    terminal(60)
    page = drawn(["Try 1: failed", "    " + "several words " * 12], [("Try", "red")])
    first, *rest = page.splitlines()
    assert first == "\x1b[31mTry 1: failed\x1b[0m"
    assert len(rest) > 2
    assert all(line.startswith(("    several", "    words")) for line in rest)
    assert drawn([page, "x"]).splitlines() == [*page.splitlines(), "x"]


def test_foreign_text_brings_no_colours(terminal: Widths, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal(60)
    assert "\x1b" not in bare(columns([("a", "\x1b[31mb\x1b[2J")], heading=False))
    assert drawn(["\x1b]0;title\x07 text"]) == "]0;title text"
    written = io.StringIO()
    written.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", written)
    emit("\x1b[31mred\x1b[0m \x1b[2Jgone")
    emit(Drawn("\x1b[31mred\x1b[0m"))
    assert written.getvalue() == "red [2Jgone\n\x1b[31mred\x1b[0m\n"


@given(st.text(st.characters(blacklist_categories=("C", "Zl", "Zp")), max_size=200), st.integers(20, 200))
def test_wrapping_loses_nothing_but_spaces(text: str, width: int) -> None:
    parts = wrapped(text, width)
    assert all(len(part) <= width for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())
