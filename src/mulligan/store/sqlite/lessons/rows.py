"""Writes and reads the rows of lessons, with their log lines, vectors and keys."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.errors import NotFound, StoreError
from mulligan.core.lesson_history import Addition, Change, Part, compared_text
from mulligan.core.lessons import REFUSED_BY_REPLAY, fields_with
from mulligan.core.records import Json, Lesson
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.rows import encoded, readable, record_of, unreadable

NO_AGENT = -1
"""The number of an agent that the file does not know: it owns nothing."""
VECTOR_TABLES: Mapping[Part, str] = {"lesson": "vectors", "query": "query_vectors"}

LESSON_QUERY = (
    "SELECT l.id, r.schema, r.record, u.uses, u.last_used, e.id FROM {source} LEFT JOIN log r ON r.seq = l.version"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN embedders e ON e.n = l.embedder"
)
"""The columns that `lesson_from_row` takes. `source` contains the table `lessons` under the name l."""
INSERT_LINE = "INSERT INTO log (agent, lesson, at, change, schema, detail, record) VALUES (?, ?, ?, ?, ?, ?, ?)"
"""Takes the values of `log_line`."""


def owned(agent: int | None, column: str = "l.agent") -> str:
    """An SQL condition for the agent's own rows; it uses the parameter `agent`. None: all agents."""
    return "TRUE" if agent is None else f"{column} = :agent"


def find_agent(db: Connection, agent_id: str | None) -> int | None:
    """The agent's number; `NO_AGENT` if it has none. None: all agents."""
    if agent_id is None:
        return None
    row = db.execute("SELECT n FROM agents WHERE id = ?", (agent_id,)).fetchone()
    return row[0] if row else NO_AGENT


def ensure_agent(db: Connection, agent_id: str) -> int:
    """The agent's number; a new agent gets one."""
    number = find_agent(db, agent_id)
    if number is None or number == NO_AGENT:
        db.execute("INSERT INTO agents (id, generation) SELECT ?, coalesce(max(generation), 0) FROM bank", (agent_id,))
        number = find_agent(db, agent_id)
    assert number is not None
    return number


def no_such_lesson(id: str) -> NotFound:
    return NotFound(f"There is no lesson {id!r} in this bank. To list the lessons: mulligan memory list")


def lesson_number(db: Connection, agent: int | None, id: str) -> int:
    """The number of the lesson with this id; if several agents have one, the oldest. Raises `NotFound`."""
    number = find_number(db, agent, id)
    if number is None:
        raise no_such_lesson(id)
    return number


def find_number(db: Connection, agent: int | None, id: str) -> int | None:
    """Like `lesson_number`, but returns None if there is no such lesson."""
    query = f"SELECT l.n FROM lessons l WHERE l.id = :id AND {owned(agent)} ORDER BY l.n LIMIT 1"
    row = db.execute(query, {"id": id, "agent": agent}).fetchone()
    return row and row[0]


def lessons_with_ids(agent: int | None) -> str:
    """SQL for the lessons `l` whose ids are in the parameter `ids`, a JSON list; each is found as by `lesson_number`.

    `OFFSET 0` keeps PostgreSQL from comparing the numbers with those of the whole bank.
    """
    number = f"SELECT s.n FROM lessons s WHERE s.id = j.value AND {owned(agent, 's.agent')} ORDER BY s.n LIMIT 1"
    return f"(SELECT ({number}) AS n FROM json_each(:ids) j /*! OFFSET 0 */) f JOIN lessons l ON l.n = f.n"


def read(db: Connection, n: int) -> Lesson:
    """The current state of lesson number `n`. Raises `Unreadable`."""
    return lesson_from_row(db.execute(f"{LESSON_QUERY.format(source='lessons l')} WHERE l.n = ?", (n,)).fetchone())


def prompt_text(lesson: Lesson) -> tuple[str, str, str]:
    """The parts of a lesson that a prompt shows."""
    return lesson.title, lesson.description, lesson.content


