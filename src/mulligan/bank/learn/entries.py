"""Prepare a lesson for the store: masked, flagged, with its fingerprint and search terms."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import replace

from mulligan.bank.learn.facts import subject_of
from mulligan.bank.learn.screening import screened
from mulligan.bank.recall.terms import terms_of
from mulligan.core.lessons import Entry
from mulligan.core.records import Lesson


def entry_of(lesson: Lesson, *, quarantine: bool, named: str = "") -> Entry:
    """The lesson with secrets masked, flagged, and held back for its flags where `quarantine`.

    named: what the task and its check say. A command that stands there is flagged, and holds nothing back.
    """
    given = lesson
    lesson, flags = screened(given)
    if flags:
        held = quarantine and bool(screened(given, named)[1] if named else flags)
        state = "quarantined" if held and lesson.state == "active" else lesson.state
        lesson = replace(lesson, state=state, flags=tuple(dict.fromkeys((*lesson.flags, *flags))))
    lesson = replace(lesson, subject=subject_of(lesson))
    return Entry(lesson, fingerprint(lesson), terms_of(searched(lesson)))


def fingerprint(lesson: Lesson) -> str:
    """Equal for lessons that say the same, letter by letter, but for white space and capitals; of facts, in the same
    project, whatever became of the task."""
    kind = f"fact {lesson.project}" if lesson.nature == "fact" else lesson.outcome
    parts = (kind, lesson.title, lesson.description, lesson.content)
    plain = "\0".join(" ".join(unicodedata.normalize("NFC", part).casefold().split()) for part in parts)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def searched(lesson: Lesson) -> str:
    """The text of a lesson that search terms are taken from."""
    return "\n".join((lesson.title, lesson.description, lesson.content, lesson.query, lesson.kind, *lesson.tags))


def embedded(lesson: Lesson) -> str:
    """The text of a lesson that its vector is made from."""
    return "\n".join(part for part in (lesson.title, lesson.description, lesson.content) if part)
