"""Compares two texts line by line, and changed lines word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_LINES = 3000
"""The number of lines of each text that are compared, so that the time is bounded."""
CONTEXT = 3
"""The number of unchanged lines shown before and after a change."""
ALIKE = 0.4
"""The likeness from which two lines are compared word by word."""
MAX_WORDS = 200
"""The most words of a line that is compared word by word."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True)
class DiffLine:
    """A line of a comparison.

    Attributes:
        sign: "+" added, "-" removed, " " unchanged, "@" the position of the lines below, or a note.
        parts: the text in pieces, each with whether it differs from the other version of the line.
    """

    sign: str
    parts: tuple[tuple[str, bool], ...]

    @property
    def text(self) -> str:
        return "".join(part for part, _ in self.parts)


def diff(before: str, after: str) -> Sequence[DiffLine]:
    """Returns the changed lines with the lines around them; empty if nothing changed.

    If the texts also differ after `MAX_LINES` lines, the last line says that only these are compared.
    """
    old, new = before.splitlines(), after.splitlines()
    groups = SequenceMatcher(None, old[:MAX_LINES], new[:MAX_LINES]).get_grouped_opcodes(CONTEXT)
    lines = [line for group in groups for line in _group(group, old, new)]
    if old[MAX_LINES:] != new[MAX_LINES:]:
        lines.append(DiffLine("@", ((f"Only the first {MAX_LINES:,} lines are compared.", False),)))
    return lines


def _group(
    group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]
) -> Iterator[DiffLine]:
    (_, a, _, b, _), (_, _, c, _, d) = group[0], group[-1]
    yield DiffLine("@", ((f"@@ -{a + 1},{c - a} +{b + 1},{d - b} @@", False),))
    for tag, i, j, k, m in group:
        if tag == "equal":
            yield from (DiffLine(" ", ((line, False),)) for line in old[i:j])
            continue
        removed, added = old[i:j], new[k:m]
        pairs = [_words(*pair) for pair in zip(removed, added, strict=False)] if len(removed) == len(added) else []
        yield from (DiffLine("-", pairs[n][0] if pairs else ((line, False),)) for n, line in enumerate(removed))
        yield from (DiffLine("+", pairs[n][1] if pairs else ((line, False),)) for n, line in enumerate(added))


def _words(before: str, after: str) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    """Returns both lines in pieces, or each as one piece if they have little in common."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    whole = ((before, False),), ((after, False),)
    if max(len(old), len(new)) > MAX_WORDS:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < ALIKE:
        return whole
    left, right = list[tuple[str, bool]](), list[tuple[str, bool]]()
    for tag, i, j, k, m in matcher.get_opcodes():
        if i < j:
            left.append(("".join(old[i:j]), tag != "equal"))
        if k < m:
            right.append(("".join(new[k:m]), tag != "equal"))
    return tuple(left), tuple(right)
