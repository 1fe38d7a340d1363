"""The paper's retrieval: the new task is compared with the past tasks' queries, and whole experiences are recalled.

ReasoningBank, section 3: an experience is what one trajectory taught, up to three lessons. No threshold unless one is
set. A lesson that no task is known of is compared by its own text.
"""

from __future__ import annotations

from mulligan.core.ranking import Array, Candidates, Ranked


class Cosine:
    """`top_k` counts experiences. most: lessons of one experience at most. threshold: relevance, 0 to 1."""

    queries = True

    def __init__(self, threshold: float | None = None, most: int = 3) -> None:
        self._threshold, self._most = threshold, most

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked:
        import numpy as np

        least = self._threshold if threshold is None else threshold
        scores, relevance = self._scored(among)
        kept: list[int] = np.flatnonzero(relevance >= (least or 0.0)).tolist()
        best: list[int] = sorted(kept, key=lambda row: -scores[row])
        taken: dict[str, list[int]] = {}
        for row in best:
            name = among.experience[row] or among.ids[row]
            if name not in taken and len(taken) < top_k:
                taken[name] = []
            if name in taken and len(taken[name]) < self._most:
                taken[name].append(row)
        rows = [row for several in taken.values() for row in several]
        return Ranked(rows, [float(relevance[row]) for row in rows], among.n - len(kept), least)

    def _scored(self, among: Candidates) -> tuple[Array, Array]:
        """Cosines with their relevance; where there are no vectors at all, BM25."""
        import numpy as np

        query, lesson = among.semantic("query"), among.semantic("lesson")
        if query is None and lesson is None:
            scores = among.lexical()
            return scores, among.relevance(scores, "lexical")
        scores, relevance = np.full(among.n, -1.0), np.zeros(among.n)
        for cosines, part in ((lesson, "lesson"), (query, "query")):
            if cosines is not None:
                there = ~np.isnan(cosines)
                scores[there] = cosines[there]
                relevance[there] = among.relevance(cosines[there], part)
        return scores, relevance
