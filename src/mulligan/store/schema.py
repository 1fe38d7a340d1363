"""The tables, as numbered migrations. It knows nothing of what is written into them.

`user_version` of the file is the number of migrations that it has seen. A migration is never changed once released:
the next change is the next migration.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TypeAlias

from mulligan.core.errors import StoreError

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

MIGRATIONS: tuple[Migration, ...] = (_CREATE,)


def migrate(db: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    """Bring the file up to date. Raises `StoreError` for a newer file and for one that is not ours."""
    if _version(db, path, migrations) == len(migrations):
        return
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
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
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
    if not ours and (version or db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()):
        raise StoreError(f"{path} is the database of another program. Name another file for Mulligan's store.")
    if version > len(migrations):
        raise StoreError(
            f"{path} was written by a newer Mulligan (version {version} of the store; this one reads up to "
            f"{len(migrations)}). Upgrade Mulligan, or name another file."
        )
    return version
