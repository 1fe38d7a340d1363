"""Checks the whole file and mends what it can. Each function works within the caller's transaction.

The log of lessons is taken as true: a lesson's row is made again from it. Rows that cannot be read, or that belong to
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
from mulligan.core.lessons import Account, Fault, Receipt
from mulligan.core.records import Episode, Lesson
from mulligan.core.worth import Tally
from mulligan.recording.holders import died
from mulligan.store.sqlite.episodes import agent_column
from mulligan.store.sqlite.images import unpacked
from mulligan.store.sqlite.lessons.archive import retire_orphans
from mulligan.store.sqlite.lessons.rows import (
    TABLES,
    account_of,
    add_row,
    columns,
    drop_vectors,
    lesson_of,
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

_OF_EPISODE = ("events", "steps", "files", "leases", "shown")


def check_episodes(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    for n, id in db.execute("SELECT n, id FROM episodes ORDER BY n").fetchall():
        yield from _episode(db, n, id, mend)
    yield from _steps(db, mend)
    yield from _hashed(db, mend, "texts", "files", "text", "a prompt")
    yield from _hashed(db, mend, "images", "shown", "image", "an episode")
    yield from _records(db, mend, OF_BENCHES)


def _episode(db: sqlite3.Connection, n: int, id: str, mend: bool) -> Iterator[Fault]:
    id_, run, agent, schema, record = db.execute(
        "SELECT id, run, agent, schema, record FROM episodes WHERE n = ?", (n,)
    ).fetchone()
    try:
        episode = record_of(Episode, f"Episode {id}", schema, unpacked(db, f"Episode {id}", record))
    except Unreadable as error:
        if mend:
            steps = "step IN (SELECT n FROM steps WHERE episode = ?)"
            set_aside(db, "results", steps, (n,), about=str(id))
            for table in _OF_EPISODE:
                set_aside(db, table, "episode = ?", (n,), about=str(id))
            set_aside(db, "episodes", "n = ?", (n,), about=str(id))
        yield _found(error, mend, "it is set aside with all that is recorded of it")
        return
    recorded = (episode.id, episode.run, agent_column(episode))
    if (id_, run, agent) != recorded:
        if mend:
            db.execute("UPDATE OR IGNORE episodes SET id = ?, run = ?, agent = ? WHERE n = ?", (*recorded, n))
        yield Fault(f"Episode {episode.id}: its row differs from its record.", mend)
    events = db.execute("SELECT seq, schema, event FROM events WHERE episode = ? ORDER BY seq", (n,))
    for due, (seq, written, text) in enumerate(events):
        what = f"Event {seq} of episode {id}"
        try:
            if seq != due:
                raise unreadable(what, f"event {due} is missing")
            try:
                episode = advance(episode, event_of(what, written, unpacked(db, what, text)))
            except OutOfOrder as error:
                raise unreadable(what, error) from error
        except Unreadable as error:
            if mend:
                set_aside(db, "events", "episode = ? AND seq >= ?", (n, seq), about=str(id))
            yield _found(error, mend, "it is set aside with those after it, and the episode can be resumed from there")
            return


def _steps(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Requests and results of the journal. A query finds those that may be damaged; only they are read."""
    odd = "typeof({0}) <> 'text' OR NOT json_valid({0}) OR length({0}) <> length(CAST({0} AS BLOB))"
    odd += " OR instr({0}, '\"media_type\":')"  # its images may be gone
    for table, column, number in (("steps", "request", "n"), ("results", "result", "step")):
        rows = db.execute(
            f"SELECT s.n, s.key, e.id, x.{column} FROM {table} x JOIN steps s ON s.n = x.{number}"
            f" JOIN episodes e ON e.n = s.episode WHERE {odd.format(f'x.{column}')}"
        ).fetchall()
        what = f"The {column} of the step {{1}} of episode {{2}}"
        for (n, _, episode, _), why in broken(rows, partial(_whole_step, db, what)):
            if mend:
                set_aside(db, "results", "step = ?", (n,), about=episode)
            if mend and table == "steps":
                set_aside(db, "steps", "n = ?", (n,), about=episode)
            yield Fault(f"{why} With --mend, it is set aside, and a resume takes the step again.", mend)


def _whole_step(db: sqlite3.Connection, what: str, row: tuple[Any, ...]) -> object:
    return json_in(what)((*row[:-1], unpacked(db, what.format(*row), row[-1])))


