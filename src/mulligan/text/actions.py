"""Read actions of the form `Name[argument]`, and the thought before one, from a model's text; and from an observation,
whether the action was refused. It never raises.

Source: ReAct (Yao et al. 2022) and its reference, more forgiving where only one thing can be meant.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mulligan.text.plain import one_line

_LABEL = r"(?:\*\*)?{}[ \t]*\d*[ \t]*(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*"
_ACTION = re.compile(rf"^[ \t]*{_LABEL.format('action')}", re.IGNORECASE | re.MULTILINE)
_THOUGHT = re.compile(rf"^[ \t]*{_LABEL.format('thought')}", re.IGNORECASE | re.MULTILINE)
_OBSERVATION = re.compile(rf"^[ \t]*{_LABEL.format('observation')}", re.IGNORECASE | re.MULTILINE)
_FORM = re.compile(r"(\w+)[ \t]*\[(.+)\][\s.,;:!]*")
_REFUSED = re.compile(
    r"^\W*(\w*(error|exception)\b|[45]\d\d\b(?=:| [a-z])|invalid|unknown|cannot|denied|failed|refused|missing)"
    r"|\bno such\b|\bnot found\b|\b(is|are|was) (not|no|unknown|invalid)\b|\bmust (be|have|begin|start|name)\b",
    re.IGNORECASE,
)
"""What the first line of an observation looks like where the action was refused."""
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


def refused(observation: str) -> bool:
    """Whether an observation says that the action failed, by its first line."""
    return bool(_REFUSED.search(observed_line(observation)))


def observed_line(observation: str) -> str:
    """The first line of an observation with anything in it, folded and cut."""
    return one_line(next((line for line in observation.splitlines() if line.strip()), ""), 200)


def _bare(line: str) -> str:
    line = line.strip()
    if label := _ACTION.match(line):
        line = line[label.end() :]
    return line.strip().strip(_MARKS).strip()


def _folded(text: str) -> str:
    return " ".join(text.split())
