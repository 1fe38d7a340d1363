"""Reads actions of the form `Name[argument]` and the thoughts before them from a model's text.

It also recognises the observation of a refused action. It never raises.

Source: ReAct (Yao et al. 2022). This module also accepts unambiguous variants that its code does not.
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
"""The first line of the observation of a refused action."""
_MARKS = "`*"


class Action(NamedTuple):
    """An action. `name` is in lower case, and `argument` is stripped and never empty."""

    name: str
    argument: str


class Turn(NamedTuple):
    """A thought and an action of a model, each in one line; either may be empty."""

    thought: str
    action: str


def parse_action(line: str) -> Action | None:
    """Returns the action in a line, or None if there is none.

    An `Action 1:` before it, Markdown around it and punctuation after it are ignored. The last bracket closes the
    argument, so an argument can contain brackets.
    """
    match = _FORM.fullmatch(_bare(line))
    argument = match[2].strip() if match else ""
    return Action(match[1].lower(), argument) if match and argument else None


def parse_turn(text: str) -> Turn:
    """Returns the first thought and the first action of a completion that continues `Thought n:`.

    The text is cut at an observation, which the model invented, and at a second thought. Without a label, the last line
    is the action if it has the form of one.
    """
    if label := _THOUGHT.match(text.lstrip()):
        text = text.lstrip()[label.end() :]
    for end in (_OBSERVATION, _THOUGHT):
        if label := end.search(text):
            text = text[: label.start()]
    if label := _ACTION.search(text):
        return Turn(_folded(text[: label.start()]), first_line(text[label.end() :]))
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and parse_action(lines[-1]):
        return Turn(_folded(" ".join(lines[:-1])), _bare(lines[-1]))
    return Turn(_folded(text), "")


def first_line(text: str) -> str:
    """Returns the first line that is not blank, without its label and Markdown; "" for none."""
    return next((_bare(line) for line in text.splitlines() if line.strip()), "")


def refused(observation: str) -> bool:
    """Returns whether the first line of an observation says that the action failed."""
    return bool(_REFUSED.search(observed_line(observation)))


def observed_line(observation: str) -> str:
    """Returns the first line of an observation that is not blank, in at most 200 characters."""
    return one_line(next((line for line in observation.splitlines() if line.strip()), ""), 200)


def _bare(line: str) -> str:
    line = line.strip()
    if label := _ACTION.match(line):
        line = line[label.end() :]
    return line.strip().strip(_MARKS).strip()


def _folded(text: str) -> str:
    return " ".join(text.split())
