"""Words and meaning together: BM25 and vectors by reciprocal-rank fusion, then diversity. Without vectors, words alone.

A lesson that one of the two finds is found; how relevant it is, is said by both. docs/retrieval.md has the figures.
"""

from __future__ import annotations

from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.ranking import Candidates, Ranked

POOL = 20
"""Lessons among which diversity is looked for, at least; three times as many as are asked for, where that is more."""


class Fused:
    """threshold: relevance below which a lesson is not given, where the caller names none.

    k: how little the first ranks stand out (Cormack, Clarke and Buettcher 2009 take 60). words, meaning: weights of the
    two rankings. diversity: 0 to 1, how much a lesson loses for being like one that is given before it. depth: how far
    down each ranking is read.
    """

    queries = False

    def __init__(
        self,
        threshold: float | None = 0.97,
        k: float = 60,
        words: float = 1.0,
        meaning: float = 1.0,
        diversity: float = 0.05,
        depth: int = 100,
    ) -> None:
        if k < 0 or words < 0 or meaning < 0 or words + meaning == 0 or not 0 <= diversity <= 1 or depth < 1:
            raise InvalidInput("fused: k and weights are 0 or more, diversity is from 0 to 1, depth at least 1.")
        self._threshold, self._k, self._weights = threshold, k, (words, meaning)
        self._diversity, self._depth = diversity, depth

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked:
        import numpy as np

        least = self._threshold if threshold is None else threshold
        lexical, semantic = among.lexical(), among.semantic()
        relevance = self._relevance(among, lexical, semantic)
        kept = np.flatnonzero(relevance >= (least or 0.0))
        fused = np.zeros(len(kept))
        for scores, weight in zip((lexical, semantic), self._weights, strict=True):
            if scores is not None:
                fused += weight * self._reciprocal(scores[kept], scores is lexical)
        best = np.argsort(-fused, kind="stable")[: max(POOL, 3 * top_k)]
        rows = self._spread(among, kept[best].tolist(), fused[best].tolist(), top_k)
        return Ranked(rows, [float(relevance[row]) for row in rows], among.n - len(kept), least)

    def _relevance(self, among: Candidates, lexical: Any, semantic: Any) -> Any:
        """How sure both together are, as the geometric mean of their doubts; the words' alone without a vector."""
        import numpy as np

        doubts = 1 - among.relevance(lexical, "lexical")
        if semantic is not None:
            meaning = 1 - among.relevance(semantic, "lesson")
            there = ~np.isnan(meaning)
            doubts[there] = np.sqrt(doubts[there] * meaning[there])
        return 1 - doubts

    def _reciprocal(self, scores: Any, only_found: bool) -> Any:
        """1 / (k + rank) of the first `depth`, 0 of the rest and of what was not found at all."""
        import numpy as np

        scores = np.where(np.isnan(scores), -np.inf, scores)
        depth = min(self._depth, len(scores))
        if depth < len(scores):
            least = np.partition(scores, len(scores) - depth)[len(scores) - depth]
            first = np.flatnonzero(scores >= least)
        else:
            first = np.arange(len(scores))
        first = first[scores[first] > (0.0 if only_found else -np.inf)]
        first = first[np.argsort(-scores[first], kind="stable")][:depth]
        shares = np.zeros(len(scores))
        shares[first] = 1 / (self._k + 1 + np.arange(len(first)))
        return shares

    def _spread(self, among: Candidates, rows: list[int], fused: list[float], top_k: int) -> list[int]:
        """The first `top_k` by maximal marginal relevance (Carbonell and Goldstein 1998)."""
        import numpy as np

        alike = among.alike(rows) if self._diversity and len(rows) > 1 and top_k > 1 else None
        if alike is None:
            return rows[:top_k]
        worth = (1 - self._diversity) * np.asarray(fused) / (max(fused) or 1.0)
        nearest = np.zeros(len(rows))
        chosen: list[int] = []
        while len(chosen) < min(top_k, len(rows)):
            left = worth - self._diversity * nearest
            left[chosen] = -np.inf
            chosen.append(int(np.argmax(left)))
            nearest = np.maximum(nearest, alike[chosen[-1]])
        return [rows[i] for i in chosen]
