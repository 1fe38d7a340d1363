"""The tables, as numbered migrations.

`user_version` of the file is the number of migrations that it has seen. A migration is never changed once released:
the next change is the next migration.
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias, TypeVar

from mulligan.core.errors import StoreError

T = TypeVar("T")

log = logging.getLogger("mulligan")

Migration: TypeAlias = tuple[str, ...]
"""SQL statements that run in one transaction."""

APPLICATION = 0x4D554C4C
"""`application_id` of our files ("MULL"), so that somebody else's database is not taken for one of ours."""

_CREATE: Migration = (
    # `record` is the episode as created; what became of it is the fold of its events
    """CREATE TABLE episodes (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        run TEXT NOT NULL,
        schema INTEGER NOT NULL,
        record TEXT NOT NULL
    )""",
    "CREATE INDEX episodes_of_run ON episodes (run)",
    """CREATE TABLE events (
        episode INTEGER NOT NULL REFERENCES episodes,
        seq INTEGER NOT NULL,
        schema INTEGER NOT NULL,
        event TEXT NOT NULL,
        PRIMARY KEY (episode, seq)
    )""",
    # a row outlives its lease, so that the fence keeps rising; `owner` is empty when nobody holds it
    """CREATE TABLE leases (
        episode INTEGER PRIMARY KEY REFERENCES episodes,
        owner TEXT NOT NULL,
        fence INTEGER NOT NULL,
        until REAL NOT NULL
    )""",
    # n is never given twice, so that it keeps the order in which the steps were begun
    """CREATE TABLE steps (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        episode INTEGER NOT NULL REFERENCES episodes,
        key TEXT NOT NULL,
        request_hash TEXT NOT NULL,
        request TEXT NOT NULL,
        UNIQUE (episode, key)
    )""",
    # a step is done when its result is here; apart, so that finishing one does not write the request again
    "CREATE TABLE results (step INTEGER PRIMARY KEY REFERENCES steps, result TEXT NOT NULL)",
    "CREATE TABLE texts (sha256 TEXT NOT NULL UNIQUE, content BLOB NOT NULL)",
    """CREATE TABLE files (
        episode INTEGER NOT NULL REFERENCES episodes,
        name TEXT NOT NULL,
        sha256 TEXT NOT NULL REFERENCES texts (sha256),
        PRIMARY KEY (episode, name)
    )""",
)

