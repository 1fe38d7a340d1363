"""Find no near-duplicates. Exact duplicates are folded all the same, unless `fold` is off."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.ranking import Array, Candidates
from mulligan.core.records import Lesson


class NoDuplicates:
    def near(self, new: Lesson, among: Candidates, similarities: Array) -> Sequence[int]:
        return ()
