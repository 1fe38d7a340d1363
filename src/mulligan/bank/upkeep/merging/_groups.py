"""Shared by merging strategies: which lessons are merged, and the origin and tags of the merged lesson."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson, Origin

MIXED = "mixed"
"""The tag of a lesson that was merged from successes and failures."""


def checked(name: str, least: int, threshold: float, size: int = 2) -> None:
    """Raises `InvalidInput` for settings that cannot work."""
    for setting, value in (("min_similar_count", least), ("min_group_size", size)):
        if value < 2:
            raise InvalidInput(f"{name}: {setting} must be at least 2, not {value}: a single lesson cannot be merged.")
    if not 0 <= threshold <= 1:
        raise InvalidInput(f"{name}: similarity_threshold must be from 0 to 1, not {threshold}.")


def group(
    lesson: Lesson,
    alike: Sequence[tuple[Lesson, float]],
    *,
    least: int,
    threshold: float,
    mixed: bool,
    share: float = 0,
) -> tuple[Lesson, ...]:
    """The lesson and the similar ones to merge it with, nearest first; empty if there are too few.

    Args:
        alike: Other lessons with their similarity to this one.
        least: The minimum size of the group.
        threshold: The minimum similarity.
        mixed: Whether successes and failures may be merged.
        share: The minimum share of successes in a mixed group. Below it, only lessons of one outcome are merged.
    """
    similar = {
        other.id: (similarity, other)
        for other, similarity in alike
        if similarity >= threshold and other.id != lesson.id and other.state == "active"
    }
    nearest = sorted(similar.values(), key=lambda pair: -pair[0])
    lessons = (lesson, *(other for _, other in nearest if other.agent_id == lesson.agent_id))
    if not mixed or sum(one.outcome == "success" for one in lessons) < share * len(lessons):
        lessons = tuple(one for one in lessons if one.outcome == lesson.outcome)
    return lessons if lesson.state == "active" and len(lessons) >= least else ()


def one_lesson(lessons: Sequence[Lesson], *, least: int, mixed: bool, name: str) -> bool:
    """Whether these lessons have both outcomes. Raises `InvalidInput` if they may not become one lesson."""
    if len(lessons) < least:
        raise InvalidInput(f"{name} needs at least {least} lessons to merge, not {len(lessons)}.")
    both = len({lesson.outcome for lesson in lessons}) > 1
    if both and not mixed:
        raise InvalidInput(
            "Some of these lessons come from successes, and some from failures. Merge them separately, or set mixed "
            "= true."
        )
    return both


def origin_of(lessons: Sequence[Lesson]) -> Origin:
    return Origin("merged", parents=tuple(lesson.id for lesson in lessons))


def tags_of(lessons: Sequence[Lesson], both: bool) -> tuple[str, ...]:
    """The tags of all lessons, in order; `MIXED` comes first if they have both outcomes."""
    tags = [tag for lesson in lessons for tag in lesson.tags if tag != MIXED]
    return tuple(dict.fromkeys([*([MIXED] if both else []), *tags]))
