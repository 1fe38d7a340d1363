"""The paper's retrieval: the new task is compared with the past tasks' queries, and whole experiences are recalled.

ReasoningBank, section 3: an experience is the lessons from one trajectory, up to three. There is no threshold unless
one is set. A lesson whose task is unknown is compared by its own text.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mulligan.core.ranking import Array, Candidates, Ranked


class Cosine:
    """`top_k` counts experiences. most: the most lessons of one experience. threshold: relevance, 0 to 1."""

    queries = True

    def __init__(self, threshold: float | None = None, most: int = 3) -> None:
        self._threshold, self._most = threshold, most

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked:
        least = self._threshold if threshold is None else threshold
        scores, relevance = self._scored(among)
        given = relevance >= (least or 0.0)
        kept = np.flatnonzero(given)
        taken: dict[str, list[int]] = {}
        last = 0.0
        for best in kept[np.argsort(-scores[kept], kind="stable")]:
            row = int(best)
            name = among.experience[row] or among.ids[row]
            if name not in taken:
                if len(taken) == top_k:  # lessons of one experience share their query, and so their score
                    if scores[row] < last:
                        break
                    continue
                taken[name], last = [], scores[row]
            if len(taken[name]) < self._most:
                taken[name].append(row)
        rows = [row for several in taken.values() for row in several]
        return Ranked.of(rows, relevance, given, scores, least)

    def _scored(self, among: Candidates) -> tuple[Array, Array]:
        """Cosines with their relevance; without any vectors, BM25."""
        query, lesson = among.semantic("query"), among.semantic("lesson")
        if query is None and lesson is None:
            scores = among.lexical()
            return scores, among.by_words()
        scores, relevance = np.full(among.n, -1.0), np.zeros(among.n)
        parts: tuple[tuple[Literal["lesson", "query"], Array], ...] = (("lesson", lesson), ("query", query))
        for part, cosines in parts:
            if cosines is not None:
                there = ~np.isnan(cosines)
                scores[there] = cosines[there]
                relevance[there] = among.relevance(cosines, part)[there]
        return scores, relevance
