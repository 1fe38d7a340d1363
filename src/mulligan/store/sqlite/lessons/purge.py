"""Removes lessons for good, the only way one disappears. Each function works within the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mulligan.core.codec import json_text, record_text
from mulligan.core.lessons import Receipt
from mulligan.store.sqlite import set_aside
from mulligan.store.sqlite.lessons.rows import NOBODY, TABLES, append, number, read, update
from mulligan.store.sqlite.rows import object_of, readable, record_of

_OF_AGENT = "IN (SELECT n FROM lessons WHERE agent = :agent)"
_ALL = (
    f"DELETE FROM links WHERE a {_OF_AGENT}",
    f"DELETE FROM uses WHERE n {_OF_AGENT}",
    *(f"DELETE FROM {table} WHERE n {_OF_AGENT}" for table in TABLES.values()),
    "DELETE FROM log WHERE agent = :agent",
    "DELETE FROM lessons WHERE agent = :agent",
    "DELETE FROM outcomes WHERE receipt IN (SELECT n FROM receipts WHERE agent = :agent)",
    "DELETE FROM outcomes WHERE work IN (SELECT n FROM work WHERE agent = :agent)",
    "DELETE FROM receipts WHERE agent = :agent",
    "DELETE FROM payloads WHERE n IN (SELECT n FROM work WHERE agent = :agent)",
    "DELETE FROM work WHERE agent = :agent",
    "DELETE FROM agents WHERE n = :agent",
    "UPDATE bank SET generation = generation + 1",
)
_ONE = (
    "DELETE FROM links WHERE a = :n OR b = :n",
    "DELETE FROM uses WHERE n = :n",
    *(f"DELETE FROM {table} WHERE n = :n" for table in TABLES.values()),
    "DELETE FROM log WHERE lesson = :n AND agent = :agent",
    "DELETE FROM lessons WHERE n = :n AND agent = :agent",
)


def purge(db: sqlite3.Connection, agent: int | None, ids: Sequence[str] | None) -> int:
    """How many were removed. The number of a single one stays in the log, so that caches of other processes drop it."""
    assert agent is not None
    if ids is None:
        return 0 if agent == NOBODY else _purge_all(db, agent)
    unique = tuple(dict.fromkeys(ids))
    numbers = [number(db, agent, id) for id in unique]
    for n, id in zip(numbers, unique, strict=True):
        _forget_in_receipts(db, agent, [id], "lesson = :n AND agent = :agent", {"n": n, "agent": agent})
        _forget_in_histories(db, agent, n, id)
        for statement in _ONE:
            db.execute(statement, {"n": n, "agent": agent})
        set_aside.purge(db, agent, id)
        append(db, agent, n, "purged")
    for id in unique:
        retire_orphans(db, agent, id, "the lesson that it was merged into was purged")
    return len(unique)


def _purge_all(db: sqlite3.Connection, agent: int) -> int:
    ids = [id for (id,) in db.execute("SELECT id FROM lessons WHERE agent = ?", (agent,))]
    _forget_in_receipts(db, agent, ids, "agent = :agent", {"agent": agent})
    for statement in _ALL:
        db.execute(statement, {"agent": agent})
    set_aside.purge(db, agent, None)
    return len(ids)


def retire_orphans(db: sqlite3.Connection, agent: int, successor: str, why: str) -> list[str]:
    """Retires the lessons that were merged into one that is gone, as they may say the same; their ids."""
    rows = db.execute("SELECT n FROM lessons WHERE agent = ? AND superseded_by = ?", (agent, successor)).fetchall()
    ids: list[str] = []
    for n, lesson in readable(rows, lambda row: (row[0], read(db, row[0]))):
        update(db, agent, n, replace(lesson, state="retired", superseded_by=None), "retired", {"why": why})
        ids.append(lesson.id)
    return ids


def _forget_in_receipts(
    db: sqlite3.Connection, agent: int, ids: Iterable[str], condition: str, values: dict[str, int]
) -> None:
    """Receipts of recalls over all agents (agent 0) name lessons, too."""
    used = db.execute(f"SELECT DISTINCT detail FROM log WHERE {condition} AND change = 'used'", values).fetchall()
    gone = set(ids)
    for name in {
        named.get("receipt") for named in readable(used, lambda row: object_of("A line of a history", row[0]))
    }:
        rows = db.execute(
            "SELECT n, schema, record FROM receipts WHERE id = ? AND agent IN (?, 0)", (name, agent)
        ).fetchall()
        for n, receipt in readable(rows, lambda row: (row[0], record_of(Receipt, "A receipt", *row[1:]))):
            left = {id: score for id, score in receipt.lessons.items() if id not in gone}
            db.execute("UPDATE receipts SET record = ? WHERE n = ?", (record_text(replace(receipt, lessons=left)), n))


def _forget_in_histories(db: sqlite3.Connection, agent: int, n: int, id: str) -> None:
    """The histories of linked lessons name it."""
    others = db.execute("SELECT a + b - :n FROM links WHERE a = :n OR b = :n", {"n": n}).fetchall()
    for (other,) in others:
        db.execute(
            "DELETE FROM log WHERE lesson = ? AND agent = ? AND change = 'linked' AND instr(detail, ?)",
            (other, agent, f'"with":{json_text(id)}'),
        )
