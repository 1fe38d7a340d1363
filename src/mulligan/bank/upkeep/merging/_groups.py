"""Choose the lessons to merge: active, of one agent, similar enough, and enough of them."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson, Origin

MIXED = "mixed"
"""The tag of a lesson that was made of successes and failures."""


def checked(name: str, least: int, threshold: float, size: int = 2) -> None:
    """Raises `InvalidInput` for settings that can never work."""
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
    """The lesson and those that are at least so similar, nearest first; empty if they are fewer than `least` together.

    mixed: successes and failures may meet, if at least this share of them are successes; else only those of its own
    outcome are taken.
    """
    near = {
        other.id: (other, similarity)
        for other, similarity in alike
        if similarity >= threshold and other.id != lesson.id and other.state == "active"
    }
    others = [other for other, _ in sorted(near.values(), key=lambda one: -one[1]) if other.agent_id == lesson.agent_id]
    everyone = (lesson, *others)
    if not mixed or sum(one.outcome == "success" for one in everyone) < share * len(everyone):
        everyone = tuple(one for one in everyone if one.outcome == lesson.outcome)
    return everyone if lesson.state == "active" and len(everyone) >= least else ()


def one_lesson(lessons: Sequence[Lesson], *, least: int, mixed: bool, name: str) -> bool:
    """Whether these are of both outcomes. Raises `InvalidInput` when they may not become one lesson."""
    if len(lessons) < least:
        raise InvalidInput(f"{name} merges at least {least} lessons, not {len(lessons)}.")
    both = len({lesson.outcome for lesson in lessons}) > 1
    if both and not mixed:
        raise InvalidInput(
            "Some of these lessons come from success, some from failure. Merge them separately, or set mixed = true."
        )
    return both


def origin_of(lessons: Sequence[Lesson]) -> Origin:
    return Origin("merged", parents=tuple(lesson.id for lesson in lessons))


def tags_of(lessons: Sequence[Lesson], both: bool) -> tuple[str, ...]:
    """All their tags, in order; the mixed one first."""
    every = [tag for lesson in lessons for tag in lesson.tags if tag != MIXED]
    return tuple(dict.fromkeys([*([MIXED] if both else []), *every]))