def find_duplicate(db: Connection, candidates: Iterable[tuple[int]], lesson: Lesson) -> int | None:
    """The number of the first candidate that this lesson can be folded into.

    All candidates have the lesson's fingerprint. A strategy folds into any of them. Other lessons fold only into one
    with the same words, because values may differ only in their capitals. No lesson folds into one that a replay
    refused.
    """
    for n, candidate in readable(candidates, lambda row: (row[0], read(db, row[0]))):
        is_same = lesson.nature == "strategy" or compared_text(candidate) == compared_text(lesson)
        if is_same and REFUSED_BY_REPLAY not in candidate.flags:
            return n
    return None


def lesson_from_row(row: tuple[Any, ...]) -> Lesson:
    """The lesson in a row of `LESSON_QUERY`. Raises `Unreadable`."""
    id, schema, record, uses, last_used, embedder = row
    if record is None:
        raise unreadable(f"Lesson {id}", "its text is missing")
    lesson = decode_lesson(id, schema, record)
    uses = uses if isinstance(uses, int) else 0
    last_used = last_used if isinstance(last_used, int | float) else None
    return replace(lesson, uses=uses, last_used=last_used, embedder=embedder)


def decode_lesson(id: str, schema: int, record: str) -> Lesson:
    return record_of(Lesson, f"Lesson {id}", schema, record)


def columns(lesson: Lesson) -> dict[str, Any]:
    """The columns of a lesson's row that repeat parts of its record."""
    return {
        **{name: getattr(lesson, name) for name in fields_with("column")},
        "success": lesson.outcome == "success",
        "fact": lesson.nature == "fact",
        "pair": lesson.nature == "query_pair",
    }


def add_row(
    db: Connection, lesson: Lesson, agent: int, version: int, *, n: int | None, fingerprint: str, terms: bytes
) -> int | None:
    """Adds a row, and returns its number; None if the agent already has a lesson with this id.

    n: the number of the row; None: the next one.
    """
    row = {"agent": agent, "version": version, "fingerprint": fingerprint, "terms": terms, **columns(lesson)}
    if n is not None:
        row["n"] = n
    names = ", ".join(row)
    values = ", ".join(f":{name}" for name in row)
    added = db.execute(f"INSERT INTO lessons ({names}) VALUES ({values}) ON CONFLICT DO NOTHING RETURNING n", row)
    number = added.fetchone()
    return number and number[0]


def set_row(db: Connection, n: int, **values: Any) -> None:
    """Updates columns of a lesson's row."""
    sets = ", ".join(f"{name} = :{name}" for name in values)
    db.execute(f"UPDATE lessons SET {sets} WHERE n = :n", {**values, "n": n})


def prepare_addition(agent_id: str, entry: Addition) -> tuple[Addition, str]:
    """The entry in the form that is stored, and the encoded lesson. A superseded lesson loses its vectors."""
    lesson = replace(entry.lesson, agent_id=agent_id, score=None)
    if not lesson.id:
        raise StoreError("A lesson without an id cannot be stored: give it one.")
    vectors: Mapping[Part, bytes] = {} if lesson.state == "superseded" else entry.vectors
    if vectors and not lesson.embedder:
        raise StoreError(f"Lesson {lesson.id} has vectors: specify their embedder.")
    lesson = replace(lesson, embedder=lesson.embedder if vectors else None)
    return replace(entry, lesson=lesson, vectors=vectors), encoded(lesson, f"Lesson {lesson.id}")


def insert(db: Connection, agent: int, entry: Addition, text: str, detail: Json = None) -> int:
    """Adds a lesson with its first log line. Returns its number."""
    lesson = entry.lesson
    n = add_row(db, lesson, agent, 0, n=None, fingerprint=entry.fingerprint, terms=entry.terms)
    if n is None:
        raise StoreError(f"Lesson {lesson.id!r} already exists; an id can be used only once.")
    set_row(db, n, version=append_line(db, agent, n, "added", text, detail))
    if entry.keys:
        set_keys(db, n, entry.keys)
    if lesson.uses or lesson.last_used is not None:
        db.execute("INSERT INTO uses (n, uses, last_used) VALUES (?, ?, ?)", (n, lesson.uses, lesson.last_used))
    if lesson.embedder and entry.vectors:
        set_vectors(db, n, embedder_number(db, lesson.embedder, entry.vectors.values()), entry.vectors)
    return n


