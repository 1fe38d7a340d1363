"""Ranks by a weighted sum: 0.6 meaning, 0.2 confidence, 0.15 success, 0.05 recency, each of them settable.

Two things are otherwise than in the server it comes from, whose default threshold lets nothing pass: the threshold acts
on relevance to the task alone, so that a failure can be recalled, and it acts before the `top_k` are taken.
"""

from __future__ import annotations

import numpy as np

from mulligan.core.errors import InvalidInput
from mulligan.core.ranking import Candidates, Ranked

DAY = 86400.0


class Hybrid:
    """Ranks by a weighted sum of meaning, confidence, success and recency.

    The confidence of a lesson that was measured is the probability that showing it helps; of another it is the one that
    it came with, and rises with its uses.

    Args:
        threshold: relevance of the meaning, 0 to 1, where the caller names none.
        semantic, confidence, success, recency: weights, 0 or more.
        failure: what a failure counts for where a success counts 1.
        halflife: days after which recency counts half.
    """

    queries = False

    def __init__(
        self,
        threshold: float | None = 0.9,
        semantic: float = 0.6,
        confidence: float = 0.2,
        success: float = 0.15,
        recency: float = 0.05,
        failure: float = -0.5,
        halflife: float = 30.0,
    ) -> None:
        if min(semantic, confidence, success, recency) < 0 or halflife <= 0:
            raise InvalidInput("hybrid: the weights must be 0 or more, and 'halflife' more than 0 days.")
        self._threshold, self._failure, self._halflife = threshold, failure, halflife
        self._semantic, self._confidence, self._success, self._recency = semantic, confidence, success, recency

    def rank(self, among: Candidates, top_k: int, threshold: float | None = None) -> Ranked:
        least = self._threshold if threshold is None else threshold
        meaning = among.semantic()
        if meaning is None:
            relevance = meaning = among.by_words()
        else:
            relevance = np.nan_to_num(among.relevance(meaning, "lesson"))
            meaning = np.nan_to_num(meaning)
        given = relevance >= (least or 0.0)
        kept = np.flatnonzero(given)
        confidence, worth = among.confidence[kept], among.worth[kept]
        confidence = confidence + (1 - confidence) * np.tanh(among.uses[kept] / 10)
        measured = ~np.isnan(worth)
        confidence[measured] = worth[measured]
        age = np.maximum(among.now - among.created[kept], 0.0) / DAY
        scores = self._semantic * meaning[kept]
        scores += self._confidence * confidence
        scores += self._success * np.where(among.success[kept], 1.0, self._failure)
        scores += self._recency * np.exp2(-age / self._halflife)
        rows = kept[np.argsort(-scores, kind="stable")[:top_k]].tolist()
        return Ranked.of(rows, relevance, given, relevance, least)
