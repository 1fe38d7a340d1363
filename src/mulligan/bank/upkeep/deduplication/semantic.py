"""Find near-duplicates by the cosine of their texts. The bank decides whether to link or to skip them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mulligan.core.errors import InvalidInput
from mulligan.core.ranking import Array, Candidates
from mulligan.core.records import Lesson


class Semantic:
    """threshold: the cosine from which a lesson nearly says the same. top_k_check: of how many of the nearest.

    A success and a failure are never near-duplicates: one says what to do, the other what not to.
    """

    def __init__(self, threshold: float = 0.90, top_k_check: int = 5) -> None:
        if not -1 <= threshold <= 1 or top_k_check < 1:
            raise InvalidInput("semantic: threshold must be a cosine from -1 to 1, and top_k_check at least 1.")
        self._threshold, self._most = threshold, top_k_check

    def near(self, new: Lesson, among: Candidates, similarities: Array) -> Sequence[int]:
        same = np.asarray(among.success) == (new.outcome == "success")
        cosines = np.where(same, np.nan_to_num(similarities, nan=-1.0), -2.0)
        nearest: list[int] = np.argsort(-cosines, kind="stable")[: self._most + 1].tolist()
        others = [row for row in nearest if among.ids[row] != new.id][: self._most]
        return [row for row in others if cosines[row] >= self._threshold]
