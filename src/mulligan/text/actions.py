"""Read actions of the form `Name[argument]`, and the thought before one, from a model's text. It never raises.

Source: ReAct (Yao et al. 2022) and its reference, more forgiving where only one thing can be meant.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LABEL = r"(?:\*\*)?{}[ \t]*\d*[ \t]*(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*"
_ACTION = re.compile(rf"^[ \t]*{_LABEL.format('action')}", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(rf"^[ \t]*{_LABEL.format('thought')}", re.IGNORECASE | re.MULTILINE)
_OBSERVATION = re.compile(rf"^[ \t]*{_LABEL.format('observation')}", re.IGNORECASE | re.MULTILINE)
_FORM = re.compile(r"(\w+)[ \t]*\[(.+)\][\s.,;:!]*")
_MARKS = "`*"


class Action(NamedTuple):
    """`name` in lower case; `argument` without white space around it, never empty."""

    name: str
    argument: str


class Turn(NamedTuple):
    """What a model thought and did, each in one line; either may be empty."""

    thought: str
    action: str


def parse_action(line: str) -> Action | None:
    """The action of a line; None if there is none.

    An `Action 1:` before it, marks of Markdown around it and punctuation behind it are passed over; the last bracket
    closes the argument, so that an argument may hold brackets.
    """
    found = _FORM.fullmatch(_bare(line))
    argument = found[2].strip() if found else ""
    return Action(found[1].lower(), argument) if found and argument else None


def parse_turn(text: str) -> Turn:
    """The first thought and the first action of a completion that goes on from `Thought n:`.

    What a model says that it observed is cut off, with all behind it, and so is a second thought: neither was seen or
    asked for. Without the label, a last line that is an action counts as one.
    """
    if began := _THOUGHT.match(text.lstrip()):
        text = text.lstrip()[began.end() :]
    for ends in (_OBSERVATION, _THOUGHT):
        if cut := ends.search(text):
            text = text[: cut.start()]
    if label := _ACTION.search(text):
        return Turn(_folded(text[: label.start()]), first_line(text[label.end() :]))
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and parse_action(lines[-1]):
        return Turn(_folded(" ".join(lines[:-1])), _bare(lines[-1]))
    return Turn(_folded(text), "")


def first_line(text: str) -> str:
    """The first line with anything in it, without its label and marks; "" for none."""
    return next((_bare(line) for line in text.splitlines() if line.strip()), "")


def _bare(line: str) -> str:
    line = line.strip()
    if label := _ACTION.match(line):
        line = line[label.end() :]
    return line.strip().strip(_MARKS).strip()


def _folded(text: str) -> str:
    return " ".join(text.split())
