"""Who decided what about lessons: changes that a person or a caller made, from the lessons' histories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mulligan.core.lesson_history import Archive, Change, Version
from mulligan.core.records import Json

DECIDED: tuple[Change, ...] = ("edited", "retired", "restored", "released", "merged", "unmerged", "doubted")
"""Changes that somebody decided on. Others follow from these, or are counted."""


@dataclass(frozen=True)
class Decided:
    """A change of a lesson.

    Attributes:
        at: seconds since the epoch.
        by: who changed it, such as "cli anna"; "" where the history does not say.
        why: the reason, if one was given.
        title: of the lesson after the change.
    """

    at: float
    change: Change
    by: str
    why: str
    agent_id: str
    lesson: str
    title: str


def decided(archives: Iterable[Archive]) -> Sequence[Decided]:
    """All such changes, oldest first. A lesson that was written by hand counts as decided on when it came."""
    found = [
        one
        for archive in archives
        for id, versions in archive.history.items()
        for one in _of_lesson(archive.agent_id or "", id, versions)
    ]
    return sorted(found, key=lambda one: one.at)


def _of_lesson(agent_id: str, id: str, versions: Sequence[Version]) -> Iterable[Decided]:
    title = ""
    for version in versions:
        lesson = version.lesson
        title = lesson.title if lesson else title
        written = version.change == "added" and lesson is not None and lesson.origin.kind == "written"
        if version.change in DECIDED or written:
            detail: Mapping[str, Json] = version.detail or {}
            by, why = str(detail.get("by") or ""), str(detail.get("why") or "")
            yield Decided(version.at, version.change, by, why, agent_id, id, title)
