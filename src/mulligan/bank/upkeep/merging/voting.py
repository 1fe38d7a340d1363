"""Merge similar lessons by keeping the best of them. No model is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mulligan.bank.upkeep.merging._groups import checked, group, one_lesson, origin_of, tags_of
from mulligan.core.questions import Question
from mulligan.core.records import Json, Lesson


class Voting:
    """Keeps one of several similar lessons: the one recalled most; of equals one from a success, then the newest.

    Its text does not change. The merged lesson has the uses and the support of all of them. Raises `InvalidInput` for
    settings that cannot work and lessons that may not be merged.

    Args:
        min_similar_count: how many must be similar, the new one included, before they are merged automatically.
        similarity_threshold: the cosine from which they count as similar.
        min_group_size: how many a merge needs that a user requests.
        mixed: whether successes and failures may become one lesson, which then has the tag "mixed".
    """

    def __init__(
        self,
        *,
        min_similar_count: int = 3,
        similarity_threshold: float = 0.85,
        min_group_size: int = 2,
        mixed: bool = False,
    ) -> None:
        checked("voting", min_similar_count, similarity_threshold, min_group_size)
        self._least, self._threshold = min_similar_count, similarity_threshold
        self._size, self._mixed = min_group_size, mixed

    def group(self, lesson: Lesson, alike: Sequence[tuple[Lesson, float]]) -> Sequence[Lesson]:
        least = max(self._least, self._size)
        return group(lesson, alike, least=least, threshold=self._threshold, mixed=self._mixed)

    def ask(self, lessons: Sequence[Lesson]) -> Question | None:
        one_lesson(lessons, least=self._size, mixed=self._mixed, name="voting")
        return None

    def take(self, lessons: Sequence[Lesson], answer: Json) -> Lesson:
        both = one_lesson(lessons, least=self._size, mixed=self._mixed, name="voting")
        best = max(lessons, key=lambda one: (one.uses, one.outcome == "success", one.created, one.id))
        return replace(
            best,
            id="",
            agent_id="",
            score=None,
            experience="",
            origin=origin_of(lessons),
            created=0.0,
            last_used=None,
            uses=sum(one.uses for one in lessons),
            support=sum(one.support for one in lessons),
            tags=tags_of([best, *lessons], both),
            embedder=None,
            state="active",
            superseded_by=None,
            flags=(),
        )
