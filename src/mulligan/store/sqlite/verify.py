"""Checks the whole file and repairs what it can. Each function works within the caller's transaction.

The log of lessons is the reference: a lesson's row is restored from it. Rows that cannot be read, or that belong to
nothing, are set aside (`set_aside`).
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.codec import SCHEMA
from mulligan.core.episode import advance
from mulligan.core.errors import OutOfOrder, Unreadable
from mulligan.core.lesson_history import Account, Fault, Receipt
from mulligan.core.records import Episode, Lesson
from mulligan.core.worth import Tally
from mulligan.recording.holders import died
from mulligan.store.sqlite.episodes import agent_column
from mulligan.store.sqlite.images import unpacked
from mulligan.store.sqlite.lessons.archive import retire_orphans
from mulligan.store.sqlite.lessons.receipts import account_of
from mulligan.store.sqlite.lessons.rows import (
    VECTOR_TABLES,
    add_row,
    columns,
    decode_lesson,
    drop_vectors,
    reactivate_parents,
    set_row,
)
from mulligan.store.sqlite.queue import release
from mulligan.store.sqlite.rows import (
    NO_CHARACTER,
    broken,
    copy_aside,
    event_of,
    json_in,
    object_of,
    record_of,
    set_aside,
    unreadable,
)
from mulligan.store.sqlite.schema import expected, missing, missing_columns, recreate
from mulligan.text.plain import count

_EPISODE_TABLES = ("events", "steps", "files", "leases", "shown")


def _episodes(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    for n, id in db.execute("SELECT n, id FROM episodes ORDER BY n").fetchall():
        yield from _episode(db, n, id, mend)
    yield from _steps(db, mend)
    yield from _contents(db, mend, "texts", used_by="files", noun="text", owner="a prompt")
    yield from _contents(db, mend, "images", used_by="shown", noun="image", owner="an episode")
    yield from _records(db, mend, BENCH_RECORDS)


def _episode(db: sqlite3.Connection, n: int, id: str, mend: bool) -> Iterator[Fault]:
    run, agent, schema, record = db.execute(
        "SELECT run, agent, schema, record FROM episodes WHERE n = ?", (n,)
    ).fetchone()
    try:
        episode = record_of(Episode, f"Episode {id}", schema, unpacked(db, f"Episode {id}", record))
    except Unreadable as error:
        if mend:
            steps = "step IN (SELECT n FROM steps WHERE episode = ?)"
            set_aside(db, "results", steps, (n,), about=str(id))
            for table in _EPISODE_TABLES:
                set_aside(db, table, "episode = ?", (n,), about=str(id))
            set_aside(db, "episodes", "n = ?", (n,), about=str(id))
        yield _fault(error, mend, "it is set aside with all that is recorded of it")
        return
    recorded = (episode.id, episode.run, agent_column(episode))
    if (id, run, agent) != recorded:
        if mend:
            db.execute("UPDATE OR IGNORE episodes SET id = ?, run = ?, agent = ? WHERE n = ?", (*recorded, n))
        yield Fault(f"Episode {episode.id}: its row differs from its record.", mend)
    events = db.execute("SELECT seq, schema, event FROM events WHERE episode = ? ORDER BY seq", (n,))
    for expected_seq, (seq, event_schema, text) in enumerate(events):
        what = f"Event {seq} of episode {id}"
        try:
            if seq != expected_seq:
                raise unreadable(what, f"event {expected_seq} is missing")
            try:
                episode = advance(episode, event_of(what, event_schema, unpacked(db, what, text)))
            except OutOfOrder as error:
                raise unreadable(what, error) from error
        except Unreadable as error:
            if mend:
                set_aside(db, "events", "episode = ? AND seq >= ?", (n, seq), about=str(id))
            yield _fault(error, mend, "it is set aside with those after it, and the episode can be resumed from there")
            return


def _steps(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Requests and results of the journal. A query finds those that may be damaged, and only these are read."""
    suspicious = "typeof({0}) <> 'text' OR NOT json_valid({0}) OR length({0}) <> length(CAST({0} AS BLOB))"
    suspicious += " OR instr({0}, '\"media_type\":')"  # its images may be gone
    for table, column, number in (("steps", "request", "n"), ("results", "result", "step")):
        rows = db.execute(
            f"SELECT s.n, s.key, e.id, x.{column} FROM {table} x JOIN steps s ON s.n = x.{number}"
            f" JOIN episodes e ON e.n = s.episode WHERE {suspicious.format(f'x.{column}')}"
        ).fetchall()
        what = f"The {column} of the step {{1}} of episode {{2}}"
        for (n, _, episode, _), why in broken(rows, partial(_read_step, db, what)):
            if mend:
                set_aside(db, "results", "step = ?", (n,), about=episode)
            if mend and table == "steps":
                set_aside(db, "steps", "n = ?", (n,), about=episode)
            yield Fault(f"{why} With --mend, it is set aside, and a resumed run repeats the step.", mend)


