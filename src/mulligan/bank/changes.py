"""Changes of a lesson by hand: the lesson as each makes it, or `InvalidInput` where it cannot be made."""

from __future__ import annotations

from dataclasses import replace

from mulligan.bank.recall.query_pairs import GOOD
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson, Rating


def retired(lesson: Lesson) -> Lesson:
    if lesson.state != "active":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, so it cannot be retired.")
    return replace(lesson, state="retired")


def restored(lesson: Lesson) -> Lesson:
    if lesson.state != "retired":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, not retired: {_instead(lesson)}")
    return replace(lesson, state="active")


def released(lesson: Lesson) -> Lesson:
    if lesson.state != "quarantined":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, not quarantined.")
    return replace(lesson, state="active")


def rated(lesson: Lesson, rating: Rating) -> Lesson:
    confirmed = rating.score >= GOOD if lesson.nature == "query_pair" else lesson.confirmed
    return replace(lesson, ratings=(*lesson.ratings, rating), confirmed=confirmed)


def _instead(lesson: Lesson) -> str:
    ways = {"superseded": f"unmerge {lesson.superseded_by}", "quarantined": "release it"}
    return ways.get(lesson.state, "there is nothing to restore") + "."
