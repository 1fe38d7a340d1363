"""Cuts text to a token budget, with a note of what was cut. It never raises when nothing more can be cut.

Tokens are estimated; pass `count` to count them exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from mulligan.core.records import Step

Count = Callable[[str], int]

_NOTE = "[… {:,} of {:,} tokens cut …]"

_PIECES = re.compile(
    r"[\u2e80-\U0010ffff]"  # Chinese, Japanese, Korean, emoji: about one token a character
    r"|[A-Z]?[a-z]{1,8}|[A-Z]{1,3}|\d"
    r"|[^\W\dA-Za-z_]{1,2}"  # other alphabets
    r"|[^\w\s]{1,2}|_|\n+|  +"
)


def estimate(text: str) -> int:
    """Returns the approximate number of tokens in `text`. This takes 40 ms for a million characters.

    Compared with a byte-pair tokenizer with 49,000 tokens, on code, tests, JSON and English prose, sums were within 10
    %, and single texts of 2,000 characters between 29 % too low and 21 % too high. An English-only tokenizer needs up
    to two tokens for a Chinese character, which counts as one here.
    """
    return _PIECES.subn("", text)[1]


def truncate(steps: Sequence[Step], tokens: int, count: Count = estimate) -> tuple[Step, ...]:
    """Returns the steps with observations shortened, the longest first, until all fit into `tokens`.

    The longest are cut to the length of the next longest and so on. Each keeps its head and its tail. Thoughts and
    actions are not shortened. If the steps do not fit even with notes alone, they are returned with notes alone. Equal
    observations are shortened alike.
    """
    kept = sum(count(step.thought) + count(step.action) for step in steps)
    sizes = [count(step.observation) for step in steps]
    if kept + sum(sizes) <= tokens:
        return tuple(steps)
    least = [min(size, count(_NOTE.format(size, size))) for size in sizes]

    def total(level: int) -> int:
        return kept + sum(min(size, max(level, low)) for size, low in zip(sizes, least, strict=True))

    level = _greatest(lambda level: total(level) <= tokens, max(sizes, default=0))
    return tuple(
        step if size <= max(level, low) else replace(step, observation=_cut(step.observation, size, level, count))
        for step, size, low in zip(steps, sizes, least, strict=True)
    )


def truncate_text(text: str, tokens: int, count: Count = estimate) -> str:
    """Returns `text` or, if it is too long, its beginning and end around a note about what was cut.

    If the note alone does not fit, only the note is returned, or the text if it is not longer than the note.
    """
    size = count(text)
    if size <= max(tokens, count(_NOTE.format(size, size))):
        return text
    return _cut(text, size, tokens, count)


def _cut(text: str, size: int, tokens: int, count: Count) -> str:
    """Returns as much of the head and tail of `text` as fits, with the note between them."""

    def short(chars: int) -> str:
        head, tail = text[: chars - chars // 2], text[len(text) - chars // 2 :]
        cut = max(size - count(head) - count(tail), 1)
        return "\n".join(part for part in (head, _NOTE.format(cut, size), tail) if part)

    return short(_greatest(lambda chars: count(short(chars)) <= tokens, len(text) - 1))


def _greatest(fits: Callable[[int], bool], most: int) -> int:
    """Returns the greatest number from 0 to `most` that fits, or 0. Found by doubling, so small answers are cheap."""
    high = 1
    while high <= most and fits(high):
        high *= 2
    low, high = high // 2, min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
