"""Brings a file's tables up to date by the numbered scripts of `migrations/`, and says which tables are missing.

`user_version` of the file is the number of migrations that it has seen. A migration is never changed once released:
the next change is the next migration. One that only adds begins with the line `-- expands`: older programs do not
know it, and can still use the store after it (design/112).
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
"""`application_id` of our files ("MULL"), so that somebody else's database is not taken for one of ours."""


def statements(script: Path) -> Migration:
    """The statements of an SQL script, without the comments before them."""
    found, statement = list[str](), ""
    for line in script.read_text(encoding="utf-8").splitlines():
        if not line.startswith("--"):
            statement += f"{line}\n"
            if sqlite3.complete_statement(statement):
                found.append(statement.strip().removesuffix(";"))
                statement = ""
    return tuple(found)


_FILES = sorted((Path(__file__).parent / "migrations").glob("*.sql"), key=lambda file: int(file.name.partition("_")[0]))

MIGRATIONS: tuple[Migration, ...] = tuple(statements(file) for file in _FILES)

_ADDS = re.compile(
    r"CREATE (TABLE|INDEX) |CREATE POLICY |ALTER TABLE \S+ ENABLE ROW LEVEL SECURITY|"
    r"ALTER TABLE \S+ ADD COLUMN (?!.*(,|\b(NOT NULL|UNIQUE|PRIMARY|REFERENCES|CHECK)\b))",
    re.DOTALL,
)
"""What older programs do not notice: they name the columns that they write, and leave new ones empty."""


def expands(script: Path) -> bool:
    """Whether programs that do not know this migration go on with the store after it.

    Raises `ValueError` for a script that says so and does more than add tables, indexes and columns that may be empty.
    """
    if not script.read_text(encoding="utf-8").startswith("-- expands"):
        return False
    for statement in statements(script):
        if not _ADDS.match(statement):
            raise ValueError(f"{script.name} claims to only expand, but does more: {statement}")
    return True


EXPANDING = frozenset(number for number, file in enumerate(_FILES, 1) if expands(file))
"""The numbers of the migrations that only add."""


def readable_from(migrations: int, expanding: Collection[int]) -> int:
    """The least number of migrations that a program has to know to use a store that has seen so many."""
    return max((number for number in range(1, migrations + 1) if number not in expanding), default=0)


def newer(name: object, version: int, readable: int, known: int) -> StoreError:
    """The error for a store that this program must not use. known: migrations that it knows."""
    return StoreError(
        f"{name} was changed by a newer Mulligan: it is of version {described(version, readable)}, and this one knows "
        f"version {known}. Upgrade Mulligan, or name another store."
    )


def described(version: int, readable: int) -> str:
    """The version of a store as messages name it."""
    return f"{version}" if version == readable else f"{version}, for programs that know version {readable}"


def version_of(db: sqlite3.Connection) -> tuple[int, int]:
    """The version of the file, and the least that a program has to know: where they differ, the upper half of
    `user_version`."""
    held = int(db.execute("PRAGMA user_version").fetchone()[0])
    return held & 0xFFFF, held >> 16 or held


def check_readable(db: sqlite3.Connection, path: Path) -> None:
    """Raises `StoreError` if a newer program has changed the file so that this one must not go on with it."""
    version, readable = version_of(db)
    if readable > len(MIGRATIONS):
        raise newer(path, version, readable, len(MIGRATIONS))


def migrate(
    db: sqlite3.Connection,
    path: Path,
    migrations: tuple[Migration, ...] = MIGRATIONS,
    expanding: Collection[int] = EXPANDING,
) -> None:
    """Bring the file up to date. Raises `StoreError` for one that is not ours, or that only newer programs may use."""
    if _version(db, path, migrations) >= len(migrations):
        return
    if keep_log(db) not in ("wal", "memory"):  # in memory, where there is no disk to write to
        raise StoreError(f"{path} is on a file system without shared memory: move the store to a local disk.")
    db.execute("BEGIN IMMEDIATE")
    with db:  # commits, or rolls back
        # read again: another process may have been faster
        version, readable = _version(db, path, migrations), readable_from(len(migrations), expanding)
        if version < len(migrations):
            for migration in migrations[version:]:
                for statement in migration:
                    db.execute(statement)
            held = len(migrations) if readable == len(migrations) else readable << 16 | len(migrations)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {held}")