def update(db: Connection, agent: int, n: int, lesson: Lesson, change: Change, detail: Json = None) -> None:
    """Writes the lesson into a new log line, and its row accordingly."""
    seq = append_line(db, agent, n, change, encoded(lesson, f"Lesson {lesson.id}"), detail)
    set_row(db, n, version=seq, **{name: value for name, value in columns(lesson).items() if name != "id"})


def note_removed_episode(db: Connection, episode: str) -> None:
    """Removes the account of an episode whose record was removed, and marks the lessons learned from it.

    Unreadable lessons stay as they are.
    """
    db.execute("DELETE FROM accounts WHERE id = ?", (episode,))
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


def reactivate_parents(db: Connection, agent: int, id: str, by: Mapping[str, str]) -> tuple[str, ...]:
    """Makes the lessons that were merged into the lesson `id` active again. Returns their ids."""
    numbers = db.execute("SELECT n FROM lessons WHERE agent = ? AND superseded_by = ? ORDER BY n", (agent, id))
    parents = {n: read(db, n) for (n,) in numbers.fetchall()}
    for n, lesson in parents.items():
        update(db, agent, n, replace(lesson, state="active", superseded_by=None), "unmerged", {"from": id, **by})
    return tuple(lesson.id for lesson in parents.values())


def append_line(
    db: Connection,
    agent: int,
    n: int,
    change: str,
    text: str | None = None,
    detail: Json = None,
    at: float | None = None,
) -> int:
    """Appends a line to the log. Returns its number."""
    line = log_line(agent, n, change, text, detail, at or time.time())
    return db.execute(f"{INSERT_LINE} RETURNING seq", line).fetchone()[0]


def log_line(agent: int, n: int, change: str, text: str | None, detail: Json, at: float) -> tuple[Any, ...]:
    """The values of a line of the log, for `INSERT_LINE`."""
    return agent, n, at, change, SCHEMA, None if detail is None else json_text(detail), text


def embedder_number(db: Connection, id: str, vectors: Iterable[bytes]) -> int:
    """The embedder's number. Raises `StoreError` unless the vectors have the size of its others."""
    sizes = {len(vector) for vector in vectors}
    query = "SELECT n, size FROM embedders WHERE id = ?"
    row = db.execute(query, (id,)).fetchone()
    if row is None and len(sizes) == 1:
        db.execute("INSERT INTO embedders (id, size) VALUES (?, ?) ON CONFLICT DO NOTHING", (id, *sizes))
        row = db.execute(query, (id,)).fetchone()
    if row is None or sizes - {row[1]}:
        expected = f"its vectors here have {row[1]} bytes" if row else "all its vectors must have the same size"
        raise StoreError(
            f"Vectors of {', '.join(map(str, sorted(sizes)))} bytes do not match the embedder {id}: {expected}."
        )
    return row[0]


def set_vectors(db: Connection, n: int, embedder: int, vectors: Mapping[Part, bytes]) -> None:
    """Stores vectors of a lesson, in place of those of another embedder."""
    if db.execute("SELECT embedder FROM lessons WHERE n = ?", (n,)).fetchone()[0] != embedder:
        drop_vectors(db, n)
    for part, vector in vectors.items():
        insert = f"INSERT INTO {VECTOR_TABLES[part]} (n, vector) VALUES (?, ?)"
        db.execute(f"{insert} ON CONFLICT (n) DO UPDATE SET vector = excluded.vector", (n, vector))
    db.execute("UPDATE lessons SET embedder = ? WHERE n = ?", (embedder, n))


def set_keys(db: Connection, n: int, keys: Iterable[str]) -> None:
    """Replaces the keys that a lesson is looked up by."""
    db.execute("DELETE FROM keys WHERE lesson = ?", (n,))
    db.executemany("INSERT INTO keys (lesson, key) VALUES (?, ?) ON CONFLICT DO NOTHING", ((n, key) for key in keys))


def drop_vectors(db: Connection, n: int) -> None:
    for table in VECTOR_TABLES.values():
        db.execute(f"DELETE FROM {table} WHERE n = ?", (n,))
    db.execute("UPDATE lessons SET embedder = NULL WHERE n = ? AND embedder IS NOT NULL", (n,))
