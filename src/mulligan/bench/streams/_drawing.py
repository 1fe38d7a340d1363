"""Random draws from a seed, and the points for a right answer, for all families."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

MAX_POINTS, MIN_POINTS, PRICE = 10, 1, 2
"""The points for a right answer with one query or call, the minimum for a right answer, and the cost of a further call.
"""
_LETTERS = "bcdfghjkmnpqrstvwxz"


def generator(*parts: object) -> Random:
    """A random generator that depends only on these values, in every process."""
    return Random(":".join(map(str, parts)))


def odd_names(chance: Random, form: str) -> Iterator[str]:
    """Yields meaningless names, each once. In `form`, `?` stands for a letter and `#` for a digit."""
    seen = set[str]()
    while True:
        letters = (chance.choice(_LETTERS) if c == "?" else chance.choice("23456789") if c == "#" else c for c in form)
        if (name := "".join(letters)) not in seen:
            seen.add(name)
            yield name


def points(calls: int) -> int:
    """The points for a right answer after this many queries or calls."""
    return max(MAX_POINTS - PRICE * max(calls - 1, 0), MIN_POINTS)
