"""What can be wrong with the bank's tables, and what of it is mended. Each function is work within a transaction.

The log is what is believed: a lesson's row is made again from it, and what hangs on nothing is removed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from mulligan.core.codec import from_json
from mulligan.core.errors import StoreError
from mulligan.core.lessons import Finding, Receipt
from mulligan.store.leases import died
from mulligan.store.lessons_purge import retire_orphans
from mulligan.store.lessons_rows import TABLES, columns, drop_vectors, lesson_of, reactivate_parents
from mulligan.store.queue import requeue


class Damaged(Exception):
    """SQLite cannot read its own file, so nothing in it is acted on, and its transaction does not even commit."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("the file is damaged")
        self.findings = findings


def verify(db: sqlite3.Connection, mend: bool) -> Sequence[Finding]:
    """Empty when all is well. A generation ends when lessons were mended: other processes read them anew.

    Raises `Damaged`.
    """
    found = list(_file(db, mend))
    if any(not finding.mended for finding in found):
        raise Damaged([replace(finding, mended=False) for finding in found])
    lessons = [*_lost_rows(db, mend), *_rows(db, mend), *_vectors(db, mend), *_successors(db, mend)]
    found += [*lessons, *_orphans(db, mend), *_receipts(db), *_work(db, mend)]
    if any(finding.mended for finding in lessons):
        db.execute("UPDATE bank SET generation = generation + 1")
        db.execute("UPDATE agents SET generation = (SELECT generation FROM bank)")
    return found


