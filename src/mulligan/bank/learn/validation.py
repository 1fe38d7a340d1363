"""Check lessons: those that people and programs write, and those in a model's answer.

What people write is refused with `InvalidInput`. A model's answer is refused with `BadAnswer`, which says what to do
better, and has shorter limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeAlias, cast

from mulligan.core.errors import BadAnswer, InvalidInput, UnknownName
from mulligan.core.records import Json, Lesson, Nature

# --- what people and programs write ---------------------------------------------------------------------------------

NATURES: tuple[Nature, ...] = ("strategy", "fact")
_Kind: TypeAlias = "tuple[str, Callable[[Any], bool]]"

_TEXT: _Kind = "a text", lambda value: isinstance(value, str)
_TAGS: _Kind = (
    "a list of texts",
    lambda value: isinstance(value, list | tuple) and all(isinstance(tag, str) for tag in cast(list[object], value)),
)
_CONFIDENCE: _Kind = (
    "a number from 0 to 1",
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
)
FIELDS: Mapping[str, _Kind] = {
    "title": _TEXT,
    "content": _TEXT,
    "outcome": ("success or failure", lambda value: value in ("success", "failure")),
    "description": _TEXT,
    "query": _TEXT,
    "tags": _TAGS,
    "kind": _TEXT,
    "context": ("an object", lambda value: isinstance(value, Mapping)),
    "confidence": _CONFIDENCE,
    "nature": ("fact or strategy", lambda value: value in NATURES),
    "project": _TEXT,
    "confirmed": ("true or false", lambda value: isinstance(value, bool)),
}
"""The fields of a lesson that may be given or edited: what each must be, and the check."""


def checked_fields(given: Mapping[str, Any], where: str = "A lesson", *, whole: bool = False) -> dict[str, Any]:
    """The fields of a lesson as they are kept: texts without white space around them, tags as a tuple.

    Args:
        given: Values by the names of the fields.
        where: What errors call the lesson.
        whole: Whether title and content have to be among them.

    Raises:
        UnknownName: A field does not exist, or cannot be edited.
        InvalidInput: A value is of the wrong kind, or the title or the content is empty.
    """
    for name, value in given.items():
        if name not in FIELDS:
            raise UnknownName(f"field of {where[:1].lower()}{where[1:]}", name, FIELDS)
        words, fits = FIELDS[name]
        if not fits(value):
            raise InvalidInput(f"{where}: {name} must be {words}, not {value!r:.60}.")
    for name in ("title", "content"):
        if (whole or name in given) and not given.get(name, "").strip():
            raise InvalidInput(f"{where}: it needs a title and a content.")
    return {
        name: value.strip() if isinstance(value, str) else tuple(value) if name == "tags" else value
        for name, value in given.items()
    }


# --- a model's answer -----------------------------------------------------------------------------------------------

TITLE, DESCRIPTION, CONTENT = 120, 500, 2000
"""Characters that a model may use."""
TAGS, TAG, KIND = 8, 40, 60

TEXTS: Mapping[str, Json] = {
    "title": {"type": "string"},
    "description": {"type": "string"},
    "content": {"type": "string"},
}
"""The properties of a lesson in a JSON schema. Lengths are checked here, because few providers check them."""

NATURE: Mapping[str, Json] = {"nature": {"type": "string", "enum": list(NATURES)}}

LABELS: Mapping[str, Json] = {
    "tags": {"type": "array", "items": {"type": "string"}},
    "kind": {"type": "string"},
}


def lesson_from(answer: Json, where: str) -> Lesson:
    """The lesson in this object of a model's answer, without id or origin.

    Raises `BadAnswer`; `where` names the object in it, such as "Lesson 2".
    """
    table = object_of(answer, where)
    tags: Json = table.get("tags")
    tags = [] if tags is None else tags
    if not _TAGS[1](tags):
        raise BadAnswer(f'{where}: "tags" must be a list of texts; leave it empty for none.')
    tags = list(dict.fromkeys(tag.strip() for tag in cast(list[str], tags) if tag.strip()))
    if len(tags) > TAGS or any(len(tag) > TAG for tag in tags):
        raise BadAnswer(f'{where}: "tags" may be at most {TAGS} words of at most {TAG} characters each.')
    nature: Json = table.get("nature", "strategy")
    if nature not in NATURES:
        raise BadAnswer(f'{where}: "nature" must be {" or ".join(NATURES)}, not {nature!r:.40}.')
    return Lesson(
        id="",
        title=text_of(table, "title", TITLE, where),
        description=text_of(table, "description", DESCRIPTION, where),
        content=text_of(table, "content", CONTENT, where),
        outcome="success",
        tags=tuple(tags),
        kind=text_of(table, "kind", KIND, where, needed=False),
        nature=nature,
    )


def object_of(answer: Json, where: str) -> Mapping[str, Json]:
    """The answer. Raises `BadAnswer` unless it is an object."""
    if not isinstance(answer, dict):
        raise BadAnswer(f"{where} must be a JSON object, and is {_kind(answer)}.")
    return cast(dict[str, Json], answer)


def text_of(table: Mapping[str, Json], name: str, most: int, where: str, *, needed: bool = True) -> str:
    """The text under this name without white space around it. Raises `BadAnswer` when it is missing or too long."""
    value = table.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise BadAnswer(f'{where}: "{name}" must be a text, and is {_kind(value)}.')
    text = value.strip()
    if needed and not text:
        raise BadAnswer(f'{where}: "{name}" is empty.')
    if len(text) > most:
        raise BadAnswer(f'{where}: "{name}" has {len(text)} characters; at most {most} are allowed. Shorten it.')
    return text


_KINDS: Mapping[type, str] = {
    NoneType: "missing",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    str: "a text",
}


def _kind(value: Json) -> str:
    return next((words for kind, words in _KINDS.items() if isinstance(value, kind)), "a number")
