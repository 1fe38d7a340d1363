"""Lessons as rows, written and read whole. Each function works within the caller's transaction.

`agent` is an agent's number: None reads those of all, `NOBODY` is an agent without lessons. Each change of a lesson
adds a line to the log; the row in `lessons` holds what is searched for and points to the newest record in the log.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.errors import NotFound, StoreError
from mulligan.core.lessons import Change, Entry, Part
from mulligan.core.records import Json, Lesson
from mulligan.store.sqlite.rows import encoded, record_of, unreadable

NOBODY = -1
TABLES: Mapping[Part, str] = {"lesson": "vectors", "query": "query_vectors"}

_WHOLE = (
    "SELECT l.id, r.schema, r.record, u.uses, u.last_used, e.id FROM lessons l LEFT JOIN log r ON r.seq = l.version"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN embedders e ON e.n = l.embedder WHERE "
)


def wall(agent: int | None, column: str = "l.agent") -> str:
    """The condition that keeps a query to the agent's own rows; it uses the parameter `agent`."""
    return "1" if agent is None else f"{column} = :agent"


def reader(db: sqlite3.Connection, agent_id: str | None) -> int | None:
    if agent_id is None:
        return None
    found = db.execute("SELECT n FROM agents WHERE id = ?", (agent_id,)).fetchone()
    return found[0] if found else NOBODY


def writer(db: sqlite3.Connection, agent_id: str) -> int:
    """The agent's number; a new agent gets one."""
    found = reader(db, agent_id)
    if found is None or found == NOBODY:
        db.execute("INSERT INTO agents (id, generation) SELECT ?, coalesce(max(generation), 0) FROM bank", (agent_id,))
        found = reader(db, agent_id)
    assert found is not None
    return found


def missing(id: str) -> NotFound:
    return NotFound(f"There is no lesson {id!r} in this bank. See those that there are: mulligan memory list")


def number(db: sqlite3.Connection, agent: int | None, id: str) -> int:
    """The lesson's number. If several agents have a lesson of this id, the oldest. Raises `NotFound`."""
    for n in numbers(db, agent, id):
        return n
    raise missing(id)


def numbers(db: sqlite3.Connection, agent: int | None, id: str) -> Sequence[int]:
    """The number of the lesson, if it is there (see `number`)."""
    query = f"SELECT l.n FROM lessons l WHERE l.id = :id AND {wall(agent)} ORDER BY l.n LIMIT 1"
    return [n for (n,) in db.execute(query, {"id": id, "agent": agent})]


def read(db: sqlite3.Connection, n: int) -> Lesson:
    """The current lesson of this number, which is the agent's own. Raises `Unreadable`."""
    id, schema, record, uses, last_used, embedder = db.execute(f"{_WHOLE} l.n = ?", (n,)).fetchone()
    if record is None:
        raise unreadable(f"Lesson {id}", "what it says is gone")
    lesson = lesson_of(id, schema, record)
    uses = uses if isinstance(uses, int) else 0
    last_used = last_used if isinstance(last_used, int | float) else None
    return replace(lesson, uses=uses, last_used=last_used, embedder=embedder)


def lesson_of(id: str, schema: int, record: str) -> Lesson:
    return record_of(Lesson, f"Lesson {id}", schema, record)


def text_of(lesson: Lesson) -> str:
    return encoded(lesson, f"Lesson {lesson.id}")


def columns(lesson: Lesson) -> dict[str, Any]:
    """The columns of a lesson's row that repeat its record."""
    return {
        "id": lesson.id,
        "experience": lesson.experience,
        "state": lesson.state,
        "success": int(lesson.outcome == "success"),
        "confidence": float(lesson.confidence),
        "created": float(lesson.created),
        "superseded_by": lesson.superseded_by,
        "fact": int(lesson.nature == "fact"),
        "project": lesson.project,
        "subject": lesson.subject,
    }


def add_row(
    db: sqlite3.Connection, lesson: Lesson, agent: int, version: int, *, n: int | None, fingerprint: str, terms: bytes
) -> int | None:
    """The number of the new row; None where this agent has a lesson of this id. n: its number; None: the next."""
    given = {"n": n, "agent": agent, "version": version, "fingerprint": fingerprint, "terms": terms}
    row = {**given, **columns(lesson)}
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    added = db.execute(f"INSERT OR IGNORE INTO lessons ({names}) VALUES ({values})", row)
    return added.lastrowid if added.rowcount else None


def set_row(db: sqlite3.Connection, n: int, **values: Any) -> None:
    """Gives the row of a lesson these values."""
    sets = ", ".join(f"{name} = :{name}" for name in values)
    db.execute(f"UPDATE lessons SET {sets} WHERE n = :n", {**values, "n": n})


def as_added(agent_id: str, entry: Entry) -> tuple[Entry, str]:
    """The entry as it is stored, and the encoded lesson. A superseded lesson keeps no vectors."""
    lesson = replace(entry.lesson, agent_id=agent_id, score=None)
    if not lesson.id:
        raise StoreError("A lesson without an id cannot be kept: give it one.")
    vectors: Mapping[Part, bytes] = {} if lesson.state == "superseded" else entry.vectors
    if vectors and not lesson.embedder:
        raise StoreError(f"Lesson {lesson.id} comes with vectors: name their embedder.")
    lesson = replace(lesson, embedder=lesson.embedder if vectors else None)
    return replace(entry, lesson=lesson, vectors=vectors), text_of(lesson)


