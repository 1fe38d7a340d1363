"""The lessons that a query is ranked against: columns, cosines, BM25, and scores as calibrated relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np

from mulligan.bank.recall.calibration import LESSON, PRESETS, NullDistribution
from mulligan.bank.recall.postings import Found, Held
from mulligan.core.ranking import Array

DIGITS = 6
"""Decimal places of a cosine, so that equal lessons get equal scores and age decides ties."""


class Texts(Sequence[str]):
    """Some of a list of texts, by position, without a copy."""

    def __init__(self, texts: list[str], slots: Array) -> None:
        self._texts, self._slots = texts, slots

    def __len__(self) -> int:
        return len(self._slots)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return Texts(self._texts, self._slots[index])
        return self._texts[int(self._slots[index])]


@dataclass(frozen=True)
class Columns:
    """All that an index holds, as it is now: arrays of one row per slot; `slots` are the active ones, oldest first.

    whole: whether `slots` are simply all of them. project: a number for each name. vectors: unit, float32, by part,
    and where there is one. unrelated: how unrelated texts score in this bank, by words and by meaning.
    """

    ids: list[str]
    experience: list[str]
    slots: Array
    whole: bool
    success: Array
    uses: Array
    created: Array
    confidence: Array
    fact: Array
    project: Array
    vectors: dict[str, tuple[Array, Array]]
    postings: Held
    unrelated: dict[str, NullDistribution] = field(default_factory=dict[str, NullDistribution])


class Ranking:
    """`core.ranking.Candidates` over an index's columns. Everything is computed once, when it is asked for."""

    def __init__(self, columns: Columns, terms: tuple[Array, Array, Array], vector: Any, now: float) -> None:
        """terms: of the query, as `bank.terms.weighed` gives them. vector: the query's, unit; None: by words alone."""
        self._columns, self._terms = columns, terms
        self._vector = None if vector is None else np.asarray(vector, np.float32)
        self.now, self.n = now, len(columns.slots)
        self.ids: Sequence[str] = Texts(columns.ids, columns.slots)
        self.experience: Sequence[str] = Texts(columns.experience, columns.slots)
        self.success, self.uses = self._picked(columns.success), self._picked(columns.uses)
        self.created, self.confidence = self._picked(columns.created), self._picked(columns.confidence)
        self._cosines: dict[str, Array | None] = {}
        self._found: Found | None = None

    def semantic(self, of: Literal["lesson", "query"] = "lesson") -> Array | None:
        if of not in self._cosines:
            self._cosines[of] = self._cosine(of)
        return self._cosines[of]

    def lexical(self) -> Array:
        return self._picked(self._words.scores)

    def coverage(self) -> Array:
        return self.lexical() / self._words.whole

    @property
    def length(self) -> float:
        """What BM25 is divided by, so that scores of short and of long queries can be compared."""
        return self._words.length

    def alike(self, rows: Sequence[int]) -> Array | None:
        if "lesson" not in self._columns.vectors:
            return None
        vectors: Array = self._columns.vectors["lesson"][0][self._columns.slots[np.asarray(rows, np.int64)]]
        return _rounded(np.vecdot(vectors[:, None], vectors[None]))

    def relevance(self, scores: Array, by: Literal["lesson", "query", "lexical"]) -> Array:
        scores = np.asarray(scores, np.float64)
        if by == "lexical":
            size = self._columns.postings.total / LESSON
            return np.where(scores > 0, self._columns.unrelated["words"].relevance(scores / self.length, size), 0.0)
        return self._columns.unrelated["meaning"].relevance(scores, self.n)

    def by_words(self) -> Array:
        # What holds nearly all words of the task fits it, however many other lessons hold them, too.
        return np.maximum(self.relevance(self.lexical(), "lexical"), self._picked(self._words.share))

    def threshold(self, wanted: float | str | None) -> float | None:
        """A preset as the relevance that it stands for; anything else as it is."""
        return PRESETS[wanted] if isinstance(wanted, str) else wanted

    @property
    def _words(self) -> Found:
        if self._found is None:
            self._found = self._columns.postings.scores(*self._terms)
        return self._found

    def _picked(self, column: Array) -> Array:
        return column if self._columns.whole else column[self._columns.slots]

    def _cosine(self, of: str) -> Array | None:
        if self._vector is None or of not in self._columns.vectors:
            return None
        vectors, there = self._columns.vectors[of]
        if vectors.shape[1] != len(self._vector):
            return None
        slots = self._columns.slots
        most = 2 * self.n > len(vectors)
        cosines = self._picked(cosines_of(vectors, self._vector)) if most else cosines_of(vectors[slots], self._vector)
        missing = ~self._picked(there)
        if missing.all():
            return None
        cosines[missing] = np.nan
        return cosines


def cosines_of(vectors: Array, vector: Array) -> Array:
    """Of each row with the vector, all unit. Row by row: a matrix product would keep other cores spinning for as long,
    and give equal rows unequal last digits."""
    return _rounded(np.vecdot(vectors, vector))


def _rounded(cosines: Array) -> Array:
    return cosines.round(DIGITS)
