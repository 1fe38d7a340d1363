"""A lesson as it goes into the store: masked, flagged, fingerprinted, with the terms that it is found by."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import replace

from mulligan.bank.screening import screened
from mulligan.bank.terms import terms_of
from mulligan.core.lessons import Entry
from mulligan.core.records import Lesson


def entry_of(lesson: Lesson, *, quarantine: bool) -> Entry:
    """The lesson with secrets masked, and held back when it tries to instruct its reader."""
    lesson, flags = screened(lesson)
    if flags:
        state = "quarantined" if quarantine and lesson.state == "active" else lesson.state
        lesson = replace(lesson, state=state, flags=tuple(dict.fromkeys((*lesson.flags, *flags))))
    return Entry(lesson, fingerprint(lesson), terms_of(searched(lesson)))


def fingerprint(lesson: Lesson) -> str:
    """Equal for lessons that say the same, letter by letter, but for white space and capitals."""
    parts = (lesson.outcome, lesson.title, lesson.description, lesson.content)
    plain = "\0".join(" ".join(unicodedata.normalize("NFC", part).casefold().split()) for part in parts)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def searched(lesson: Lesson) -> str:
    """All of a lesson that words are looked for in."""
    return "\n".join((lesson.title, lesson.description, lesson.content, lesson.query, lesson.kind, *lesson.tags))


def embedded(lesson: Lesson) -> str:
    """What a lesson's vector is of."""
    return "\n".join(part for part in (lesson.title, lesson.description, lesson.content) if part)
