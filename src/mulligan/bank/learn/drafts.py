"""Reading a lesson out of a thinker's answer: lengths and kinds of its fields, with errors that a mind can act on."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import cast

from mulligan.core.errors import BadAnswer
from mulligan.core.records import Json, Nature

TITLE, DESCRIPTION, CONTENT = 120, 500, 2000
"""Characters that a thinker may use."""
TAGS, TAG, KIND = 8, 40, 60

TEXTS: Mapping[str, Json] = {
    "title": {"type": "string"},
    "description": {"type": "string"},
    "content": {"type": "string"},
}
"""The properties of a lesson in a schema. Lengths are checked here: few providers take them."""

NATURES: tuple[Nature, ...] = ("strategy", "fact")
NATURE: Mapping[str, Json] = {"nature": {"type": "string", "enum": list(NATURES)}}

LABELS: Mapping[str, Json] = {
    "tags": {"type": "array", "items": {"type": "string"}},
    "kind": {"type": "string"},
}


@dataclass(frozen=True)
class Draft:
    """What a thinker said of one lesson."""

    title: str
    description: str
    content: str
    tags: tuple[str, ...] = ()
    kind: str = ""
    nature: Nature = "strategy"

    @property
    def plain(self) -> str:
        """Equal for drafts whose content says the same, but for white space and capitals."""
        return " ".join(unicodedata.normalize("NFC", self.content).casefold().split())


def draft_of(said: Json, where: str) -> Draft:
    """The draft in this object; `where` names it in errors ("Lesson 2"). Raises `BadAnswer`."""
    table = object_of(said, where)
    labels: Json = table.get("tags")
    labels = [] if labels is None else labels
    if not isinstance(labels, list) or not all(isinstance(tag, str) for tag in cast(list[Json], labels)):
        raise BadAnswer(f'{where}: "tags" must be a list of texts; leave it empty for none.')
    tags = tuple(dict.fromkeys(tag.strip() for tag in cast(list[str], labels) if tag.strip()))
    if len(tags) > TAGS or any(len(tag) > TAG for tag in tags):
        raise BadAnswer(f'{where}: "tags" may be at most {TAGS} words of at most {TAG} characters each.')
    title = text_of(table, "title", TITLE, where)
    description = text_of(table, "description", DESCRIPTION, where)
    content = text_of(table, "content", CONTENT, where)
    nature: Json = table.get("nature", "strategy")
    if nature not in NATURES:
        raise BadAnswer(f'{where}: "nature" must be {" or ".join(NATURES)}, not {nature!r:.40}.')
    return Draft(title, description, content, tags, text_of(table, "kind", KIND, where, needed=False), nature)


def object_of(said: Json, where: str) -> Mapping[str, Json]:
    """Raises `BadAnswer` for what is no object."""
    if not isinstance(said, dict):
        raise BadAnswer(f"{where} must be a JSON object, and is {_kind(said)}.")
    return cast(dict[str, Json], said)


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
