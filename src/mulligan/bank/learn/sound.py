"""Lessons that people and programs write, checked before they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Lesson

TEXTS = ("title", "content", "description", "query", "kind", "project")


def sound(lesson: Lesson) -> Lesson:
    """The lesson without white space around its texts. Raises `InvalidInput` for one that says nothing, or whose
    fields are of the wrong kind."""
    given: Mapping[str, Any] = vars(lesson)
    for name in TEXTS:
        if not isinstance(given[name], str):
            raise InvalidInput(f"The {name} of a lesson is a text, not {given[name]!r:.60}.")
    tags: Any = given["tags"]
    listed = list(cast(list[object], tags)) if isinstance(tags, list | tuple) else None
    if listed is None or not all(isinstance(tag, str) for tag in listed):
        raise InvalidInput(f"The tags of a lesson are a list of texts, not {tags!r:.60}.")
    if not isinstance(given["context"], Mapping):
        raise InvalidInput(f"The context of a lesson is a mapping, not {given['context']!r:.60}.")
    if lesson.outcome not in ("success", "failure"):
        raise InvalidInput(f"The outcome of a lesson is success or failure, not {lesson.outcome!r}.")
    if lesson.nature not in ("fact", "strategy"):
        raise InvalidInput(f"The nature of a lesson is fact or strategy, not {lesson.nature!r}.")
    if lesson.confirmed not in (True, False):
        raise InvalidInput(f"Whether a lesson is confirmed is true or false, not {lesson.confirmed!r:.60}.")
    sure: Any = given["confidence"]
    if not isinstance(sure, int | float) or isinstance(sure, bool) or not 0 <= sure <= 1:
        raise InvalidInput(f"The confidence of a lesson is from 0 to 1, not {sure!r:.60}.")
    plain = {name: given[name].strip() for name in TEXTS}
    if not plain["title"] or not plain["content"]:
        raise InvalidInput("A lesson needs a title and a content.")
    return replace(lesson, **plain, tags=tuple(cast(list[str], listed)))