def _hashed(db: sqlite3.Connection, mend: bool, table: str, users: str, one: str, whose: str) -> Iterator[Fault]:
    """Contents that do not match the hash that `users` refer to them by."""
    rows = db.execute(f"SELECT rowid, sha256, content FROM {table}")
    wrong = [
        (row, sha256)
        for row, sha256, content in rows
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != sha256
    ]
    for row, sha256 in wrong:
        if mend:
            set_aside(db, users, "sha256 = ?", (sha256,))
            set_aside(db, table, "rowid = ?", (row,))
        yield Fault(
            f"The {one} {str(sha256)[:12]} of {whose} does not match its hash. With --mend, it is set aside.", mend
        )


@dataclass(frozen=True)
class Records:
    """A table whose rows have a record each.

    Attributes:
        cls: The class of the records.
        what: Names a record in a message; `{}` is the value of the column `name`.
        agent: The column of the agent that a row belongs to.
        rest: Columns of other tables (`table.column`) that refer to the row; their rows are set aside with it.
        remedy: What mending does.
    """

    cls: type[Any]
    table: str
    what: str
    name: str = "id"
    agent: str = "NULL"
    rest: Sequence[str] = ()
    remedy: str = "it is set aside"

    def read(self, row: Sequence[Any]) -> object:
        """The record of a row that begins with its name and ends with its version and text. Raises `Unreadable`."""
        return record_of(self.cls, self.what.format(row[0]), *row[-2:])