def _read_step(db: sqlite3.Connection, what: str, row: tuple[Any, ...]) -> object:
    return json_in(what)((*row[:-1], unpacked(db, what.format(*row), row[-1])))


def _contents(
    db: sqlite3.Connection, mend: bool, table: str, *, used_by: str, noun: str, owner: str
) -> Iterator[Fault]:
    """Contents that do not match the hash by which the table `used_by` refers to them."""
    damaged = [
        (row, sha256)
        for row, sha256, content in db.execute(f"SELECT rowid, sha256, content FROM {table}")
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != sha256
    ]
    for row, sha256 in damaged:
        if mend:
            set_aside(db, used_by, "sha256 = ?", (sha256,))
            set_aside(db, table, "rowid = ?", (row,))
        yield Fault(
            f"The {noun} {str(sha256)[:12]} of {owner} does not match its hash. With --mend, it is set aside.", mend
        )


@dataclass(frozen=True)
class Records:
    """A table with a record in each row.

    Attributes:
        cls: The class of the records.
        what: Names a record in a message; `{}` is the value of the column `name`.
        agent: The column with the agent that a row belongs to.
        references: Columns of other tables (`table.column`) that refer to the row; their rows are set aside with it.
        remedy: What a repair does.
    """

    cls: type[Any]
    table: str
    what: str
    name: str = "id"
    agent: str = "NULL"
    references: Sequence[str] = ()
    remedy: str = "it is set aside"

    def read(self, row: Sequence[Any]) -> object:
        """Reads a row that begins with the column `name` and ends with schema and record. Raises `Unreadable`."""
        return record_of(self.cls, self.what.format(row[0]), *row[-2:])


BANK_RECORDS = (
    Records(Receipt, "receipts", "The receipt {}", agent="agent", references=("outcomes.receipt",)),
    Records(
        Tally,
        "worth",
        "What lesson number {} is worth",
        "lesson",
        "agent",
        remedy="it is set aside, and counting starts again",
    ),
    Records(Account, "accounts", "The account of {}", agent="agent"),
)
BENCH_RECORDS = (
    Records(
        BenchRun,
        "bench_runs",
        "Benchmark run {}",
        references=("bench_cases.run", "bench_leases.run"),
        remedy="it is set aside with its results; its episodes stay",
    ),
    Records(
        CaseResult,
        "bench_cases",
        "The result of case {} of a benchmark run",
        "position",
        remedy="it is set aside, and a resume settles the case again",
    ),
)


def _records(db: sqlite3.Connection, mend: bool, tables: Sequence[Records]) -> Iterator[Fault]:
    """Rows whose record cannot be read."""
    for of in tables:
        rows = db.execute(f"SELECT {of.name}, rowid, {of.agent}, schema, record FROM {of.table}").fetchall()
        for (about, row, agent, *_), why in broken(rows, of.read):
            if mend:
                for reference in (*of.references, f"{of.table}.rowid"):
                    table, column = reference.split(".")
                    set_aside(db, table, f"{column} = ?", (row,), about=str(about), agent=agent)
            yield Fault(f"{why} With --mend, {of.remedy}.", mend)


def _fault(error: Unreadable, mend: bool, remedy: str) -> Fault:
    return Fault(f"{str(error).partition(' See:')[0]} With --mend, {remedy}.", mend)