_BANK: Migration = (
    # the wall between agents is a number in every row. `generation`: when it was made, or emptied, by the counter of
    # the bank; n is never given twice, so that nobody inherits
    """CREATE TABLE agents (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        generation INTEGER NOT NULL
    )""",
    "CREATE TABLE bank (generation INTEGER NOT NULL)",
    "INSERT INTO bank VALUES (0)",
    # all vectors of one embedder have one size, in bytes
    "CREATE TABLE embedders (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, size INTEGER NOT NULL)",
    # what is looked for; the lesson itself is the log's row `version`. `embedder` is that of both its vectors
    """CREATE TABLE lessons (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        agent INTEGER NOT NULL REFERENCES agents,
        version INTEGER NOT NULL,
        id TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        experience TEXT NOT NULL,
        state TEXT NOT NULL,
        success INTEGER NOT NULL,
        confidence REAL NOT NULL,
        created REAL NOT NULL,
        superseded_by TEXT,
        embedder INTEGER,
        terms BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX lessons_by_id ON lessons (id, agent)",
    "CREATE INDEX lessons_by_fingerprint ON lessons (agent, fingerprint)",
    "CREATE INDEX lessons_by_state ON lessons (agent, state)",
    "CREATE INDEX lessons_by_embedder ON lessons (agent, embedder) WHERE state = 'active'",
    "CREATE INDEX lessons_by_successor ON lessons (agent, superseded_by) WHERE superseded_by IS NOT NULL",
    # only ever added to, but for a purge, which leaves its own row with the bare number. `lesson` outlives the lesson
    """CREATE TABLE log (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        agent INTEGER NOT NULL,
        lesson INTEGER NOT NULL,
        at REAL NOT NULL,
        change TEXT NOT NULL,
        schema INTEGER NOT NULL,
        detail TEXT,
        record TEXT
    )""",
    "CREATE INDEX log_of_agent ON log (agent, seq, lesson)",
    "CREATE INDEX log_of_lesson ON log (lesson, seq)",
    # apart, so that a recall writes no lesson anew
    "CREATE TABLE uses (n INTEGER PRIMARY KEY REFERENCES lessons, uses INTEGER NOT NULL, last_used REAL)",
    "CREATE TABLE vectors (n INTEGER PRIMARY KEY REFERENCES lessons, vector BLOB NOT NULL)",
    "CREATE TABLE query_vectors (n INTEGER PRIMARY KEY REFERENCES lessons, vector BLOB NOT NULL)",
    # each pair once, the older lesson as `a`
    """CREATE TABLE links (
        a INTEGER NOT NULL REFERENCES lessons,
        b INTEGER NOT NULL REFERENCES lessons,
        embedder TEXT NOT NULL,
        similarity REAL NOT NULL,
        PRIMARY KEY (a, b, embedder)
    )""",
    "CREATE INDEX links_back ON links (b)",
    # agent 0: a recall over all agents
    """CREATE TABLE receipts (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        agent INTEGER NOT NULL,
        schema INTEGER NOT NULL,
        record TEXT NOT NULL,
        UNIQUE (id, agent)
    )""",
    # borrowed: it waits for somebody's answer. The fence rises with each claim
    """CREATE TABLE work (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        agent INTEGER NOT NULL REFERENCES agents,
        kind TEXT NOT NULL,
        key TEXT,
        status TEXT NOT NULL,
        borrowed INTEGER NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        created REAL NOT NULL,
        due REAL NOT NULL DEFAULT 0,
        finished REAL,
        owner TEXT NOT NULL DEFAULT '',
        fence INTEGER NOT NULL DEFAULT 0,
        until REAL NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT '""',
        result TEXT NOT NULL DEFAULT 'null'
    )""",
    "CREATE UNIQUE INDEX work_once ON work (agent, kind, key) WHERE key IS NOT NULL AND status <> 'failed'",
    "CREATE INDEX work_queued ON work (kind, n, due) WHERE status = 'queued'",
    "CREATE INDEX work_running ON work (kind) WHERE status = 'running'",
    "CREATE INDEX work_open ON work (agent, status) WHERE status <> 'done'",
    # apart, so that a claim does not write it again; gone when the work is done
    "CREATE TABLE payloads (n INTEGER PRIMARY KEY REFERENCES work, payload TEXT NOT NULL)",
)

_OWNERS: Migration = (
    # repeats what the record says, for lists of one agent's episodes
    "ALTER TABLE episodes ADD COLUMN agent TEXT NOT NULL DEFAULT ''",
    "UPDATE episodes SET agent = coalesce(json_extract(record, '$.agent'), '') WHERE json_valid(record)",
    "CREATE INDEX episodes_of_agent ON episodes (agent)",
    "CREATE INDEX episodes_of_agent_by_id ON episodes (agent, id)",
)

_OUTCOMES: Migration = (
    # which work learns from a task that lessons were recalled for; what came of it stands in the work
    """CREATE TABLE outcomes (
        receipt INTEGER NOT NULL REFERENCES receipts,
        work INTEGER NOT NULL REFERENCES work,
        UNIQUE (receipt, work)
    )""",
    "CREATE INDEX outcomes_of_work ON outcomes (work)",
)

_BENCHES: Migration = (
    """CREATE TABLE bench_runs (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        schema INTEGER NOT NULL,
        record TEXT NOT NULL
    )""",
    """CREATE TABLE bench_cases (
        run INTEGER NOT NULL REFERENCES bench_runs,
        position INTEGER NOT NULL,
        schema INTEGER NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (run, position)
    )""",
    """CREATE TABLE bench_leases (
        run INTEGER PRIMARY KEY REFERENCES bench_runs,
        owner TEXT NOT NULL,
        fence INTEGER NOT NULL,
        until REAL NOT NULL
    )""",
    # of what a run may take from the journal of another
    "CREATE INDEX steps_of_models ON steps (request_hash) WHERE key GLOB '*/model.*'",
)

_FACTS: Migration = (
    # what was learned before was a strategy
    "ALTER TABLE lessons ADD COLUMN fact INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE lessons ADD COLUMN project TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE lessons ADD COLUMN subject TEXT NOT NULL DEFAULT ''",
    "CREATE INDEX lessons_by_subject ON lessons (agent, project, subject) WHERE fact",
)

MIGRATIONS: tuple[Migration, ...] = (_CREATE, _BANK, _OWNERS, _OUTCOMES, _BENCHES, _FACTS)


def migrate(db: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Bring the file up to date. Raises `StoreError` for a newer file and for one that is not ours."""
    if _version(db, path, migrations) == len(migrations):
        return
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode not in ("wal", "memory"):  # in memory, where there is no disk to write to
        raise StoreError(f"{path} is on a file system without shared memory: put the store on a local disk.")
    db.execute("BEGIN IMMEDIATE")
    try:
        # read again: another process may have been faster
        for statements in migrations[_version(db, path, migrations) :]:
            for statement in statements:
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {len(migrations)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _version(db: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...]) -> int:
    version, ours, empty = _stamps(db)
    if not ours and (version or not empty):
        raise StoreError(f"{path} is the database of another program. Name another file for Mulligan's store.")
    if version > len(migrations):
        raise StoreError(
            f"{path} was written by a newer Mulligan (version {version} of the store; this one reads up to "
            f"{len(migrations)}). Upgrade Mulligan, or name another file."
        )
    return version


def _stamps(db: sqlite3.Connection) -> tuple[int, bool, bool]:
    """The version, whether the file is ours, and whether it is empty, read at one moment: another connection may be
    making the file just now."""
    within = db.in_transaction
    if not within:
        db.execute("BEGIN")
    try:
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        return version, ours, db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    finally:
        if not within and db.in_transaction:
            db.execute("ROLLBACK")


# --- what should be there ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """kinds: the results of `typeof` that its values may have."""

    name: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """A table or an index as the migrations make it. sql: the statement. columns: of a table."""

    name: str
    kind: str
    sql: str
    columns: tuple[Column, ...] = ()


_KINDS = {"INTEGER": ("integer",), "REAL": ("real", "integer"), "TEXT": ("text",), "BLOB": ("blob",)}

_COUNTERS = {
    "agents": "SELECT max(agent) FROM lessons",
    "lessons": "SELECT max(lesson) FROM log",
    "log": "SELECT max(version) FROM lessons",
    "work": "SELECT max(n) FROM payloads",
    "steps": "SELECT max(step) FROM results",
}
"""Tables whose numbers are never reused, and where the greatest one that was given can still be found."""


@cache
def expected() -> Mapping[str, Expected]:
    """All tables and indexes of a store that is up to date, by name, tables first."""
    with closing(sqlite3.connect(":memory:")) as db:
        for migration in MIGRATIONS:
            for statement in migration:
                db.execute(statement)
        made = db.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index'")
        return {
            name: Expected(name, kind, sql, _columns(db, name) if kind == "table" else ())
            for name, kind, sql in made.fetchall()
            if not name.startswith("sqlite_")
        }


def _columns(db: sqlite3.Connection, table: str) -> tuple[Column, ...]:
    return tuple(
        Column(name, _KINDS[kind] if needed or key else (*_KINDS[kind], "null"))
        for _, name, kind, needed, _, key in db.execute(f"PRAGMA table_info({table})").fetchall()
    )


def missing(db: sqlite3.Connection) -> list[Expected]:
    """The tables and indexes that should be in the file and are not, tables first."""
    there = {name for (name,) in db.execute("SELECT name FROM main.sqlite_master")}
    return [one for one in expected().values() if one.name not in there]


def lacking(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """The columns that should be in tables that are there and are not: table and column."""
    found: list[tuple[str, str]] = []
    for table in expected().values():
        has = {name for _, name, *_ in db.execute(f"PRAGMA main.table_info({table.name})").fetchall()}
        found += [(table.name, column.name) for column in table.columns if has and column.name not in has]
    return found


def make_again(db: sqlite3.Connection, one: Expected) -> None:
    """Makes a missing table, empty, or a missing index. Raises `sqlite3.Error`.

    Numbers that other tables still refer to are not reused.
    """
    db.execute(one.sql)
    if one.name == "bank":
        db.execute("INSERT INTO bank VALUES (0)")
        if "agents" in {name for (name,) in db.execute("SELECT name FROM main.sqlite_master")}:
            db.execute("UPDATE bank SET generation = (SELECT coalesce(max(generation), 0) + 1 FROM agents)")
    if (seen := _COUNTERS.get(one.name)) and not any(f" {lost.name}" in seen for lost in missing(db)):
        (last,) = db.execute(seen).fetchone()
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (one.name,))
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (one.name, last or 0))


def missing_table(error: BaseException) -> str | None:
    """The table of ours that SQLite could not find."""
    found = re.fullmatch(r"no such table: (?:\w+\.)?(\w+)", str(error)) if isinstance(error, sqlite3.Error) else None
    return found[1] if found and found[1] in expected() else None


_warned: set[tuple[Path, str]] = set()
"""The missing tables that this process has warned of."""

_SEE = "See: mulligan memory verify"


def reading_on(db: sqlite3.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """The result of `work`, which only reads. A missing table reads as empty, with a warning."""
    shadows: list[str] = []
    while True:
        try:
            result = work(db)
        except sqlite3.OperationalError as error:
            table = missing_table(error)
            if table is None or table in shadows:
                raise
            if (path, table) not in _warned:
                _warned.add((path, table))
                log.warning("%s: the table %s is gone, and is read as if it was empty. %s", path, table, _SEE)
            db.execute(expected()[table].sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            shadows.append(table)
            if table == "bank":
                db.execute("INSERT INTO temp.bank VALUES (0)")
        else:
            for table in shadows:
                db.execute(f"DROP TABLE temp.{table}")
            return result
