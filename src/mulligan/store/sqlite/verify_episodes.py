"""Checks episodes, their journal and benchmark runs, and sets aside what cannot be read. Each function works within the
caller's transaction.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.episode import advance
from mulligan.core.errors import OutOfOrder, Unreadable
from mulligan.core.lessons import Finding
from mulligan.core.records import Episode
from mulligan.store.sqlite import set_aside
from mulligan.store.sqlite.episodes import agent_column
from mulligan.store.sqlite.rows import broken, event_of, json_in, record_of, unreadable

_OF_EPISODE = ("events", "steps", "files", "leases")


def verify(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    for n, id in db.execute("SELECT n, id FROM episodes ORDER BY n").fetchall():
        yield from _episode(db, n, id, mend)
    yield from _steps(db, mend)
    yield from _texts(db, mend)
    yield from _benches(db, mend)


def _episode(db: sqlite3.Connection, n: int, id: str, mend: bool) -> Iterator[Finding]:
    id_, run, agent, schema, record = db.execute(
        "SELECT id, run, agent, schema, record FROM episodes WHERE n = ?", (n,)
    ).fetchone()
    try:
        episode = record_of(Episode, f"Episode {id}", schema, record)
    except Unreadable as error:
        if mend:
            steps = "step IN (SELECT n FROM steps WHERE episode = ?)"
            set_aside.move(db, "results", steps, (n,), about=str(id))
            for table in _OF_EPISODE:
                set_aside.move(db, table, "episode = ?", (n,), about=str(id))
            set_aside.move(db, "episodes", "n = ?", (n,), about=str(id))
        yield _found(error, mend, "it is set aside with all that is recorded of it")
        return
    recorded = (episode.id, episode.run, agent_column(episode))
    if (id_, run, agent) != recorded:
        if mend:
            db.execute("UPDATE OR IGNORE episodes SET id = ?, run = ?, agent = ? WHERE n = ?", (*recorded, n))
        yield Finding(f"Episode {episode.id}: its row is not what its record says.", mend)
    events = db.execute("SELECT seq, schema, event FROM events WHERE episode = ? ORDER BY seq", (n,))
    for due, (seq, written, text) in enumerate(events):
        what = f"Event {seq} of episode {id}"
        try:
            if seq != due:
                raise unreadable(what, f"event {due} is gone")
            try:
                episode = advance(episode, event_of(what, written, text))
            except OutOfOrder as error:
                raise unreadable(what, error) from error
        except Unreadable as error:
            if mend:
                set_aside.move(db, "events", "episode = ? AND seq >= ?", (n, seq), about=str(id))
            yield _found(error, mend, "it is set aside with those after it, and the episode can be resumed from there")
            return


def _steps(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    """Requests and results of the journal. A query finds those that may be damaged; only they are read."""
    odd = "typeof({0}) <> 'text' OR NOT json_valid({0}) OR length({0}) <> length(CAST({0} AS BLOB))"
    for table, column, number in (("steps", "request", "n"), ("results", "result", "step")):
        rows = db.execute(
            f"SELECT s.n, s.key, e.id, x.{column} FROM {table} x JOIN steps s ON s.n = x.{number}"
            f" JOIN episodes e ON e.n = s.episode WHERE {odd.format(f'x.{column}')}"
        ).fetchall()
        what = f"The {column} of the step {{1}} of episode {{2}}"
        for (n, _, episode, _), why in broken(rows, json_in(what)):
            if mend:
                set_aside.move(db, "results", "step = ?", (n,), about=episode)
            if mend and table == "steps":
                set_aside.move(db, "steps", "n = ?", (n,), about=episode)
            yield Finding(f"{why} Mended, it is set aside, and a resume takes the step again.", mend)


def _texts(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    rows = db.execute("SELECT rowid, sha256, content FROM texts")
    wrong = [
        (row, sha256)
        for row, sha256, content in rows
        if not isinstance(content, bytes) or hashlib.sha256(content).hexdigest() != sha256
    ]
    for row, sha256 in wrong:
        if mend:
            set_aside.move(db, "files", "sha256 = ?", (sha256,))
            set_aside.move(db, "texts", "rowid = ?", (row,))
        yield Finding(f"The text {str(sha256)[:12]} of a prompt is not what it was. Mended, it is set aside.", mend)


def _benches(db: sqlite3.Connection, mend: bool) -> Iterator[Finding]:
    runs = db.execute("SELECT n, id, schema, record FROM bench_runs").fetchall()
    for (n, id, *_), why in broken(runs, lambda row: record_of(BenchRun, f"Benchmark run {row[1]}", *row[2:])):
        if mend:
            for table in ("bench_cases", "bench_leases"):
                set_aside.move(db, table, "run = ?", (n,), about=str(id))
            set_aside.move(db, "bench_runs", "n = ?", (n,), about=str(id))
        yield Finding(f"{why} Mended, it is set aside with its results; its episodes stay.", mend)
    cases = db.execute("SELECT rowid, position, schema, record FROM bench_cases").fetchall()
    what = "The result of case {} of a benchmark run"
    for (row, *_), why in broken(cases, lambda row: record_of(CaseResult, what.format(row[1]), *row[2:])):
        if mend:
            set_aside.move(db, "bench_cases", "rowid = ?", (row,))
        yield Finding(f"{why} Mended, it is set aside, and a resume settles the case again.", mend)


def _found(error: Unreadable, mend: bool, then: str) -> Finding:
    return Finding(f"{str(error).partition(' See:')[0]} Mended, {then}.", mend)
