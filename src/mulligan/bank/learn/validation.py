"""Check the fields of lessons that people and programs write. Answers of models are checked in `extraction`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.lessons import Time, lesson_fields
from mulligan.text.times import time_of

_DAY = re.compile(r"\d{4}-\d\d-\d\d")

_CHECKS: Mapping[Any, tuple[str, Callable[[Any], bool]]] = {
    str: ("a string", lambda value: isinstance(value, str)),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    float: (
        "a number from 0 to 1",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
    ),
    Time: (
        "a time such as 2026-01-31, 30d or never",
        lambda value: value is None or (isinstance(value, str | int | float) and not isinstance(value, bool)),
    ),
    Mapping[str, Any]: ("an object", lambda value: isinstance(value, Mapping)),
    Sequence[str]: (
        "a list of strings",
        lambda value: isinstance(value, list | tuple) and all(isinstance(one, str) for one in cast(list[Any], value)),
    ),
}
"""For each type in `LessonFields` that is not a choice: what a value must be, in words, and the check."""


def check_of(kind: Any) -> tuple[str, Callable[[Any], bool]]:
    """What a value of this type must be, in words, and the check for it."""
    if kind in _CHECKS:
        return _CHECKS[kind]
    words = sorted(get_args(kind), key=lambda word: not word)
    *most, last = (word or "empty" for word in words)
    return f"{', '.join(most)} or {last}", lambda value: value in words


def checked_fields(given: Mapping[str, Any], where: str = "A lesson", *, whole: bool = False) -> dict[str, Any]:
    """The fields of a lesson as they are stored: texts are stripped, and lists become tuples.

    Args:
        given: Values by the names in `LessonFields`.
        where: What errors call the lesson.
        whole: Whether the title and the content are required.

    Raises:
        UnknownName: A field does not exist, or cannot be edited.
        InvalidInput: A value is of the wrong kind, or the title or the content is empty.
    """
    known = lesson_fields()
    for name, value in given.items():
        if name not in known:
            raise UnknownName(f"field of {where[:1].lower()}{where[1:]}", name, known)
        words, fits = check_of(known[name][0])
        if not fits(value):
            raise InvalidInput(f"{where}: {name} must be {words}, not {value!r:.60}.")
    for name in ("title", "content"):
        if (whole or name in given) and not given.get(name, "").strip():
            raise InvalidInput(f"{where} needs a title and content.")
    return {name: _stored(name, value) for name, value in given.items()}


def _stored(name: str, value: Any) -> Any:
    if lesson_fields()[name][0] == Time:
        day = isinstance(value, str) and _DAY.fullmatch(value.strip())
        return time_of(f"{day[0]}T00:00Z" if day else value, future=name == "expires")  # a day is shown in UTC, too
    if isinstance(value, str):
        return value.strip()
    return tuple(cast(list[str], value)) if isinstance(value, list) else value
