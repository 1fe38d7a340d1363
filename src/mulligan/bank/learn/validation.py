"""Check the fields of lessons that people and programs write. What a model answers is checked in `extraction`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.records import LAYERS, Nature

NATURES: tuple[Nature, ...] = ("strategy", "fact")
_Kind: TypeAlias = "tuple[str, Callable[[Any], bool]]"

_TEXT: _Kind = "a text", lambda value: isinstance(value, str)
TAGS: _Kind = (
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
    "tags": TAGS,
    "kind": _TEXT,
    "context": ("an object", lambda value: isinstance(value, Mapping)),
    "confidence": _CONFIDENCE,
    "nature": ("fact or strategy", lambda value: value in NATURES),
    "project": _TEXT,
    "confirmed": ("true or false", lambda value: isinstance(value, bool)),
    "layer": (f"{', '.join(LAYERS)} or empty", lambda value: value in ("", *LAYERS)),
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
