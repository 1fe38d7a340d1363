"""Changes of a lesson by hand. Each function returns the changed lesson, or raises `InvalidInput`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mulligan.bank.recall.query_pairs import GOOD
from mulligan.core.errors import InvalidInput, LessonChanged
from mulligan.core.lessons import REFUSED_BY_REPLAY, WAITS_FOR_REPLAY
from mulligan.core.records import Lesson, Rating


def retired(lesson: Lesson) -> Lesson:
    if lesson.state != "active":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, so it cannot be retired.")
    return replace(lesson, state="retired")


def withdrawn(lesson: Lesson) -> Lesson:
    return replace(lesson, state="retired") if lesson.state == "quarantined" else retired(lesson)


def restored(lesson: Lesson) -> Lesson:
    if lesson.state != "retired":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, not retired: {_instead(lesson)}")
    return replace(lesson, state="active", flags=tuple(flag for flag in lesson.flags if flag != REFUSED_BY_REPLAY))


def released(lesson: Lesson) -> Lesson:
    if lesson.state != "quarantined":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, not quarantined, so it cannot be released.")
    return replace(lesson, state="active", flags=tuple(flag for flag in lesson.flags if flag != WAITS_FOR_REPLAY))


def rated(lesson: Lesson, rating: Rating) -> Lesson:
    confirmed = rating.score >= GOOD if lesson.nature == "query_pair" else lesson.confirmed
    return replace(lesson, ratings=(*lesson.ratings, rating), confirmed=confirmed)


def ensure_current(read: Lesson, current: Lesson, fields: Mapping[str, Any]) -> None:
    """Raises `LessonChanged` if somebody else has changed one of these fields since the lesson was `read`."""
    if others := [name for name in fields if getattr(current, name) not in (getattr(read, name), fields[name])]:
        raise LessonChanged(
            f"Someone has changed the {' and the '.join(others)} of lesson {current.id} since you started editing. "
            "Your change was not saved: reload the lesson and edit its current version."
        )


def _instead(lesson: Lesson) -> str:
    ways = {"superseded": f"unmerge {lesson.superseded_by}", "quarantined": "release it"}
    return ways.get(lesson.state, "there is nothing to restore") + "."
