"""Brings a file's tables up to date by the numbered scripts of `migrations/`, and tells which tables are missing.

`user_version` of the file tells how many migrations it has seen: see `version_of`. A released migration is never
changed: the next change is a new migration. A migration that only adds begins with the line `-- expands`: older
programs do not know it, but can still use the store after it (design/112).
"""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias, TypeVar

from mulligan.core.errors import StoreError
from mulligan.core.write_ahead import keep_log

T = TypeVar("T")

log = logging.getLogger("mulligan")

Migration: TypeAlias = tuple[str, ...]
"""SQL statements that run in one transaction."""

APPLICATION = 0x4D554C4C
"""`application_id` of our files ("MULL"), which tells them from the databases of other programs."""


def statements(script: Path) -> Migration:
    """The statements of an SQL script, without the lines that are comments.

    Raises `ValueError` if the last one does not end with a semicolon.
    """
    found, statement = list[str](), ""
    for line in script.read_text(encoding="utf-8").splitlines():
        if not line.startswith("--"):
            statement += f"{line}\n"
            if sqlite3.complete_statement(statement):
                found.append(statement.strip().removesuffix(";"))
                statement = ""
    if statement.strip():
        raise ValueError(f"{script.name} has an unterminated statement: {statement.strip()}")
    return tuple(found)


def scripts(folder: Path) -> list[Path]:
    """The migrations of a kind of store, in order."""
    return sorted((folder / "migrations").glob("*.sql"), key=lambda file: int(file.name.partition("_")[0]))


_SCRIPTS = scripts(Path(__file__).parent)

MIGRATIONS: tuple[Migration, ...] = tuple(statements(script) for script in _SCRIPTS)

_EXPANDING_STATEMENT = re.compile(
    r"CREATE (TABLE|INDEX) |CREATE POLICY |ALTER TABLE \S+ ENABLE ROW LEVEL SECURITY|"
    r"ALTER TABLE \S+ ADD COLUMN (?!.*(,|\b(NOT NULL|UNIQUE|PRIMARY|REFERENCES|CHECK)\b))",
    re.DOTALL,
)
"""A statement that older programs do not notice: they name the columns that they write, and leave new ones empty."""


def expands(script: Path) -> bool:
    """Whether programs that do not know this migration can use the store after it.

    Raises `ValueError` if the script claims that, but does more than add tables, indexes, nullable columns, and the
    policies and row security of PostgreSQL.
    """
    if not script.read_text(encoding="utf-8").startswith("-- expands"):
        return False
    for statement in statements(script):
        if not _EXPANDING_STATEMENT.match(statement):
            raise ValueError(f"{script.name} is marked as only expanding the schema, but does more: {statement}")
    return True


EXPANDING = frozenset(number for number, script in enumerate(_SCRIPTS, 1) if expands(script))
"""The numbers of the migrations that only add."""


def readable_from(migrations: int, expanding: Collection[int]) -> int:
    """How many migrations a program must know to use a store that has seen `migrations` of them."""
    return max((number for number in range(1, migrations + 1) if number not in expanding), default=0)


def newer(name: object, version: int, readable: int, known: int) -> StoreError:
    """The error for a store that this program must not use. known: the number of migrations that it knows."""
    return StoreError(
        f"{name} was changed by a newer version of Mulligan: it has version {described(version, readable)}, but the "
        f"installed Mulligan supports version {known}. Upgrade Mulligan, or use another store."
    )


def described(version: int, readable: int) -> str:
    """The version of a store as messages name it."""
    return f"{version}" if version == readable else f"{version}, for programs that know version {readable}"


def version_of(db: sqlite3.Connection) -> tuple[int, int]:
    """The version of the file, and the version that a program must know to use it.

    `user_version` has the first in its lower 16 bits, and the second above them if it is another one.
    """
    user_version = int(db.execute("PRAGMA user_version").fetchone()[0])
    version, readable = user_version & 0xFFFF, user_version >> 16
    return version, readable or user_version


def check_readable(db: sqlite3.Connection, path: Path) -> None:
    """Raises `StoreError` if a newer program has changed the file so that this one must not use it."""
    version, readable = version_of(db)
    if readable > len(MIGRATIONS):
        raise newer(path, version, readable, len(MIGRATIONS))


def migrate(
    db: sqlite3.Connection,
    path: Path,
    migrations: tuple[Migration, ...] = MIGRATIONS,
    expanding: Collection[int] = EXPANDING,
) -> None:
    """Brings the file up to date. Raises `StoreError` if it is not ours, or only newer programs may use it."""
    if _checked_version(db, path, migrations) >= len(migrations):
        return
    if keep_log(db) not in ("wal", "memory"):  # "memory" is the mode of a database without a file
        raise StoreError(f"{path} is on a file system without shared memory: move the store to a local disk.")
    db.execute("BEGIN IMMEDIATE")
    with db:  # commits, or rolls back
        version = _checked_version(db, path, migrations)  # again: another process may have migrated it
        if version < len(migrations):
            for migration in migrations[version:]:
                for statement in migration:
                    db.execute(statement)
            newest, readable = len(migrations), readable_from(len(migrations), expanding)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {newest if readable == newest else readable << 16 | newest}")