class Damaged(Exception):
    """SQLite cannot read its own file. Nothing is changed then: the transaction could not commit."""

    def __init__(self, findings: Sequence[Fault]) -> None:
        super().__init__("the file is damaged")
        self.findings = findings


def verify(db: sqlite3.Connection, mend: bool) -> Sequence[Fault]:
    """All faults of the file; repairs them if `mend`. Raises `Damaged`.

    A repair starts a new generation, so that other processes read the lessons again.
    """
    faults = list(_file(db, mend))
    if any(not fault.mended for fault in faults):
        raise Damaged([replace(fault, mended=False) for fault in faults])
    if newer := _newer_records(db):
        wrote = f"A newer version of Mulligan wrote {count(newer, 'record')}."
        faults.append(Fault(f"{wrote} Upgrade to check and repair them."))
        mend = False
    faults += _schema(db, mend)
    bad_lines: set[int] = set()
    faults += _history(db, mend, bad_lines)  # fills bad_lines, which the next checks need
    faults += _agents(db, mend, bad_lines)
    faults += _types(db, mend)
    faults += _lost_rows(db, mend, bad_lines)
    faults += _rows(db, mend, bad_lines)
    for check in (_vectors, _successors):
        faults += check(db, mend)
    faults += _records(db, mend, BANK_RECORDS)
    for check in (_accounts, _work, _episodes, _orphans):
        faults += check(db, mend)
    if any(fault.mended for fault in faults):
        db.execute("UPDATE bank SET generation = generation + 1")
        db.execute("UPDATE agents SET generation = (SELECT generation FROM bank)")
    return faults


