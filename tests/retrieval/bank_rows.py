"""Lessons as rows of a store, a store that only answers `delta`, and candidates made by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mulligan.bank.recall.index import Index
from mulligan.bank.recall.terms import terms_of
from mulligan.core.lesson_history import Delta, Row

E = "hash:4"


def row(n: int, text: str = "", vector: Any = None, **changed: Any) -> Row:
    """Lesson `l<n>`, active, a success. query: the vector of its task."""
    query = changed.pop("query", None)
    made = Row(n, f"l{n}", "a", "", "active", True, 0.5, float(n), 0, None, terms_of(text), packed(vector))
    return replace(made, query_vector=packed(query), **changed)


def packed(vector: Any) -> bytes | None:
    if vector is None:
        return None
    made = np.asarray(vector, np.float32)
    return (made / np.linalg.norm(made)).tobytes()


def index_of(*rows: Row, queries: bool = True) -> Index:
    index = Index(E, queries=queries)
    index.apply(Delta(len(rows), 1, rows))
    return index


def cosines(index: Index, vector: Sequence[float], query: str = "") -> Any:
    """Of all active lessons, by their own texts."""
    found = index.candidates(query, vector).semantic()
    assert found is not None
    return found


class Shelf:
    """The `delta` of a lesson store over rows by agent; each change has a number of its own."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[int, Row]] = {}
        self.gone: list[tuple[int, str, int]] = []
        self.tip, self.generation = 0, 1
        self.asked: list[tuple[str | None, int, int]] = []

    def put(self, *rows: Row) -> None:
        for one in rows:
            self.tip += 1
            self.rows[one.n] = self.tip, one

    def purge(self, n: int) -> None:
        self.tip += 1
        self.gone.append((self.tip, self.rows.pop(n)[1].agent_id, n))

    async def delta(
        self, agent_id: str | None, embedder: str | None, since: int = 0, *, queries: bool = False
    ) -> Delta:
        mine = [one for at, one in self.rows.values() if at > since and agent_id in (None, one.agent_id)]
        gone = [n for at, agent, n in self.gone if at > since and agent_id in (None, agent)]
        self.asked.append((agent_id, since, len(mine)))
        return Delta(self.tip, self.generation, mine, gone)


@dataclass
class Given:
    """Candidates whose scores are written down; relevance is the score itself, up to 1. shares: coverage, else none."""

    meaning: Any = None
    words: Any = None
    shares: Any = None
    asked: Any = None
    success: Any = None
    uses: Any = None
    created: Any = None
    confidence: Any = None
    worth: Any = None
    experience: Sequence[str] = ()
    likeness: Any = None
    now: float = 0.0

    def __post_init__(self) -> None:
        first = next(x for x in (self.words, self.meaning, self.asked) if x is not None)
        self.n = len(first)
        self.ids: Sequence[str] = [f"l{i}" for i in range(self.n)]
        self.experience = self.experience or [""] * self.n
        for name, value in (("success", True), ("uses", 0), ("created", 0.0), ("confidence", 0.5), ("worth", np.nan)):
            column = getattr(self, name)
            setattr(self, name, np.full(self.n, value) if column is None else np.asarray(column))

    def semantic(self, of: str = "lesson") -> Any:
        column = self.meaning if of == "lesson" else self.asked
        return None if column is None else np.asarray(column, float)

    def lexical(self) -> Any:
        return np.zeros(self.n) if self.words is None else np.asarray(self.words, float)

    def coverage(self) -> Any:
        return np.zeros(self.n) if self.shares is None else np.asarray(self.shares, float)

    def alike(self, rows: Sequence[int]) -> Any:
        return None if self.likeness is None else np.asarray(self.likeness, float)[np.ix_(rows, rows)]

    def by_words(self) -> Any:
        return self.relevance(self.lexical(), "lexical")

    def relevance(self, scores: Any, by: str) -> Any:
        return np.minimum(np.asarray(scores, float), 1.0)