def _checked_version(db: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...]) -> int:
    """The version of the file. Raises `StoreError` if it is not ours, or only newer programs may use it."""
    own_transaction = not db.in_transaction
    if own_transaction:  # reads all at one moment: another connection may just be creating the file
        db.execute("BEGIN")
    try:
        version, readable = version_of(db)
        is_ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        is_empty = db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    finally:
        if own_transaction and db.in_transaction:
            db.execute("ROLLBACK")
    if not is_ours and (version or not is_empty):
        raise StoreError(f"{path} is another program's database. Use another file for Mulligan's store.")
    if readable > len(migrations):
        raise newer(path, version, readable, len(migrations))
    return version


# --- missing tables ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableColumn:
    """A column of a table. kinds: the results of `typeof` that its values may have."""

    name: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """A table or an index of a store that is up to date. kind: which of them. sql: the statement that creates it."""

    name: str
    kind: str
    sql: str
    columns: tuple[TableColumn, ...] = ()


_KINDS = {"INTEGER": ("integer",), "REAL": ("real", "integer"), "TEXT": ("text",), "BLOB": ("blob",)}

_COUNTERS = {
    "agents": ("lessons", "agent"),
    "lessons": ("log", "lesson"),
    "log": ("lessons", "version"),
    "work": ("payloads", "n"),
    "steps": ("results", "step"),
}
"""Tables whose numbers are never reused, and the other table and its column that tell the greatest number so far."""


@cache
def expected() -> Mapping[str, Expected]:
    """All tables and indexes of a store that is up to date, by name, tables first."""
    with closing(sqlite3.connect(":memory:")) as db:
        for migration in MIGRATIONS:
            for statement in migration:
                db.execute(statement)
        parts = db.execute("SELECT name, type, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index'")
        return {
            name: Expected(name, kind, sql, _columns(db, name) if kind == "table" else ())
            for name, kind, sql in parts.fetchall()
            if not name.startswith("sqlite_")
        }


def _columns(db: sqlite3.Connection, table: str) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(name, _KINDS[kind] if not_null or key else (*_KINDS[kind], "null"))
        for _, name, kind, not_null, _, key in db.execute(f"PRAGMA table_info({table})").fetchall()
    )


def missing(db: sqlite3.Connection) -> list[Expected]:
    """The tables and indexes that the file lacks, tables first."""
    existing = {name for (name,) in db.execute("SELECT name FROM main.sqlite_master")}
    return [part for part in expected().values() if part.name not in existing]


def missing_columns(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """The columns that existing tables lack, as pairs of table and column."""
    lacking: list[tuple[str, str]] = []
    for table in expected().values():
        names = {name for _, name, *_ in db.execute(f"PRAGMA main.table_info({table.name})").fetchall()}
        lacking += [(table.name, column.name) for column in table.columns if names and column.name not in names]
    return lacking


def recreate(db: sqlite3.Connection, part: Expected) -> None:
    """Creates a missing table, empty, or a missing index. Raises `sqlite3.Error`.

    Numbers that other tables still refer to are not reused. The table `bank` gets its one row. For `keys`, facts are
    marked in `lessons` as ones without terms.
    """
    db.execute(part.sql)
    if part.name == "bank":
        db.execute("INSERT INTO bank VALUES (0)")
        if _exists(db, "agents"):
            db.execute("UPDATE bank SET generation = (SELECT coalesce(max(generation), 0) + 1 FROM agents)")
    if part.name == "keys" and _exists(db, "lessons"):  # facts without terms get their terms and keys again
        db.execute("UPDATE lessons SET terms = x'' WHERE fact")
    source, column = _COUNTERS.get(part.name, ("", ""))
    if source and _exists(db, source):
        (last,) = db.execute(f"SELECT max({column}) FROM {source}").fetchone()
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (part.name,))
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (part.name, last or 0))


def _exists(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM main.sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def missing_table(error: BaseException) -> str | None:
    """The table of ours that SQLite could not find; None for another error."""
    found = re.fullmatch(r"no such table: (?:\w+\.)?(\w+)", str(error)) if isinstance(error, sqlite3.Error) else None
    return found[1] if found and found[1] in expected() else None


_warned: set[tuple[Path, str]] = set()
"""The missing tables that this process has warned of."""


def read_with_missing_tables(db: sqlite3.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """The result of `work`, which only reads. A missing table counts as empty, with a warning.

    Call it in a transaction. An error rolls that back, and so removes the tables that stood in for the missing ones.
    """
    stand_ins: list[str] = []
    while True:
        try:
            result = work(db)
        except sqlite3.OperationalError as error:
            table = missing_table(error)
            if table is None or table in stand_ins:
                raise
            if (path, table) not in _warned:
                _warned.add((path, table))
                log.warning(
                    "%s: the table %s is missing, and counts as empty. See: mulligan memory verify", path, table
                )
            db.execute(expected()[table].sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            stand_ins.append(table)
            if table == "bank":
                db.execute("INSERT INTO temp.bank VALUES (0)")
        else:
            for table in stand_ins:
                db.execute(f"DROP TABLE temp.{table}")
            return result
