"""Moves rows that cannot be read out of their tables and keeps them whole: nothing that was stored is thrown away.

Each is kept as the SQL statement that puts it back, so that a person can correct it by hand. The table is made when it
is first needed. Each function works within the caller's transaction.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

TABLE = "set_aside"
_CREATE = f"""CREATE TABLE IF NOT EXISTS {TABLE} (
    n INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    agent INTEGER,
    about TEXT NOT NULL,
    source TEXT NOT NULL,
    statement TEXT NOT NULL
)"""


def move(
    db: sqlite3.Connection, table: str, condition: str, values: tuple[Any, ...], *, about: str = "", agent: Any = None
) -> int:
    """Moves the rows of `table` that meet the condition; how many. about: the id of the record that they belong to.

    agent: whose they are; a purge of that agent removes them, too.
    """
    taken = copy(db, table, condition, values, about=about, agent=agent)
    db.execute(f"DELETE FROM {table} WHERE {condition}", values)
    return taken


def copy(
    db: sqlite3.Connection, table: str, condition: str, values: tuple[Any, ...], *, about: str = "", agent: Any = None
) -> int:
    """Keeps such rows as `move` does, and leaves them in their table to be changed."""
    names = [name for _, name, *_ in db.execute(f"PRAGMA table_info({table})").fetchall()]
    parts = ", ".join(
        f"typeof({name}), CASE WHEN typeof({name}) = 'text' THEN CAST({name} AS BLOB) ELSE {name} END" for name in names
    )
    rows = db.execute(f"SELECT {parts} FROM {table} WHERE {condition}", values).fetchall()
    if rows:
        db.execute(_CREATE)
    for row in rows:
        literals = (_literal(kind, value) for kind, value in zip(row[::2], row[1::2], strict=True))
        statement = f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({', '.join(literals)})"
        db.execute(
            f"INSERT INTO {TABLE} (at, agent, about, source, statement) VALUES (?, ?, ?, ?, ?)",
            (time.time(), agent, about, table, statement),
        )
    return len(rows)


def purge(db: sqlite3.Connection, agent: int, about: str | None) -> None:
    """Removes for good what was set aside of this agent, or of one of its lessons."""
    if db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone():
        db.execute(f"DELETE FROM {TABLE} WHERE agent = ? AND about = coalesce(?, about)", (agent, about))


def _literal(kind: str, value: Any) -> str:
    """A value as SQL. A text is given as bytes, and stays bytes if it is not UTF-8."""
    if value is None:
        return "NULL"
    if kind in ("integer", "real"):
        return repr(value).replace("inf", "9e999")
    try:
        text = value.decode() if kind == "text" else None
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text:
        return "'" + text.replace("'", "''") + "'"
    return f"x'{value.hex()}'" if kind == "blob" else f"CAST(x'{value.hex()}' AS TEXT)"