def _version(db: sqlite3.Connection, path: Path, migrations: tuple[Migration, ...]) -> int:
    version, readable, ours, empty = _file_state(db)
    if not ours and (version or not empty):
        raise StoreError(f"{path} is the database of another program. Name another file for Mulligan's store.")
    if readable > len(migrations):
        raise newer(path, version, readable, len(migrations))
    return version


def _file_state(db: sqlite3.Connection) -> tuple[int, int, bool, bool]:
    """The two numbers of `version_of`, whether the file is ours, and whether it is empty, read at one moment: another
    connection may be making the file just now."""
    within = db.in_transaction
    if not within:
        db.execute("BEGIN")
    try:
        version, readable = version_of(db)
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
        return version, readable, ours, db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    finally:
        if not within and db.in_transaction:
            db.execute("ROLLBACK")


# --- what should be there ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableColumn:
    """kinds: the results of `typeof` that its values may have."""

    name: str
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Expected:
    """A table or an index as the migrations make it. sql: the statement. columns: of a table."""

    name: str
    kind: str
    sql: str
    columns: tuple[TableColumn, ...] = ()


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


def _columns(db: sqlite3.Connection, table: str) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(name, _KINDS[kind] if needed or key else (*_KINDS[kind], "null"))
        for _, name, kind, needed, _, key in db.execute(f"PRAGMA table_info({table})").fetchall()
    )


def missing(db: sqlite3.Connection) -> list[Expected]:
    """The tables and indexes that should be in the file and are not, tables first."""
    there = {name for (name,) in db.execute("SELECT name FROM main.sqlite_master")}
    return [one for one in expected().values() if one.name not in there]


def missing_columns(db: sqlite3.Connection) -> list[tuple[str, str]]:
    """The columns that should be in tables that are there and are not: table and column."""
    found: list[tuple[str, str]] = []
    for table in expected().values():
        has = {name for _, name, *_ in db.execute(f"PRAGMA main.table_info({table.name})").fetchall()}
        found += [(table.name, column.name) for column in table.columns if has and column.name not in has]
    return found


def recreate(db: sqlite3.Connection, one: Expected) -> None:
    """Makes a missing table, empty, or a missing index. Raises `sqlite3.Error`.

    Numbers that other tables still refer to are not reused.
    """
    db.execute(one.sql)
    if one.name == "bank":
        db.execute("INSERT INTO bank VALUES (0)")
        if _exists(db, "agents"):
            db.execute("UPDATE bank SET generation = (SELECT coalesce(max(generation), 0) + 1 FROM agents)")
    if one.name == "keys" and _exists(db, "lessons"):  # facts without terms get both again, as those of a lost row
        db.execute("UPDATE lessons SET terms = x'' WHERE fact")
    if (seen := _COUNTERS.get(one.name)) and not any(f" {lost.name}" in seen for lost in missing(db)):
        (last,) = db.execute(seen).fetchone()
        db.execute("DELETE FROM sqlite_sequence WHERE name = ?", (one.name,))
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (one.name, last or 0))


def _exists(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM main.sqlite_master WHERE name = ?", (name,)).fetchone() is not None


def missing_table(error: BaseException) -> str | None:
    """The table of ours that SQLite could not find."""
    found = re.fullmatch(r"no such table: (?:\w+\.)?(\w+)", str(error)) if isinstance(error, sqlite3.Error) else None
    return found[1] if found and found[1] in expected() else None


_warned: set[tuple[Path, str]] = set()
"""The missing tables that this process has warned of."""

_SEE = "See: mulligan memory verify"


def read_with_missing_tables(db: sqlite3.Connection, path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
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
                log.warning("%s: the table %s is missing, and counts as empty. %s", path, table, _SEE)
            db.execute(expected()[table].sql.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            shadows.append(table)
            if table == "bank":
                db.execute("INSERT INTO temp.bank VALUES (0)")
        else:
            for table in shadows:
                db.execute(f"DROP TABLE temp.{table}")
            return result
