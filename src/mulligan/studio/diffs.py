"""What changed from one text to another, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff

MOST_LINES = 3000
"""Lines of each text that are compared: more takes too long."""


@dataclass(frozen=True)
class Line:
    """A line of a comparison. sign: "+" came, "-" went, " " stayed, "@" says where the lines below it stand."""

    sign: str
    text: str


def diff(before: str, after: str) -> Sequence[Line]:
    """The changed lines with three around them; empty if nothing changed."""
    old, new = (text.splitlines()[:MOST_LINES] for text in (before, after))
    found = list(unified_diff(old, new, lineterm=""))[2:]  # without the names of files
    return [Line(line[0], line if line[0] == "@" else line[1:]) for line in found]