def insert(db: sqlite3.Connection, agent: int, entry: Entry, text: str, detail: Json = None) -> int:
    """The new lesson's number."""
    seq, lesson = next_seq(db), entry.lesson
    n = add_row(db, lesson, agent, seq, n=None, fingerprint=entry.fingerprint, terms=entry.terms)
    if n is None:
        raise StoreError(f"There is a lesson {lesson.id!r} already: ids are given once.")
    append(db, agent, n, "added", text, detail, seq)
    if lesson.uses or lesson.last_used is not None:
        db.execute("INSERT INTO uses (n, uses, last_used) VALUES (?, ?, ?)", (n, lesson.uses, lesson.last_used))
    if lesson.embedder and entry.vectors:
        set_vectors(db, n, embedder(db, lesson.embedder, entry.vectors.values()), entry.vectors)
    return n


def update(db: sqlite3.Connection, agent: int, n: int, lesson: Lesson, change: Change, detail: Json = None) -> None:
    seq = append(db, agent, n, change, text_of(lesson), detail)
    set_row(db, n, version=seq, **{name: value for name, value in columns(lesson).items() if name != "id"})


def run_removed(db: sqlite3.Connection, episode: str) -> None:
    """Marks the lessons learned from this episode: its record was removed. Unreadable lessons stay as they are."""
    learned = db.execute(
        "SELECT l.n, l.agent FROM lessons l JOIN log v ON v.seq = l.version"
        " WHERE json_valid(v.record) AND json_extract(v.record, '$.origin.episode') = ?",
        (episode,),
    )
    for n, agent in learned.fetchall():
        with suppress(StoreError):
            lesson = read(db, n)
            origin = replace(lesson.origin, removed=True)
            update(db, agent, n, replace(lesson, origin=origin), "edited", {"run": "removed"})


def reactivate_parents(db: sqlite3.Connection, agent: int, id: str) -> tuple[str, ...]:
    """Makes the lessons that were merged into the lesson `id` active again; their ids."""
    numbers = db.execute("SELECT n FROM lessons WHERE agent = ? AND superseded_by = ? ORDER BY n", (agent, id))
    parents = {n: read(db, n) for (n,) in numbers.fetchall()}
    for n, lesson in parents.items():
        update(db, agent, n, replace(lesson, state="active", superseded_by=None), "unmerged", {"from": id})
    return tuple(lesson.id for lesson in parents.values())


def append(
    db: sqlite3.Connection,
    agent: int,
    n: int,
    change: str,
    text: str | None = None,
    detail: Json = None,
    seq: int | None = None,
    at: float | None = None,
) -> int:
    """A line of the log; its number."""
    added = db.execute(
        "INSERT INTO log (seq, agent, lesson, at, change, schema, detail, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (seq, agent, n, at or time.time(), change, SCHEMA, None if detail is None else json_text(detail), text),
    )
    assert added.lastrowid is not None
    return added.lastrowid


def next_seq(db: sqlite3.Connection) -> int:
    """The number of the log's next line: nobody else writes during this transaction."""
    return tip(db) + 1


def tip(db: sqlite3.Connection) -> int:
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
    return found[0] if found else 0


def embedder(db: sqlite3.Connection, id: str, vectors: Iterable[bytes]) -> int:
    """The embedder's number. Raises `StoreError` for vectors that are not of the size of all its others."""
    sizes = {len(vector) for vector in vectors}
    found = db.execute("SELECT n, size FROM embedders WHERE id = ?", (id,)).fetchone()
    if found is None and len(sizes) == 1:
        added = db.execute("INSERT INTO embedders (id, size) VALUES (?, ?)", (id, *sizes))
        assert added.lastrowid is not None
        return added.lastrowid
    if found is None or sizes - {found[1]}:
        known = f"its vectors here have {found[1]} bytes" if found else "all its vectors have one size"
        raise StoreError(f"Vectors of {', '.join(map(str, sorted(sizes)))} bytes, said to be of {id}: {known}.")
    return found[0]


def set_vectors(db: sqlite3.Connection, n: int, embedder: int, vectors: Mapping[Part, bytes]) -> None:
    """Stores vectors of a lesson in place of any other embedder's."""
    if db.execute("SELECT embedder FROM lessons WHERE n = ?", (n,)).fetchone()[0] != embedder:
        drop_vectors(db, n)
    for part, vector in vectors.items():
        db.execute(f"INSERT OR REPLACE INTO {TABLES[part]} (n, vector) VALUES (?, ?)", (n, vector))
    db.execute("UPDATE lessons SET embedder = ? WHERE n = ?", (embedder, n))


def drop_vectors(db: sqlite3.Connection, n: int) -> None:
    for table in TABLES.values():
        db.execute(f"DELETE FROM {table} WHERE n = ?", (n,))
    db.execute("UPDATE lessons SET embedder = NULL WHERE n = ? AND embedder IS NOT NULL", (n,))
