"""Reads the histories of lessons in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mulligan.core.lesson_history import Version
from mulligan.core.records import Lesson
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons.rows import owned
from mulligan.store.sqlite.rows import json_of, object_of, readable, record_of, unreadable


def versions(db: Connection, n: int, id: str) -> Sequence[Version]:
    """The history of lesson number `n`, without lines that cannot be read. id: for messages."""
    rows = db.execute("SELECT at, change, detail, schema, record FROM log WHERE lesson = ? ORDER BY seq", (n,))
    return tuple(readable(rows, lambda row: _version(id, *row)))


def _version(id: str, at: float, change: Any, detail: str | None, schema: int, record: str | None) -> Version:
    what = f"A line ({change}) of the history of lesson {id}"
    if not isinstance(at, int | float):
        raise unreadable(what, f"its time is {at!r:.40}")
    lesson = None if record is None else record_of(Lesson, what, schema, record)
    return Version(at, change, lesson, None if detail is None else json_of(what, detail))


def as_of(db: Connection, agent: int | None, at: float) -> Sequence[Lesson]:
    """The lessons that were active at this time, from the newest record of each, and later uses and embeddings."""
    newest: dict[int, int] = {}
    later_lines: dict[int, list[tuple[str, float, str]]] = {}
    for seq, n, when, change, detail, has_record in db.execute(
        f"SELECT c.seq, c.lesson, c.at, c.change, c.detail, c.record IS NOT NULL FROM log c"
        f" WHERE {owned(agent, 'c.agent')} AND c.at <= :at ORDER BY c.seq",
        {"agent": agent, "at": at},
    ):
        if has_record:
            newest[n] = seq
            later_lines.pop(n, None)
        elif change in ("used", "embedded"):
            later_lines.setdefault(n, []).append((change, when, detail))

    def lesson_then(n: int) -> Lesson:
        schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (newest[n],)).fetchone()
        lesson = record_of(Lesson, f"Lesson number {n}", schema, record)
        for change, when, detail in later_lines.get(n, ()):
            if change == "used":
                lesson = replace(lesson, uses=lesson.uses + 1, last_used=when)
            else:
                embedded = object_of(f"A line in the history of lesson {lesson.id}", detail)
                lesson = replace(lesson, embedder=embedded.get("embedder"))
        return lesson

    lessons = readable(sorted(newest, reverse=True), lesson_then)
    return tuple(lesson for lesson in lessons if lesson.state == "active")
