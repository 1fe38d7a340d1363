"""What the families share: draws from a seed, and what a right answer is worth."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

MOST, LEAST, PRICE = 10, 1, 2
"""Points for a right answer with one query or call, the least that a right one gets, and what a further call costs."""
_LETTERS = "bcdfghjkmnpqrstvwxz"


def drawn(*parts: object) -> Random:
    """A source of chance that depends on these values alone, in every process."""
    return Random(":".join(map(str, parts)))


def odd_names(chance: Random, form: str) -> Iterator[str]:
    """Names that mean nothing, each once: of the form, `?` is replaced by a letter and `#` by a digit."""
    seen = set[str]()
    while True:
        letters = (chance.choice(_LETTERS) if c == "?" else chance.choice("23456789") if c == "#" else c for c in form)
        if (name := "".join(letters)) not in seen:
            seen.add(name)
            yield name


def points(calls: int) -> int:
    """What a right answer is worth after so many queries or calls."""
    return max(MOST - PRICE * max(calls - 1, 0), LEAST)
