"""What a terminal shows of an episode: at any width, with and without colours and Unicode; nothing of a lesson is lost."""

import io
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from terminals import letters, on_terminal, without_controls

from mulligan.cli import words
from mulligan.cli.live import Screen
from mulligan.cli.words import Entry
from mulligan.text.plain import clean
from mulligan.text.states import STATES

LESSON = "Say right, and say it plainly: déjà vu. " * 12 + "the end"


WAITS = """
import asyncio, os, sys
from mulligan.actors.complete import Complete

class Waits(Complete):
    async def act(self, episode, past):
        async with asyncio.timeout(30):
            while os.get_terminal_size(2).columns != 80:
                await asyncio.sleep(0.02)
        return await super().act(episode, past)
"""


def shown(entry: Entry, width: int) -> str:
    out = io.StringIO()
    Screen(lambda: "", Console(file=out, width=width, highlight=False)).show(entry)
    return out.getvalue()


SHOWN_ALONE = st.characters(exclude_characters="🏻🏼🏽🏾🏿")
"""Without tones of skin: rich drops one that follows no person."""


@given(st.text(SHOWN_ALONE, max_size=400), st.integers(20, 200), st.sampled_from(["lesson", "failed"]))
def test_no_text_is_lost_at_any_width(text: str, width: int, state: str) -> None:
    entry = Entry(state, "try 1 of 4: it", text, " (note: kept)")
    seen = letters(shown(entry, width))
    told = clean(text).encode("utf-8", "backslashreplace").decode()
    assert letters(told) in seen
    assert "(note:kept)" in seen
    assert letters(clean(text)) in letters(entry.line)
    assert len(entry.line.splitlines()) <= 1 or any(c in text for c in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


def second_with(here: Path, lesson: str) -> list[str]:
    (here / "long.txt").write_text(f"wrong\n---\n{lesson}\n---\nright", encoding="utf-8")
    named = ("--evaluator", "./judge.py", "--model", "scripted:long.txt", "--strategy", "reflexion")
    return [sys.executable, "-m", "mulligan", "solve", "say it", *named]


@pytest.mark.slow
@pytest.mark.parametrize(
    "columns", [80, pytest.param(24, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.slow)]
)
def test_what_a_terminal_shows_stays(here: Path, columns: int) -> None:
    status, out, seen = on_terminal(second_with(here, LESSON), columns, NO_COLOR="1")
    assert (status, out) == (0, "right\n")
    assert "\x1b[?25l" in seen, "the cursor is hidden while the run goes on"
    assert "\x1b[?25h" in seen, "and shown again"
    assert not re.search(r"\x1b\[[0-9;]*m", seen.replace("\x1b[0m", "")), "no colour where NO_COLOR is set"
    kept = without_controls(seen)
    order = ["try1of4:failed", letters(LESSON), "try2of4:passed", "-wrong", "+right", "✓solvedontry2of4"]
    assert sorted(order, key=letters(kept).index) == order
    assert max(map(len, re.split(r"\r?\n|\r", kept))) <= columns


@pytest.mark.slow
def test_a_terminal_may_be_resized_while_a_run_goes_on(here: Path) -> None:
    """The heading is at 200 columns; all that comes after the resize is wrapped at 80."""
    (here / "waits.py").write_text(WAITS)
    command = [*second_with(here, LESSON), "--actor", "./waits.py"]
    status, out, seen = on_terminal(command, 200, ("try 1 of 4: trying", 80), NO_COLOR="1")
    assert (status, out) == (0, "right\n")
    kept = without_controls(seen)
    assert letters(LESSON) in letters(kept)
    after = kept.partition("try 1 of 4: failed")[2]
    assert max(map(len, re.split(r"\r?\n|\r", after))) <= 80
    assert "solvedontry2of4" in letters(kept)


@pytest.mark.slow
def test_a_terminal_has_colours(here: Path) -> None:
    status, _, seen = on_terminal(second_with(here, "Say right."), 80, NO_COLOR="")
    assert status == 0
    codes = {"green": 32, "red": 31, "cyan": 36}
    for name, words_ in (("failed", "try 1 of 4: failed"), ("lesson", "try 1 of 4: lesson")):
        state = STATES[name]
        assert f"\x1b[{codes[state.colour]}m{state.symbol} {words_}" in seen


@pytest.mark.slow
def test_a_terminal_without_unicode_gets_ascii(here: Path) -> None:
    poor = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "NO_COLOR": "1"}
    status, _, seen = on_terminal(second_with(here, LESSON), 80, **poor)
    assert status == 0
    assert seen.isascii()
    kept = letters(without_controls(seen))
    assert letters(LESSON.encode("ascii", "backslashreplace").decode()) in kept
    assert "+solvedontry2of4" in kept


def test_a_long_reason_says_where_the_rest_is() -> None:
    told = words.reason("x" * (words.REASON + 5), "1da8351c")
    assert told == "x" * words.REASON + " (5 more characters: mulligan runs show 1da8351c --full)"
    assert words.reason("short", "1da8351c") == "short"


def test_each_state_differs_without_colour() -> None:
    for texts in ([s.symbol for s in STATES.values()], [s.ascii for s in STATES.values()]):
        assert len(set(texts)) == len(texts)
        assert {len(text) for text in texts} == {1}
    assert all(state.ascii.isascii() for state in STATES.values())
