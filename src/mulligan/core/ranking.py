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
    """The rows of candidates, best first, with their relevance (0 to 1).

    Attributes:
        filtered: the number of rows that were held back.
        threshold: the threshold that was applied, if any.
        nearest: the held-back row with the highest score.
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

        Args:
            given: for each candidate, whether it is good enough; the others are held back.
            scores: the nearest of these has the highest one.
        """
        held = (~given).nonzero()[0]
        nearest = int(held[scores[held].argmax()]) if len(held) else None
        score = 0.0 if nearest is None else float(relevance[nearest])
        return cls(rows, [float(relevance[row]) for row in rows], len(held), threshold, nearest, score)


class Candidates(Protocol):
    """The active lessons to compare with a query, as columns with the shape (n,), and the query's scores for them.

    Attributes:
        experience: texts.
        success: bool.
        uses: int.
        created, now: seconds since the epoch.
        confidence: 0 to 1.
        worth: the measured probability that showing the lesson helps; nan if it has not been measured.
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
        """The cosines of the query with the lessons, or with their tasks, with the shape (n,), from -1 to 1.

        A lesson without a vector has nan. None: there is no embedder, or there are no vectors."""
        ...

    def lexical(self) -> Array:
        """The BM25 scores of the lessons, with the shape (n,), at least 0.

        The statistics are those of these lessons alone.
        """
        ...

    def coverage(self) -> Array:
        """The share of the query's words in each lesson, weighted by rarity, with the shape (n,), from 0 to about 1."""
        ...

    def alike(self, rows: Sequence[int]) -> Array | None:
        """Returns the cosines between these lessons, with the shape (k, k); None without vectors."""
        ...

    def relevance(self, scores: Array, by: Literal["lesson", "query", "lexical"]) -> Array:
        """Converts scores to relevances, from 0 to 1; nan stays nan.

        The relevance is the share of banks of this size, without a relevant lesson, whose best score is lower, as
        measured for this embedder or for words. If the scores of all candidates are given, those with all of the
        query's words have the relevance 1.
        """
        ...

    def by_words(self) -> Array:
        """Returns the relevance by words alone, with the shape (n,).

        This is the greater of the relevance by BM25 and the share of the task's words in a lesson, weighted by their
        general rarity."""
        ...


@runtime_checkable
class Retrieval(Protocol):
    """Ranks the candidates for a query."""

    @property
    def queries(self) -> bool:
        """Whether it compares with past tasks' queries, so that their vectors are loaded."""
        ...

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked:
        """Returns the best candidates.

        The method is pure.

        Args:
            threshold: a value, or None for the strategy's own.
        """
        ...


@runtime_checkable
class Deduplication(Protocol):
    """Finds an agent's lessons that are nearly the same as a new one. Exact duplicates are folded without it."""

    def near(self, new: Lesson, among: Candidates, similarities: Array) -> Sequence[int]:
        """Returns the rows of near-duplicates of the new lesson, nearest first.

        Args:
            similarities: cosines, with the shape (n,).
        """
        ...


@runtime_checkable
class Merging(Protocol):
    """Merges several similar lessons into one.

    A class that asks a model can set `sampling`. The default temperature is 0.7.
    """

    def group(self, lesson: Lesson, alike: Sequence[tuple[Lesson, float]]) -> Sequence[Lesson]:
        """Returns which of these lessons (given with their similarity) to merge with the lesson, including it; empty:
        none.
        """
        ...

    def ask(self, lessons: Sequence[Lesson]) -> Question | None:
        """Returns the question for a model that merges them; None if no model is needed."""
        ...

    def take(self, lessons: Sequence[Lesson], answer: Json) -> Lesson:
        """Returns the merged lesson, without id, agent or times.

        Args:
            answer: None if `ask` returned None.

        Raises:
            BadAnswer
        """
        ...