OF_BANK = (
    Records(Receipt, "receipts", "The receipt {}", agent="agent", rest=("outcomes.receipt",)),
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
_OF_RUN = ("bench_cases.run", "bench_leases.run")
OF_BENCHES = (
    Records(
        BenchRun,
        "bench_runs",
        "Benchmark run {}",
        rest=_OF_RUN,
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


def _records(db: sqlite3.Connection, mend: bool, several: Sequence[Records]) -> Iterator[Fault]:
    """Rows whose record cannot be read."""
    for one in several:
        found = db.execute(f"SELECT {one.name}, rowid, {one.agent}, schema, record FROM {one.table}").fetchall()
        for (about, row, whose, *_), why in broken(found, one.read):
            if mend:
                for other, column in (*(each.split(".") for each in one.rest), (one.table, "rowid")):
                    set_aside(db, other, f"{column} = ?", (row,), about=str(about), agent=whose)
            yield Fault(f"{why} With --mend, {one.remedy}.", mend)


def _found(error: Unreadable, mend: bool, then: str) -> Fault:
    return Fault(f"{str(error).partition(' See:')[0]} With --mend, {then}.", mend)


class Damaged(Exception):
    """SQLite cannot read its own file. Nothing in it is changed: its transaction would not even commit."""

    def __init__(self, findings: Sequence[Fault]) -> None:
        super().__init__("the file is damaged")
        self.findings = findings


def verify(db: sqlite3.Connection, mend: bool) -> Sequence[Fault]:
    """What is wrong; empty when all is well. Raises `Damaged`.

    When anything is mended, a new generation begins, so that other processes read the lessons anew.
    """
    found = list(_file(db, mend))
    if any(not finding.mended for finding in found):
        raise Damaged([replace(finding, mended=False) for finding in found])
    if newer := _newer(db):
        found.append(Fault(f"{newer} records were written by a newer Mulligan. Upgrade it to check and repair them."))
        mend = False
    found += _schema(db, mend)
    bad: set[int] = set()
    lessons = [*_history(db, mend, bad), *_agents(db, mend, bad), *_kinds(db, mend)]
    lessons += [*_lost_rows(db, mend, bad), *_rows(db, mend, bad), *_vectors(db, mend), *_successors(db, mend)]
    found += [*lessons, *_records(db, mend, OF_BANK), *_accounts(db, mend), *_work(db, mend)]
    found += [*check_episodes(db, mend), *_orphans(db, mend)]
    if any(finding.mended for finding in found):
        db.execute("UPDATE bank SET generation = generation + 1")
        db.execute("UPDATE agents SET generation = (SELECT generation FROM bank)")
    return found


def _file(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
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
        yield Fault(f"The file is damaged: {what}.{advice}", mended=mend and what not in left)


def _checked(db: sqlite3.Connection) -> list[str]:
    try:
        found = [what for (what,) in db.execute("PRAGMA integrity_check(20)") if what != "ok"]
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [what for what in found if not _OF_A_KIND.match(what)]


_OF_A_KIND = re.compile(r"(NUMERIC|TEXT|NULL) value in \w+\.\w+$")
"""How newer versions of SQLite report a value of a wrong type: the file is not damaged, see `_kinds`."""


def _newer(db: sqlite3.Connection) -> int:
    tables = ("log", "receipts", "accounts", "found_kinds", "worth", "episodes", "events", "bench_runs", "bench_cases")
    gone = {one.name for one in missing(db)}
    query = "SELECT count(*) FROM {} WHERE typeof(schema) = 'integer' AND schema > ?"
    return sum(db.execute(query.format(table), (SCHEMA,)).fetchone()[0] for table in tables if table not in gone)


def _schema(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    for one in missing(db):
        why = ""
        if mend:
            try:
                recreate(db, one)
            except sqlite3.Error as error:
                why = f" It cannot be created again: {error}."
        empty = " Its rows are lost, except those that other tables can restore." if one.kind == "table" else ""
        yield Fault(f"The {one.kind} {one.name} is missing.{empty}{why}", mend and not why)
    for table, column in missing_columns(db):
        yield Fault(f"The table {table} has no column {column}. Restore the file from a copy.")
    rows = db.execute("SELECT typeof(generation) FROM bank").fetchall()
    if rows != [("integer",)]:
        if mend:
            db.execute("DELETE FROM bank")
            db.execute("INSERT INTO bank SELECT coalesce(max(generation), 0) + 1 FROM agents")
        yield Fault("The table bank does not hold one number.", mend)


def _history(db: sqlite3.Connection, mend: bool, bad: set[int]) -> Iterator[Fault]:
    """Lines of the log that cannot be read; their numbers go into `bad`."""
    wrong: list[tuple[int, Any, str, str]] = []
    lines = "SELECT c.*, l.id FROM log c LEFT JOIN lessons l ON l.n = c.lesson ORDER BY c.seq"
    for seq, agent, lesson, at, change, schema, detail, record, id in db.execute(lines):
        name = id or f"number {lesson}"
        try:
            for value, kind in ((agent, int), (lesson, int), (at, int | float), (change, str)):
                if not isinstance(value, kind):
                    raise unreadable(f"A line of the history of lesson {name}", f"it holds {value!r:.40}")
            if record is not None:
                lesson_of(name, schema, record)
            if detail is not None:
                object_of(f"What is said with a line of the history of lesson {name}", detail)
        except Unreadable as error:
            wrong.append((seq, agent, id or "", str(error).partition(" See:")[0]))
    for seq, agent, id, why in wrong:
        bad.add(seq)
        if mend:
            set_aside(db, "log", "seq = ?", (seq,), about=id, agent=agent)
        yield Fault(f"Line {seq} of the log: {why} With --mend, it is set aside.", mend, id)


def _agents(db: sqlite3.Connection, mend: bool, bad: set[int]) -> Iterator[Fault]:
    """Agents with lessons whose id is missing or cannot be read: their lessons have it."""
    rows = db.execute(
        "SELECT x.agent, a.id FROM (SELECT agent FROM lessons UNION SELECT agent FROM log WHERE record IS NOT NULL) x"
        " LEFT JOIN agents a ON a.n = x.agent"
    ).fetchall()
    for n, id in rows:
        if not isinstance(n, int) or (isinstance(id, str) and NO_CHARACTER not in id):
            continue
        lines = db.execute("SELECT seq FROM log WHERE agent = ? AND record IS NOT NULL ORDER BY seq DESC", (n,))
        newest = next((seq for (seq,) in lines if seq not in bad), None)
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


_MOVED = (
    *("uses", "keys", "vectors", "query_vectors", "embedders", "links"),
    *("receipts", "outcomes", "accounts", "found_kinds", "payloads", "worth"),
)
_LOOKED_AT = ("record", "payload")
"""Columns that are read as JSON elsewhere."""


def _kinds(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
    """Rows with a value of a wrong type, except those of lessons and of the log, which are checked elsewhere."""
    for table in _MOVED:
        columns = expected()[table].columns
        conditions = [f"typeof({column.name}) NOT IN ({', '.join(map(repr, column.kinds))})" for column in columns]
        rows = [row for (row,) in db.execute(f"SELECT rowid FROM {table} WHERE {' OR '.join(conditions)}")]
        names = [column.name for column in columns if column.kinds[0] == "text" and column.name not in _LOOKED_AT]
        for row, *texts in db.execute(f"SELECT {', '.join(['rowid', *names])} FROM {table}").fetchall():
            if row not in rows and any(isinstance(text, str) and NO_CHARACTER in text for text in texts):
                rows.append(row)
        for row in rows:
            if mend:
                set_aside(db, table, "rowid = ?", (row,))
            yield Fault(f"Row {row} of {table} holds a value of the wrong kind. With --mend, it is set aside.", mend)


def _lost_rows(db: sqlite3.Connection, mend: bool, bad: set[int]) -> Iterator[Fault]:
    """Lessons that the log knows and that have no row, though nobody purged them."""
    lost = db.execute(
        "SELECT seq, agent, lesson FROM log c WHERE record IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM lessons WHERE n = c.lesson) ORDER BY seq"
    ).fetchall()
    newest = {n: (seq, agent) for seq, agent, n in lost if seq not in bad}
    for n, (seq, agent) in newest.items():
        lesson = _lesson_at(db, seq)
        taken = db.execute("SELECT 1 FROM lessons WHERE id = ? AND agent = ?", (lesson.id, agent)).fetchone()
        if mend and not taken:
            add_row(db, lesson, agent, seq, n=n, fingerprint="", terms=b"")
            if lesson.uses or lesson.last_used is not None:
                db.execute("INSERT OR IGNORE INTO uses VALUES (?, ?, ?)", (n, lesson.uses, lesson.last_used))
        yield Fault(
            f"Lesson {lesson.id} is gone but for its history. With --mend, its words find it again once it is edited.",
            mend and not taken,
            lesson.id,
        )


def _rows(db: sqlite3.Connection, mend: bool, bad: set[int]) -> Iterator[Fault]:
    """Rows that differ from their newest readable record in the log."""
    names = tuple(columns(Lesson("", "", "", "success")))
    found = f"SELECT n, agent, version, typeof(fingerprint), typeof(terms), {', '.join(names)} FROM lessons"
    for n, agent, version, fingerprint, terms, *row in db.execute(found).fetchall():
        lines = db.execute("SELECT seq, agent FROM log WHERE lesson = ? AND record IS NOT NULL ORDER BY seq DESC", (n,))
        newest, whose = next(((seq, whose) for seq, whose in lines.fetchall() if seq not in bad), (None, agent))
        if newest is None:
            if mend:
                _move_lesson_aside(db, n, agent, str(row[0]))
            what = f"Lesson {row[0]} cannot be read, because no line of its history can."
            yield Fault(f"{what} With --mend, its rows are set aside.", mend, str(row[0]))
            continue
        lesson = _lesson_at(db, newest)
        expected_row = columns(lesson)
        intact = (fingerprint, terms) == ("text", "blob")
        if intact and (version, agent) == (newest, whose) and row == [expected_row[name] for name in names]:
            continue
        if mend:
            set_row(db, n, version=newest, agent=whose, **expected_row)
            if not intact:
                set_row(db, n, fingerprint="", terms=b"")
        yield Fault(f"Lesson {lesson.id}: its row differs from its history.", mend, lesson.id)


def _move_lesson_aside(db: sqlite3.Connection, n: int, agent: int, id: str) -> None:
    set_aside(db, "links", "a = ? OR b = ?", (n, n), about=id, agent=agent)
    set_aside(db, "keys", "lesson = ?", (n,), about=id, agent=agent)
    set_aside(db, "worth", "lesson = ? AND agent = ?", (n, agent), about=id, agent=agent)
    for table in ("uses", *TABLES.values(), "lessons"):
        set_aside(db, table, "n = ?", (n,), about=id, agent=agent)
    set_aside(db, "log", "lesson = ?", (n,), about=id, agent=agent)


def _lesson_at(db: sqlite3.Connection, seq: int) -> Lesson:
    """The lesson in this line of the log, which can be read."""
    schema, record = db.execute("SELECT schema, record FROM log WHERE seq = ?", (seq,)).fetchone()
    return lesson_of(str(seq), schema, record)


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
    held = (
        "SELECT DISTINCT s.agent, s.id FROM lessons s JOIN lessons l ON l.agent = s.agent AND l.superseded_by = s.id"
        " WHERE s.state = 'quarantined'"
    )
    for agent, id in db.execute(held).fetchall():
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
    """Rows that refer to a row that is missing; repeated while setting them aside leaves others without theirs."""
    seen: set[tuple[str, int]] = set()
    while found := {(table, row) for table, row, _, _ in db.execute("PRAGMA foreign_key_check").fetchall()} - seen:
        for table, row in sorted(found):
            if mend:
                set_aside(db, table, "rowid = ?", (row,))
            yield Fault(f"Row {row} of {table} refers to a row that is missing. With --mend, it is set aside.", mend)
        seen |= found


def _accounts(db: sqlite3.Connection, mend: bool) -> Iterator[Fault]:
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
    """Work that cannot be read, has lost its payload, or is left behind by a process that ended."""
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
    for n, id, status, owner, whole in rows:
        if not whole:
            if mend:
                why = json.dumps("its payload was lost")
                db.execute("UPDATE work SET status = 'failed', owner = '', error = ? WHERE n = ?", (why, n))
            yield Fault(f"Work {id} has lost its payload, so it cannot run. Learn from the episode again.", mend, id)
        elif status not in ("queued", "running", "waiting") or (status == "running" and died(owner)):
            if mend:
                release(db, n, None, "the process that ran it has ended")
            yield Fault(f"Work {id} is {status}, but no process does it. With --mend, it can be done again.", mend, id)