def _file(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    """SQLite's own check; indexes can be made again, pages cannot."""
    wrong = _checked(db)
    if wrong and mend:
        try:
            db.execute("REINDEX")
        except sqlite3.DatabaseError as error:
            wrong.append(str(error))
    left = _checked(db) if wrong and mend else wrong
    for what in wrong:
        advice = "" if what not in left else " Restore it from a copy."
        yield Finding(f"The file is damaged: {what}.{advice}", mended=mend and what not in left)


def _checked(db: sqlite3.Connection) -> list[str]:
    try:
        return [what for (what,) in db.execute("PRAGMA integrity_check(20)") if what != "ok"]
    except sqlite3.DatabaseError as error:
        return [str(error)]


def _lost_rows(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    """Lessons that the log knows and that have no row, though nobody purged them."""
    lost = db.execute(
        "SELECT max(seq), agent, lesson FROM log c WHERE record IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM lessons WHERE n = c.lesson) GROUP BY lesson"
    ).fetchall()
    for seq, agent, n in lost:
        lesson = _told(db, seq)
        if lesson is None:
            yield Finding(f"Lesson number {n} has no row, and its history cannot be read.")
            continue
        taken = db.execute("SELECT 1 FROM lessons WHERE id = ? AND agent = ?", (lesson.id, agent)).fetchone()
        if mend and not taken:
            row = {**columns(lesson), "n": n, "agent": agent, "version": seq}
            db.execute(
                "INSERT INTO lessons (n, agent, version, id, fingerprint, experience, state, success, confidence,"
                " created, superseded_by, terms) VALUES (:n, :agent, :version, :id, '', :experience, :state,"
                " :success, :confidence, :created, :superseded_by, x'')",
                row,
            )
            if lesson.uses or lesson.last_used is not None:
                db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?, ?)", (n, lesson.uses, lesson.last_used))
        yield Finding(
            f"Lesson {lesson.id} was gone but for its history. Its words are found again when it is edited.",
            mend and not taken,
            lesson.id,
        )


def _rows(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    """Rows that say other than their newest record in the log."""
    names = "id, experience, state, success, confidence, created, superseded_by"
    for n, agent, version, *row in db.execute(f"SELECT n, agent, version, {names} FROM lessons").fetchall():
        newest = db.execute(
            "SELECT max(seq) FROM log WHERE lesson = ? AND agent = ? AND record IS NOT NULL", (n, agent)
        ).fetchone()[0]
        lesson = None if newest is None else _told(db, newest)
        if lesson is None:
            yield Finding(f"Lesson {row[0]} has no history that can be read, so it cannot be either.", id=row[0])
            continue
        told = columns(lesson)
        if version == newest and row == [told[name] for name in names.split(", ")]:
            continue
        if mend:
            values: dict[str, Any] = {**told, "n": n, "version": newest}
            sets = ", ".join(f"{name} = :{name}" for name in ("version", *names.split(", ")))
            db.execute(f"UPDATE lessons SET {sets} WHERE n = :n", values)
        yield Finding(f"Lesson {lesson.id}: its row is not what its history says.", mend, lesson.id)


def _told(db: sqlite3.Connection, seq: int) -> Any:
    """The lesson in this line of the log; None when it cannot be read."""
    schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (seq,)).fetchone()
    try:
        return lesson_of(str(seq), schema, record)
    except StoreError:
        return None


_VECTORS = (
    (
        "vectors of an embedder that is not known",
        "l.embedder IS NOT NULL AND l.embedder NOT IN (SELECT n FROM embedders)",
    ),
    ("an embedder and no vector", "l.embedder IS NOT NULL AND v.n IS NULL"),
    ("vectors of no embedder", "l.embedder IS NULL AND (v.n IS NOT NULL OR q.n IS NOT NULL)"),
    ("vectors, though it is superseded", "l.state = 'superseded' AND (v.n IS NOT NULL OR q.n IS NOT NULL)"),
    (
        "a vector of the wrong size",
        "(length(v.vector) <> e.size OR length(q.vector) <> e.size)",
    ),
)


def _vectors(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    joined = (
        "SELECT l.n, l.id FROM lessons l LEFT JOIN embedders e ON e.n = l.embedder"
        " LEFT JOIN vectors v ON v.n = l.n LEFT JOIN query_vectors q ON q.n = l.n WHERE "
    )
    for what, condition in _VECTORS:
        for n, id in db.execute(joined + condition).fetchall():
            if mend:
                drop_vectors(db, n)
            yield Finding(f"Lesson {id} has {what}. They are made again when the bank embeds.", mend, id)


def _successors(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    rows = db.execute(
        "SELECT l.agent, l.id, l.superseded_by FROM lessons l WHERE l.state = 'superseded' AND NOT EXISTS"
        " (SELECT 1 FROM lessons s WHERE s.id = l.superseded_by AND s.agent = l.agent)"
    ).fetchall()
    for agent, successor in dict.fromkeys((agent, successor) for agent, _, successor in rows):
        if mend and successor is not None:
            retire_orphans(db, agent, successor, f"{successor}, which it was merged into, is not there")
    held = (
        "SELECT DISTINCT s.agent, s.id FROM lessons s JOIN lessons l ON l.agent = s.agent AND l.superseded_by = s.id"
        " WHERE s.state = 'quarantined'"
    )
    for agent, id in db.execute(held).fetchall():
        if mend:
            reactivate_parents(db, agent, id)
        yield Finding(f"Lesson {id} is held back, and those that it was merged from are not recalled either.", mend, id)
    for _, id, successor in rows:
        mended = mend and successor is not None
        yield Finding(
            f"Lesson {id} was merged into {successor}, which is not there. Mended, it is retired.", mended, id
        )


def _orphans(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    """Rows that hang on a row that is not there. Those of episodes are only told."""
    ours = {"uses", "links", "payloads", "outcomes", *TABLES.values()}
    found = {(table, row) for table, row, _, _ in db.execute("PRAGMA foreign_key_check").fetchall()}
    for table, row in sorted(found):
        mended = mend and table in ours
        if mended:
            db.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
        yield Finding(f"Row {row} of {table} belongs to nothing that is there.", mended)


def _receipts(db: sqlite3.Connection) -> Iterator[Finding]:
    for id, schema, record in db.execute("SELECT id, schema, record FROM receipts"):
        try:
            from_json(Receipt, json.loads(record), schema)
        except ValueError as error:
            yield Finding(f"The receipt {id} cannot be read: {error}")


def _work(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    """Work whose owner has died would be claimed again by itself; work without its payload cannot be done."""
    rows = db.execute(
        "SELECT w.n, w.id, w.status, w.owner, p.n IS NOT NULL FROM work w LEFT JOIN payloads p ON p.n = w.n"
        " WHERE w.status <> 'done' AND w.status <> 'failed'"
    ).fetchall()
    for n, id, status, owner, whole in rows:
        if not whole:
            if mend:
                said = json.dumps("what was to be done is lost")
                db.execute("UPDATE work SET status = 'failed', owner = '', error = ? WHERE n = ?", (said, n))
            yield Finding(f"Work {id} has lost its payload, so it cannot be done: learn again.", mend, id)
        elif status not in ("queued", "running", "waiting") or (status == "running" and died(owner)):
            if mend:
                requeue(db, n, "the process that did it ended")
            yield Finding(f"Work {id} is {status}, and nobody does it.", mend, id)
