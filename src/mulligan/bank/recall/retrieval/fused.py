"""Words and meaning together: the cosine, and the more of the task's words a lesson holds, the more its words count.

The score is cosine + `words` · coverage². Where task and lessons share a few words only, meaning decides; where a
lesson says nearly the same, words do. Without vectors, words alone. docs/retrieval.md has the figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mulligan.core.errors import InvalidInput
from mulligan.core.ranking import Candidates, Ranked

POOL = 20
"""Lessons among which diversity is looked for, at least; three times as many as are asked for, where that is more."""


class Fused:
    """Ranks by words and meaning together, and prefers lessons that differ.

    Args:
        threshold: relevance below which a lesson is not given, where the caller names none; 0 gives all, by their
            order.
        words: how much the words count.
        gap: how many times the best lesson's doubt (1 - relevance) that of another may be.
        diversity: 0 to 1, how much a lesson loses for being like one that is given before it.
    """

    queries = False

    def __init__(
        self,
        threshold: float | None = 0.9,
        words: float = 10.0,
        gap: float = 10.0,
        diversity: float = 0.05,
    ) -> None:
        if words < 0 or gap < 1 or not 0 <= diversity <= 1:
            raise InvalidInput("fused: 'words' must be 0 or more, 'gap' at least 1, and 'diversity' from 0 to 1.")
        self._threshold, self._words, self._gap, self._diversity = threshold, words, gap, diversity

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked:
        least = self._threshold if threshold is None else threshold
        scores = self.scores(among)
        relevance = self._relevance(among, scores)
        given = np.ones(among.n, np.bool_)
        if least:
            doubt = 1 - relevance
            given = (relevance >= least) & (doubt <= self._gap * doubt.min(initial=1.0))
        rows = self._spread(among, _best(scores, np.flatnonzero(given), max(POOL, 3 * top_k)), scores, top_k)
        return Ranked.of(rows, relevance, given, scores, least)

    def scores(self, among: Candidates) -> Any:
        """What lessons are ordered by. One without a vector beside others that have one counts as near as they are on
        average; where there are no vectors at all, it is BM25."""
        semantic = among.semantic()
        if semantic is None:
            return among.lexical()
        meaning = semantic.copy()
        meaning[np.isnan(semantic)] = np.nanmean(semantic)
        return meaning + self._words * among.coverage() ** 2

    def _relevance(self, among: Candidates, scores: Any) -> Any:
        """By both; by words alone where there is no vector."""
        relevance = among.by_words()
        if (semantic := among.semantic()) is not None:
            there = ~np.isnan(semantic)
            relevance[there] = among.relevance(scores, "lesson")[there]
        return relevance

    def _spread(self, among: Candidates, rows: list[int], scores: Any, top_k: int) -> list[int]:
        """The first `top_k` by maximal marginal relevance (Carbonell and Goldstein 1998)."""
        alike = among.alike(rows) if self._diversity and len(rows) > 1 and top_k > 1 else None
        if alike is None:
            return rows[:top_k]
        worth = (1 - self._diversity) * scores[rows] / (float(scores[rows].max()) or 1.0)
        nearest = np.zeros(len(rows))
        chosen: list[int] = []
        while len(chosen) < min(top_k, len(rows)):
            left = worth - self._diversity * nearest
            left[chosen] = -np.inf
            chosen.append(int(np.argmax(left)))
            nearest = np.maximum(nearest, alike[chosen[-1]])
        return [rows[i] for i in chosen]


def _best(scores: Any, rows: Any, most: int) -> list[int]:
    """The best `most` of these rows, best first; equal ones by age."""
    if len(rows) > most:
        rows = rows[scores[rows] >= np.partition(scores[rows], len(rows) - most)[len(rows) - most]]
    return rows[np.argsort(-scores[rows], kind="stable")][:most].tolist()
