"""What a lesson goes through before it is kept: secrets masked, invisible text taken out, attempts to instruct flagged.

A filter, and no wall. Of texts that were written after it (tests/bank/screening), it flagged 13 of 29 that instruct
their reader and 1 of 25 harmless ones, 12 of 20 with a harmful command in seven languages and 0 of 20 harmless ones.
It changes nothing in a text that it has seen before.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from mulligan.bank.learn.signs import signs
from mulligan.core.records import Json, Lesson
from mulligan.text.secrets import mask

TITLE, DESCRIPTION, CONTENT, QUERY, TAG, TAGS = 300, 2000, 20_000, 20_000, 100, 50
"""Characters, and tags, that are kept: far more than thinkers may write, for what is written and imported."""

_FLAG_EMOJI = re.compile("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,6}\U000e007f")
_TAGS = re.compile("[\U000e0000-\U000e007f]")
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_WIDTHLESS = re.compile("[\u200b\u2060-\u2064\ufeff\u180e\u00ad\U000e0100-\U000e01ef]")
_JOINERS = "\u200c\u200d"
_SMUGGLED = re.compile(f"[\u200b\u2060-\u2064\ufeff{_JOINERS}\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4,}}")
_LATIN_JOINED = re.compile(f"(?<=[A-Za-z])[{_JOINERS}]+(?=[A-Za-z])")


def screened(lesson: Lesson, named: str = "") -> tuple[Lesson, tuple[str, ...]]:
    """The lesson as it may be kept, and why it should be held back; no flags for most.

    Flags: override, persona, role tags, tool call, asks for its prompt, exfiltration, remote code, concealment, acts
    unasked, speaks to its reader, encoded, hidden text; of commands foreign code, payment, deletes outside, widens
    rights, unless they stand in the text `named`.
    """
    origin = lesson.origin
    clean = replace(
        lesson,
        title=_kept(" ".join(visible(lesson.title).split()), TITLE),
        description=_kept(lesson.description, DESCRIPTION),
        content=_kept(lesson.content, CONTENT),
        query=_kept(lesson.query, QUERY),
        kind=_kept(lesson.kind, TAG),
        project=_kept(lesson.project, TAG),
        tags=tuple(dict.fromkeys(tag for each in lesson.tags if (tag := _kept(each, TAG).strip())))[:TAGS],
        origin=replace(origin, reason=_kept(origin.reason, DESCRIPTION), by=_kept(origin.by, TITLE)),
        context=cast(Mapping[str, Json], _json(dict(lesson.context))),
    )
    hidden = {"hidden text"} if any(_hides(text) for text in _texts(lesson)) else set[str]()
    return clean, tuple(sorted(hidden.union(*(signs(text, named) for text in {*_texts(clean)} - {""}))))


def _kept(text: str, most: int) -> str:
    """Without what cannot be seen, secrets masked, no longer than `most` characters."""
    text = mask(visible(text)) if text else ""
    while len(text) > most:  # again: the cut may go through an emoji of several characters, or leave what is a key
        text = mask(visible(text[: most - 1]).rstrip() + "…")
    return text


def visible(text: str) -> str:
    """Without control characters, half surrogates and characters that only hide or reorder text. Joiners stay where
    scripts and emoji need them."""
    text = text.replace("\r\n", "\n")
    while (shorter := _seen(text)) != text:  # what was kept apart may hide something once it stands together
        text = shorter
    return text


def _seen(text: str) -> str:
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    pieces = _FLAG_EMOJI.split(text)
    for pattern in (_SMUGGLED, _TAGS, _BIDI, _WIDTHLESS, _LATIN_JOINED):
        pieces = [pattern.sub("", piece) for piece in pieces]
    flags = _FLAG_EMOJI.findall(text)
    return "".join(piece + flag for piece, flag in zip(pieces, [*flags, ""], strict=True))


def _hides(text: str) -> bool:
    plain = _FLAG_EMOJI.sub(" ", text)
    return any(pattern.search(plain) for pattern in (_TAGS, _BIDI, _SMUGGLED))


def _texts(lesson: Lesson) -> tuple[str, ...]:
    """All that somebody may be shown."""
    written = (lesson.title, lesson.description, lesson.content, lesson.query, lesson.kind, *lesson.tags)
    return (*written, lesson.origin.reason, *_strings(dict(lesson.context)))


def _strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        table = cast(Mapping[str, Json], value)
        return [text for key, inner in table.items() for text in (key, *_strings(inner))]
    return [text for inner in cast(list[Json], value) for text in _strings(inner)] if isinstance(value, list) else []


def _json(value: Json) -> Json:
    """A copy, its texts and keys as they may be kept."""
    if isinstance(value, str):
        return _kept(value, CONTENT)
    if isinstance(value, list):
        return [_json(inner) for inner in cast(list[Any], value)]
    if isinstance(value, Mapping):
        return {_kept(key, TITLE): _json(inner) for key, inner in cast(Mapping[str, Any], value).items()}
    return value