def _file(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """SQLite's own check. Indexes can be built again, pages cannot."""
    problems = _integrity_problems(db)
    if problems and mend:
        try:
            db.execute("REINDEX")
        except sqlite3.DatabaseError as error:
            problems.append(str(error))
    remaining = _integrity_problems(db) if problems and mend else problems
    for problem in problems:
        advice = "" if problem not in remaining else " Restore it from a copy."
        yield Fault(f"The file is damaged: {problem}.{advice}", mended=mend and problem not in remaining)


def _integrity_problems(db: sqlite3.Connection) -> list[str]:
    try:
        messages = [message for (message,) in db.execute("PRAGMA integrity_check(20)") if message != "ok"]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [message for message in messages if not _WRONG_TYPE.match(message)]


_WRONG_TYPE = re.compile(r"(NUMERIC|TEXT|NULL) value in \w+\.\w+$")
"""How newer versions of SQLite report a value of a wrong type. The file is not damaged then: see `_types`."""


def _newer_records(db: sqlite3.Connection) -> int:
    """How many records a newer Mulligan has written."""
    tables = ("log", "receipts", "accounts", "found_kinds", "worth", "episodes", "events", "bench_runs", "bench_cases")
    absent = {part.name for part in missing(db)}
    query = "SELECT count(*) FROM {} WHERE typeof(schema) = 'integer' AND schema > ?"
    return sum(db.execute(query.format(table), (SCHEMA,)).fetchone()[0] for table in tables if table not in absent)


def _schema(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Tables, indexes and columns that are missing."""
    for part in missing(db):
        failure = ""
        if mend:
            try:
                recreate(db, part)
            except sqlite3.Error as error:
                failure = f" It cannot be created again: {error}."
        loss = " Its rows are lost, except those that other tables can restore." if part.kind == "table" else ""
        yield Fault(f"The {part.kind} {part.name} is missing.{loss}{failure}", mend and not failure)
    for table, column in missing_columns(db):
        yield Fault(f"The table {table} has no column {column}. Restore the file from a copy.")
    rows = db.execute("SELECT typeof(generation) FROM bank").fetchall()
    if rows != [("integer",)]:
        if mend:
            db.execute("DELETE FROM bank")
            db.execute("INSERT INTO bank SELECT coalesce(max(generation), 0) + 1 FROM agents")
        yield Fault("The table bank does not hold one number.", mend)


def _history(db: sqlite3.Connection, mend: bool, bad_lines: set[int]) -> Iterator[Fault]:
    """Lines of the log that cannot be read; adds their numbers to `bad_lines`."""
    found: list[tuple[int, Any, str, str]] = []
    lines = "SELECT c.*, l.id FROM log c LEFT JOIN lessons l ON l.n = c.lesson ORDER BY c.seq"
    for seq, agent, lesson, at, change, schema, detail, record, id in db.execute(lines):
        name = id or f"number {lesson}"
        try:
            for value, kind in ((agent, int), (lesson, int), (at, int | float), (change, str)):
                if not isinstance(value, kind):
                    raise unreadable(f"A line in the history of lesson {name}", f"it holds {value!r:.40}")
            if record is not None:
                decode_lesson(name, schema, record)
            if detail is not None:
                object_of(f"What is said with a line of the history of lesson {name}", detail)
        except Unreadable as error:
            found.append((seq, agent, id or "", str(error).partition(" See:")[0]))
    for seq, agent, id, why in found:
        bad_lines.add(seq)
        if mend:
            set_aside(db, "log", "seq = ?", (seq,), about=id, agent=agent)
        yield Fault(f"Line {seq} of the log: {why} With --mend, it is set aside.", mend, id)


def _agents(db: sqlite3.Connection, mend: bool, bad_lines: set[int]) -> Iterator[Fault]:
    """Agents whose id is missing or cannot be read. It is restored from their lessons."""
    rows = db.execute(
        "SELECT x.agent, a.id FROM (SELECT agent FROM lessons UNION SELECT agent FROM log WHERE record IS NOT NULL) x"
        " LEFT JOIN agents a ON a.n = x.agent"
    ).fetchall()
    for n, id in rows:
        if not isinstance(n, int) or (isinstance(id, str) and NO_CHARACTER not in id):
            continue
        lines = db.execute("SELECT seq FROM log WHERE agent = ? AND record IS NOT NULL ORDER BY seq DESC", (n,))
        newest = next((seq for (seq,) in lines if seq not in bad_lines), None)
        owner = None if newest is None else _lesson_at(db, newest).agent_id
        other = db.execute("SELECT n FROM agents WHERE id = ? AND n <> ?", (owner, n)).fetchone()
        mended = mend and owner is not None
        if mended and other:
            for table in ("lessons", "log", "receipts", "accounts", "found_kinds", "worth", "work"):
                db.execute(f"UPDATE OR IGNORE {table} SET agent = ? WHERE agent = ?", (*other, n))
            set_aside(db, "agents", "n = ?", (n,))
        elif mended:
            db.execute(
                "INSERT OR REPLACE INTO agents (n, id, generation) SELECT ?, ?, coalesce(max(generation), 0) FROM bank",
                (n, owner),
            )
        yield Fault(f"Agent number {n} has lost its id. With --mend, it is {owner!r} again.", mended)


# fmt: off
_TYPED_TABLES = (
    "uses", "keys", "vectors", "query_vectors", "embedders", "links",
    "receipts", "outcomes", "accounts", "found_kinds", "payloads", "worth",
)
# fmt: on
_JSON_COLUMNS = ("record", "payload")
"""Columns that other checks read as JSON."""


def _types(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Rows with a value of a wrong type. (Lessons and the log have checks of their own.)"""
    for table in _TYPED_TABLES:
        columns = expected()[table].columns
        conditions = [f"typeof({column.name}) NOT IN ({', '.join(map(repr, column.kinds))})" for column in columns]
        rows = [row for (row,) in db.execute(f"SELECT rowid FROM {table} WHERE {' OR '.join(conditions)}")]
        names = [column.name for column in columns if column.kinds[0] == "text" and column.name not in _JSON_COLUMNS]
        for row, *texts in db.execute(f"SELECT {', '.join(['rowid', *names])} FROM {table}").fetchall():
            if row not in rows and any(isinstance(text, str) and NO_CHARACTER in text for text in texts):
                rows.append(row)
        for row in rows:
            if mend:
                set_aside(db, table, "rowid = ?", (row,))
            yield Fault(f"Row {row} of {table} holds a value of the wrong kind. With --mend, it is set aside.", mend)


def _lost_rows(db: sqlite3.Connection, mend: bool, bad_lines: set[int]) -> Iterator[Fault]:
    """Lessons in the log that have no row, although nobody purged them."""
    lost = db.execute(
        "SELECT seq, agent, lesson FROM log c WHERE record IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM lessons WHERE n = c.lesson) ORDER BY seq"
    ).fetchall()
    newest = {n: (seq, agent) for seq, agent, n in lost if seq not in bad_lines}
    for n, (seq, agent) in newest.items():
        lesson = _lesson_at(db, seq)
        taken = db.execute("SELECT 1 FROM lessons WHERE id = ? AND agent = ?", (lesson.id, agent)).fetchone()
        if mend and not taken:
            add_row(db, lesson, agent, seq, n=n, fingerprint="", terms=b"")
            if lesson.uses or lesson.last_used is not None:
                db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?, ?)", (n, lesson.uses, lesson.last_used))
        yield Fault(
            f"Lesson {lesson.id} has only its history left. With --mend, its words find it again after its next edit.",
            mend and not taken,
            lesson.id,
        )


def _rows(db: sqlite3.Connection, mend: bool, bad_lines: set[int]) -> Iterator[Fault]:
    """Rows that differ from their newest readable record in the log."""
    names = tuple(columns(Lesson("", "", "", "success")))
    query = f"SELECT n, agent, version, typeof(fingerprint), typeof(terms), {', '.join(names)} FROM lessons"
    for n, agent, version, fingerprint, terms, *row in db.execute(query).fetchall():
        lines = db.execute("SELECT seq, agent FROM log WHERE lesson = ? AND record IS NOT NULL ORDER BY seq DESC", (n,))
        readable_lines = (line for line in lines.fetchall() if line[0] not in bad_lines)
        newest, owner = next(readable_lines, (None, agent))
        if newest is None:
            if mend:
                _move_lesson_aside(db, n, agent, str(row[0]))
            what = f"Lesson {row[0]} cannot be read, because no line of its history can."
            yield Fault(f"{what} With --mend, its rows are set aside.", mend, str(row[0]))
            continue
        lesson = _lesson_at(db, newest)
        expected_row = columns(lesson)
        can_be_found = (fingerprint, terms) == ("text", "blob")
        if can_be_found and (version, agent) == (newest, owner) and row == [expected_row[name] for name in names]:
            continue
        if mend:
            set_row(db, n, version=newest, agent=owner, **expected_row)
            if not can_be_found:
                set_row(db, n, fingerprint="", terms=b"")
        yield Fault(f"Lesson {lesson.id}: its row differs from its history.", mend, lesson.id)


def _move_lesson_aside(db: sqlite3.Connection, n: int, agent: int, id: str) -> None:
    set_aside(db, "links", "a = ? OR b = ?", (n, n), about=id, agent=agent)
    set_aside(db, "keys", "lesson = ?", (n,), about=id, agent=agent)
    set_aside(db, "worth", "lesson = ? AND agent = ?", (n, agent), about=id, agent=agent)
    for table in ("uses", *VECTOR_TABLES.values(), "lessons"):
        set_aside(db, table, "n = ?", (n,), about=id, agent=agent)
    set_aside(db, "log", "lesson = ?", (n,), about=id, agent=agent)


def _lesson_at(db: sqlite3.Connection, seq: int) -> Lesson:
    """The lesson in this line of the log, which must be readable."""
    schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (seq,)).fetchone()
    return decode_lesson(str(seq), schema, record)


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


