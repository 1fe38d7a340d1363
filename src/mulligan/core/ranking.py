"""Protocols of retrieval, deduplication and merging strategies. They see columns, never a store.

Arrays are numpy's; they are `Any` here because core imports the standard library only. n is the number of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.questions import Question
from mulligan.core.records import Json, Lesson

Array: TypeAlias = Any


@dataclass(frozen=True)
class Ranked:
    """Rows of the candidates, best first, with their relevance (0 to 1).

    Attributes:
        filtered: how many rows were held back.
        threshold: the one that was applied, if any.
        nearest: the row with the best score among those that were held back.
        nearest_score: its relevance.
    """

    rows: Sequence[int]
    scores: Sequence[float]
    filtered: int = 0
    threshold: float | None = None
    nearest: int | None = None
    nearest_score: float = 0.0

    @classmethod
    def of(cls, rows: Sequence[int], relevance: Array, given: Array, scores: Array, threshold: float | None) -> Ranked:
        """These rows with their relevance.

        given: for each candidate, whether it is good enough; the others are held back. scores: the nearest of these has
        the highest one.
        """
        held = (~given).nonzero()[0]
        nearest = int(held[scores[held].argmax()]) if len(held) else None
        score = 0.0 if nearest is None else float(relevance[nearest])
        return cls(rows, [float(relevance[row]) for row in rows], len(held), threshold, nearest, score)


class Candidates(Protocol):
    """The active lessons that a query is compared with, as columns of shape (n,), and the query's scores over them.

    Attributes:
        experience: texts.
        success: bool.
        uses: int.
        created, now: seconds since the epoch.
        confidence: 0 to 1.
        worth: the measured probability that showing the lesson helps; nan if it was not measured.
    """

    n: int
    ids: Sequence[str]
    experience: Sequence[str]
    success: Array
    uses: Array
    created: Array
    confidence: Array
    worth: Array
    now: float

    def semantic(self, of: Literal["lesson", "query"] = "lesson") -> Array | None:
        """Cosine of the query with each lesson, or with the task that it was learned from, shape (n,), -1 to 1; nan
        where there is no vector. None: there is no embedder, or not one vector."""
        ...

    def lexical(self) -> Array:
        """BM25 of the query with each lesson, shape (n,), at least 0, by the statistics of these lessons alone."""
        ...

    def coverage(self) -> Array:
        """The share of the query's words that each lesson contains, weighted by rarity, shape (n,), 0 to about 1."""
        ...

    def alike(self, rows: Sequence[int]) -> Array | None:
        """Cosines between these lessons, shape (k, k); None without vectors."""
        ...

    def relevance(self, scores: Array, by: Literal["lesson", "query", "lexical"]) -> Array:
        """Scores as relevance, 0 to 1; nan stays nan.

        The relevance is the share of banks of this size without a fitting lesson whose best score is lower, as measured
        for this embedder, or for words. Given the scores of all candidates, those with all words of the query get 1.
        """
        ...

    def by_words(self) -> Array:
        """Relevance by words alone, shape (n,): the greater of the relevance of BM25 and the share of the task's words
        that a lesson contains, weighted by how rare they are in general."""
        ...


@runtime_checkable
class Retrieval(Protocol):
    """`rank` is pure. threshold: the caller's own, or a preset, or None for the strategy's.

    experiences: whether `top_k` counts experiences of several lessons (the paper) and not lessons.
    """

    @property
    def queries(self) -> bool:
        """Whether it compares with the past tasks' queries, so that their vectors are loaded."""
        ...

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked: ...


@runtime_checkable
class Deduplication(Protocol):
    """Decides which of an agent's lessons say nearly the same as a new one. Exact duplicates fold without it."""

    def near(self, new: Lesson, among: Candidates, similarities: Array) -> Sequence[int]:
        """Rows that are near-duplicates of the new lesson, nearest first; similarities: its cosines, shape (n,)."""
        ...


@runtime_checkable
class Merging(Protocol):
    """Makes one lesson of several that are alike.

    A class that asks a model may set `sampling`; the default temperature is 0.7.
    """

    def group(self, lesson: Lesson, alike: Sequence[tuple[Lesson, float]]) -> Sequence[Lesson]:
        """Which of these (with their similarity to the lesson) are merged with it, itself included; empty: none."""
        ...

    def ask(self, lessons: Sequence[Lesson]) -> Question | None:
        """The question to a model that merges them; None if no model is needed."""
        ...

    def take(self, lessons: Sequence[Lesson], answer: Json) -> Lesson:
        """The merged lesson, without id, agent or times. answer: None where `ask` gave None. Raises `BadAnswer`."""
        ...
