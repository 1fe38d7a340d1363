"""Compares two texts by their words, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
"""Characters of scripts without spaces, as a part of a pattern: each of them counts as a word."""
_WORD = re.compile(rf"[{UNSPACED}]|(?:[^\W_{UNSPACED}]|[\u0300-\u036f])+")
_BREAKS = {number: " " for number in range(128) if not chr(number).isalnum()}
"""For texts in ASCII, where splitting takes a tenth of the time of searching."""


def words_of(text: str) -> list[str]:
    """Returns the words in order, in one case and without punctuation."""
    if text.isascii():
        return text.lower().translate(_BREAKS).split()
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def runs_of(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    """Returns the runs of `length` consecutive words."""
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def likeness(one: str, other: str) -> float:
    """Returns the share of three-word runs of either text that both have; 1 if both have the same words."""
    (mine, ours), (theirs, its) = _compared(one), _compared(other)
    if mine == theirs:
        return 1.0
    both = len(ours & its)
    return both / (len(ours) + len(its) - both) if both else 0.0


@lru_cache(maxsize=64)
def _compared(text: str) -> tuple[list[str], set[tuple[str, ...]]]:
    """Returns the words of a text and its three-word runs. Remembered, because lessons are compared often."""
    words = words_of(text)
    return words, runs_of(words, 3)
