"""Tokenizers: they cut texts into the pieces of words that a model knows.

`WordPieces` is the tokenizer of the uncased BERT models: lower case, no accents, each ideograph a word. It agrees with
the reference on every character that the Unicode tables of both classify alike. `Unigram` is the tokenizer of
multilingual models: it cuts a word in the most likely way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf
from typing import Protocol

LONGEST_WORD = 100  # characters; a longer word is unknown
LONGEST_RUN = 2_000  # characters without a space that `Unigram` reads
REMEMBERED_WORDS = 20_000
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
SPECIAL = re.compile(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])")


class Pieces(Protocol):
    """A tokenizer."""

    def numbers(self, text: str, most: int) -> list[int]:
        """The numbers of the pieces of a text, at most `most`, including the marks for beginning and end.

        A text that is too long loses its end.
        """
        ...


class WordPieces:
    """The tokenizer of the uncased BERT models. vocabulary: the pieces in the order of their numbers.

    `##` begins a piece that continues a word.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._number = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = (self._number["[UNK]"],)
        self._of_word = lru_cache(REMEMBERED_WORDS)(self._split)

    def numbers(self, text: str, most: int) -> list[int]:
        """See `Pieces.numbers`."""
        numbers = [self._number["[CLS]"]]
        for part in SPECIAL.split(text):
            if len(numbers) >= most:
                break
            if SPECIAL.fullmatch(part):
                numbers.append(self._number[part])
                continue
            for word in part.translate(_FOLDED).split():
                numbers.extend(self._of_word(word))
                if len(numbers) >= most:
                    break
        return [*numbers[: most - 1], self._number["[SEP]"]]

    def _split(self, word: str) -> tuple[int, ...]:
        """Takes the longest piece that fits, repeatedly. If none fits, the whole word is unknown."""
        if len(word) > LONGEST_WORD:
            return self._unknown
        numbers: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                if (number := self._number.get(mark + word[start:end])) is not None:
                    numbers.append(number)
                    start = end
                    break
            else:
                return self._unknown
        return tuple(numbers)


class Unigram:
    """The tokenizer of multilingual models.

    Args:
        pieces: the pieces in the order of their numbers; `▁` begins a word.
        scores: the log-probability of each piece.
        replacements: the replacement of each character that is not used as it is.
        marks: the numbers of the marks for beginning, end, padding and unknown characters.
    """

    def __init__(
        self, pieces: Sequence[str], scores: Sequence[float], replacements: Mapping[int, str], marks: Sequence[int]
    ) -> None:
        self._number = {piece: number for number, piece in enumerate(pieces)}
        self._scores, self._replacements = scores, replacements
        self._begin, self._end, _, self._unknown = marks
        self._longest, self._least = max(map(len, pieces)), min(scores) - 10
        self._of_word = lru_cache(REMEMBERED_WORDS)(self._split)

    def numbers(self, text: str, most: int) -> list[int]:
        """See `Pieces.numbers`."""
        numbers = [self._begin]
        for word in unicodedata.normalize("NFKC", text).translate(self._replacements).split():
            numbers.extend(self._of_word(f"▁{word[:LONGEST_RUN]}"))
            if len(numbers) >= most:
                break
        return [*numbers[: most - 1], self._end]

    def _split(self, word: str) -> tuple[int, ...]:
        """The most likely pieces (Viterbi)."""
        best = [0.0] + [-inf] * len(word)
        last = [(0, 0)] * (len(word) + 1)  # for each end of a piece: the piece, and its start
        for start in range(len(word)):
            for end in range(start + 1, min(len(word), start + self._longest) + 1):
                number = self._number.get(word[start:end])
                if number is None and end > start + 1:
                    continue
                score = best[start] + (self._least if number is None else self._scores[number])
                if score > best[end]:
                    best[end], last[end] = score, (self._unknown if number is None else number, start)
        numbers, position = list[int](), len(word)
        while position:
            number, position = last[position]
            numbers.append(number)
        return tuple(reversed(numbers))


class _Folded(dict[int, str]):
    """A table for `str.translate` that computes the replacement of a character when it is first needed."""

    def __missing__(self, code: int) -> str:
        self[code] = replacement = _fold(chr(code))
        return replacement


_FOLDED = _Folded()


def _fold(character: str) -> str:
    kind = unicodedata.category(character)
    if character.isspace() and (kind != "Cc" or character in "\t\n\r"):
        return " "
    if kind in ("Cc", "Cf", "Co", "Cs") or character == "\N{REPLACEMENT CHARACTER}":
        return ""
    bare = [part.lower() for part in unicodedata.normalize("NFD", character) if unicodedata.category(part) != "Mn"]
    apart = "".join(f" {part} " if _is_punctuation(part) else part for part in bare)
    code = ord(character)
    return f" {apart} " if any(first <= code <= last for first, last in IDEOGRAPHS) else apart


def _is_punctuation(text: str) -> bool:
    """Whether the text is a punctuation character. In ASCII, all characters except letters, digits and spaces count."""
    if text.isascii():
        return text.isprintable() and not text.isalnum() and text != " "
    return len(text) == 1 and unicodedata.category(text).startswith("P")
