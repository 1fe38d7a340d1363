"""The file of the record of goals, and its rows."""

from __future__ import annotations

import json
import os
import sqlite3

from mulligan.core.home import home_path

TYPE_CHECKING = False  # importing `typing` takes longer than most of what a hook does

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self, TypeVar

    T = TypeVar("T")

FILE = "goals.db"
_TABLES = """
CREATE TABLE goals (
    id TEXT PRIMARY KEY, folder TEXT NOT NULL, common TEXT NOT NULL, prefix TEXT NOT NULL, label TEXT NOT NULL,
    settings TEXT NOT NULL, spec TEXT NOT NULL, state TEXT NOT NULL, made REAL NOT NULL, seen REAL NOT NULL,
    first TEXT, best TEXT);
CREATE TABLE work (
    goal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open',
    why TEXT NOT NULL DEFAULT '', turn INTEGER NOT NULL DEFAULT 0, began TEXT NOT NULL DEFAULT '',
    commands INTEGER NOT NULL DEFAULT 0, commands_began INTEGER NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0,
    clock REAL, episode TEXT NOT NULL DEFAULT (lower(hex(randomblob(6)))), PRIMARY KEY (goal, agent, session));
CREATE TABLE tries (
    goal TEXT NOT NULL, agent TEXT NOT NULL, session TEXT NOT NULL, n INTEGER NOT NULL, turn INTEGER NOT NULL,
    asker TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL DEFAULT '', commands INTEGER NOT NULL,
    state TEXT NOT NULL, owner TEXT NOT NULL, passed INTEGER, attempt TEXT NOT NULL DEFAULT '', feedback TEXT,
    keys TEXT NOT NULL DEFAULT '[]', unchanged INTEGER NOT NULL DEFAULT 0, at REAL NOT NULL, told REAL,
    PRIMARY KEY (goal, agent, session, n));
CREATE TABLE log (n INTEGER PRIMARY KEY, at REAL NOT NULL, goal TEXT NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL)
"""


class Row:
    """A row of a table, its columns as attributes; JSON is read."""

    def __init__(self, names: Sequence[str], values: Sequence[Any]) -> None:
        self.__dict__.update(zip(names, values, strict=True))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...


class Database:
    """The file, opened. To be closed, or used as a context manager. Raises `sqlite3.Error`.

    Args:
        path: of the file; default: the one in Mulligan's home.
        wait: seconds that a call waits for another process.
    """

    def __init__(self, path: str = "", *, wait: float = 5.0) -> None:
        self.path = path or os.path.join(home_path(), FILE)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        if not os.path.exists(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))  # an environment may hold keys
        self._db = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
        try:
            if not self._db.execute("PRAGMA user_version").fetchone()[0]:
                self._make()
            self._db.execute("PRAGMA secure_delete = ON")
        except BaseException:
            self._db.close()
            raise

    def _make(self) -> None:
        from mulligan.core.write_ahead import keep_log  # once

        keep_log(self._db)

        def make() -> None:
            if not self._db.execute("PRAGMA user_version").fetchone()[0]:  # another process may have been faster
                for statement in _TABLES.split(";\n"):
                    self._db.execute(statement)
                self._db.execute("PRAGMA user_version = 1")

        self._write(make)

    def _write(self, work: Callable[[], T], *, lasting: bool = False) -> T:
        """lasting: wait for the disk, so that not even a loss of power takes it back."""
        self._db.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
        self._db.execute("BEGIN IMMEDIATE")
        try:
            result = work()
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return result

    def _rows(self, statement: str, *given: Any) -> list[Row]:
        found = self._db.execute(statement, given)
        names = [column[0] for column in found.description]
        rows = [Row(names, row) for row in found]
        for row in rows:
            for name in ("settings", "spec", "first", "best", "feedback", "keys"):
                if value := row.__dict__.get(name):
                    row.__dict__[name] = json.loads(value)
        return rows

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
