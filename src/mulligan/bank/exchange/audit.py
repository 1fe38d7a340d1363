"""List who decided what about lessons: the changes in their histories that a person or a caller made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mulligan.core.lesson_history import Archive, Change, Version
from mulligan.core.records import Json

DECIDED: tuple[Change, ...] = ("edited", "retired", "restored", "released", "merged", "unmerged", "doubted")
"""Changes that somebody decided on. All others follow from these, or are counts."""


@dataclass(frozen=True)
class Decided:
    """A change of a lesson.

    Attributes:
        at: seconds since the epoch.
        by: who changed it, such as "cli anna"; "" if it is not recorded.
        why: the reason; "" if none was given.
        lesson: the id of the lesson.
        title: the title after the change.
    """

    at: float
    change: Change
    by: str
    why: str
    agent_id: str
    lesson: str
    title: str


def decided(archives: Iterable[Archive]) -> Sequence[Decided]:
    """All changes that somebody decided on, oldest first, including the adding of lessons written by hand."""
    changes: list[Decided] = []
    for archive in archives:
        for id, versions in archive.history.items():
            changes += _of_lesson(archive.agent_id or "", id, versions)
    return sorted(changes, key=lambda change: change.at)


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
