"""Tell whether a text is worded like the advice that harms, where no rule names what it does.

A linear classifier over the words and pieces of words of a text. `studies/screening/train.py` makes its weights
(wording.bin) from lessons of several authors; design/150 has the figures on authors that it was not made from.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from math import log, sqrt
from pathlib import Path
from zlib import crc32

from mulligan.text.safeguards import folded

SIZE = 1 << 15
"""Weights; each word and piece has the one that its checksum names."""
HEAD = struct.Struct("<ff")
"""Before the weights, one signed byte each: what a unit of them counts, and the score of a text without words."""
_WORD = re.compile(r"--?\w+|\w+")
_PIECES = range(3, 6)
"""Characters of a piece of a word."""


def features(text: str) -> Mapping[int, float]:
    """What the text holds, by number, as a vector of length 1: its words, pairs of words, and pieces of words."""
    counts = Counter(crc32(feature.encode()) % SIZE for feature in _features(folded(text)))
    values = {at: 1 + log(count) for at, count in counts.items()}
    length = sqrt(sum(value * value for value in values.values())) or 1.0
    return {at: value / length for at, value in values.items()}


def _features(simple: str) -> Iterator[str]:
    words = _WORD.findall(simple)
    yield from words
    yield from (f"{word} {behind}" for word, behind in pairwise(words))
    for word in words:
        padded = f" {word} "
        for length in _PIECES:
            yield from (f"#{padded[at : at + length]}" for at in range(len(padded) - length + 1))


def harm(text: str) -> float:
    """How much the text is worded like advice that harms: above 0 it is held back."""
    unit, start, weights = _weights()
    return start + unit * sum(value * weights[at] for at, value in features(text).items())


@cache
def _weights() -> tuple[float, float, memoryview]:
    content = Path(__file__).with_suffix(".bin").read_bytes()
    unit, start = HEAD.unpack_from(content)
    return unit, start, memoryview(content)[HEAD.size :].cast("b")