def _vectors(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    joined = (
        "SELECT l.n, l.id FROM lessons l LEFT JOIN embedders e ON e.n = l.embedder"
        " LEFT JOIN vectors v ON v.n = l.n LEFT JOIN query_vectors q ON q.n = l.n WHERE "
    )
    for what, condition in _VECTORS:
        for n, id in db.execute(joined + condition).fetchall():
            if mend:
                drop_vectors(db, n)
            yield Fault(f"Lesson {id} has {what}. They are computed again when the bank next embeds lessons.", mend, id)


def _successors(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    rows = db.execute(
        "SELECT l.agent, l.id, l.superseded_by FROM lessons l WHERE l.state = 'superseded' AND NOT EXISTS"
        " (SELECT 1 FROM lessons s WHERE s.id = l.superseded_by AND s.agent = l.agent)"
    ).fetchall()
    for agent, successor in dict.fromkeys((agent, successor) for agent, _, successor in rows):
        if mend and successor is not None:
            retire_orphans(db, agent, successor, f"{successor}, which it was merged into, is missing")
    quarantined = (
        "SELECT DISTINCT s.agent, s.id FROM lessons s JOIN lessons l ON l.agent = s.agent AND l.superseded_by = s.id"
        " WHERE s.state = 'quarantined'"
    )
    for agent, id in db.execute(quarantined).fetchall():
        if mend:
            reactivate_parents(db, agent, id, {})
        what = f"Lesson {id} is quarantined, and those that it was merged from are not recalled either."
        yield Fault(f"{what} With --mend, they are active again.", mend, id)
    for _, id, successor in rows:
        mended = mend and successor is not None
        yield Fault(
            f"Lesson {id} was merged into {successor}, which is missing. With --mend, it is retired.", mended, id
        )


def _orphans(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Rows that refer to a missing row. Repeats the check, because setting rows aside may orphan others."""
    seen: set[tuple[str, int]] = set()
    while found := {(table, row) for table, row, _, _ in db.execute("PRAGMA foreign_key_check").fetchall()} - seen:
        for table, row in sorted(found):
            if mend:
                set_aside(db, table, "rowid = ?", (row,))
            yield Fault(f"Row {row} of {table} refers to a row that is missing. With --mend, it is set aside.", mend)
        seen |= found


def _accounts(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Accounts whose row differs from their record."""
    for n, id, project, *record in db.execute("SELECT n, id, project, schema, record FROM accounts").fetchall():
        try:
            account = account_of(id, *record)
        except Unreadable:
            continue
        if (id, project) == (account.id, account.project):
            continue
        if mend:
            values = (account.id, account.project, n)
            written = db.execute("UPDATE OR IGNORE accounts SET id = ?, project = ? WHERE n = ?", values)
            if not written.rowcount:  # there is another account of this episode
                set_aside(db, "accounts", "n = ?", (n,), about=str(id))
        yield Fault(f"The account of {account.id}: its row differs from its record.", mend)


def _work(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Work that cannot be read, has lost its payload, or was left behind by a process that ended."""
    joined = "FROM work w LEFT JOIN payloads p ON p.n = w.n"
    for column, empty in (("payload", None), ("result", "null"), ("error", '""')):
        texts = db.execute(f"SELECT w.n, w.agent, w.id, {column} {joined} WHERE {column} IS NOT NULL").fetchall()
        for (n, agent, id, _), why in broken(texts, json_in(f"The {column} of work {{2}}")):
            if mend and empty is None:
                set_aside(db, "payloads", "n = ?", (n,), about=id, agent=agent)
            elif mend:
                copy_aside(db, "work", "n = ?", (n,), about=id, agent=agent)
                db.execute(f"UPDATE work SET {column} = ? WHERE n = ?", (empty, n))
            yield Fault(f"{why} With --mend, it is set aside.", mend, id)
    rows = db.execute(
        f"SELECT w.n, w.id, w.status, w.owner, p.n IS NOT NULL {joined}"
        " WHERE w.status <> 'done' AND w.status <> 'failed'"
    ).fetchall()
    for n, id, status, owner, has_payload in rows:
        if not has_payload:
            if mend:
                why = json.dumps("its payload was lost")
                db.execute("UPDATE work SET status = 'failed', owner = '', error = ? WHERE n = ?", (why, n))
            yield Fault(f"Work {id} has lost its payload, so it cannot run. Learn from the episode again.", mend, id)
        elif status not in ("queued", "running", "waiting") or (status == "running" and died(owner)):
            if mend:
                release(db, n, None, "the process that ran it has ended")
            yield Fault(f"Work {id} is {status}, but no process does it. With --mend, it can be done again.", mend, id)
