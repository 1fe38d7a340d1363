"""Decodes rows to records and encodes them. Lists leave out unreadable rows, with a warning; others are set aside."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from mulligan.core.codec import from_json, record_text
from mulligan.core.episode import Event
from mulligan.core.errors import InvalidInput, StoreError, Unreadable
from mulligan.store.sqlite.engine import Connection

R = TypeVar("R")
T = TypeVar("T")

log = logging.getLogger("mulligan")

LAST = chr(0x10FFFF)
"""The last character, for ranges by a prefix: `id >= prefix AND id < prefix + LAST`."""

NO_CHARACTER = "\ufffd"
"""Stands for bytes that are not UTF-8. Records are stored as ASCII, so an intact one never contains it."""

TABLE = "set_aside"


def unreadable(what: str, why: object) -> Unreadable:
    """The error for something that cannot be read."""
    return Unreadable(f"{what} cannot be read: {str(why).rstrip('.')}. See: mulligan memory verify")


def json_of(what: str, text: Any) -> Any:
    """Decodes the JSON in a column. what: names it in the message of `Unreadable`."""
    if not isinstance(text, str):
        raise unreadable(what, f"its row contains a {type(text).__name__}, not text")
    if NO_CHARACTER in text:
        raise unreadable(what, f"it is not UTF-8 (character {text.index(NO_CHARACTER)})")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise unreadable(what, error) from error


def object_of(what: str, text: Any) -> dict[str, Any]:
    """Decodes the JSON object in a column, like `json_of`."""
    value = json_of(what, text)
    if not isinstance(value, dict):
        raise unreadable(what, f"it is a {type(value).__name__}, not an object")
    return cast(dict[str, Any], value)


def record_of(cls: type[T], what: str, schema: Any, text: Any) -> T:
    """Decodes the record of this class in a row. what: names it in the message of `Unreadable`."""
    if not isinstance(schema, int):
        raise unreadable(what, f"its row has the unknown version {schema!r:.40}")
    try:
        return from_json(cls, json_of(what, text), schema)
    except (InvalidInput, TypeError, RecursionError) as error:
        raise unreadable(what, error) from error


def event_of(what: str, schema: Any, text: Any) -> Event:
    """Decodes the event in a row, like `record_of`."""
    return record_of(cast(Any, Event), what, schema, text)


def encoded(record: object, what: str) -> str:
    """Encodes a record to be stored. what: names it in the message of `StoreError`."""
    try:
        return record_text(record)
    except InvalidInput as error:
        raise StoreError(f"{what} cannot be stored: {error}") from error


def broken(rows: Iterable[R], read: Callable[[R], object]) -> Iterator[tuple[R, str]]:
    """The rows for which `read` raises `Unreadable`, each with the reason as a sentence."""
    for row in rows:
        try:
            read(row)
        except Unreadable as error:
            yield row, str(error).partition(" See:")[0]


def json_in(what: str) -> Callable[[tuple[Any, ...]], object]:
    """A function that decodes the JSON in the last column of a row. `what` is formatted with the row."""
    return lambda row: json_of(what.format(*row), row[-1])


def readable(rows: Iterable[R], read: Callable[[R], T]) -> Iterator[T]:
    """The results of `read`. Rows for which it raises `Unreadable` are left out, with a warning."""
    for row in rows:
        try:
            yield read(row)
        except Unreadable as error:
            log.warning("left out: %s", error)


_CREATE = f"""CREATE TABLE IF NOT EXISTS {TABLE} (
    n INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    agent INTEGER,
    about TEXT NOT NULL,
    source TEXT NOT NULL,
    statement TEXT NOT NULL
)"""


def set_aside(
    db: Connection, table: str, condition: str, values: tuple[Any, ...], *, about: str = "", agent: Any = None
) -> int:
    """Moves the rows of `table` that meet the condition to the table of rows set aside, and returns their number.

    Args:
        about: the id of the record that they belong to.
        agent: the agent that they belong to; a purge of that agent removes them as well.
    """
    number = copy_aside(db, table, condition, values, about=about, agent=agent)
    db.execute(f"DELETE FROM {table} WHERE {condition}", values)
    return number


def copy_aside(
    db: Connection, table: str, condition: str, values: tuple[Any, ...], *, about: str = "", agent: Any = None
) -> int:
    """Like `set_aside`, but leaves the rows in their table, where the caller changes them."""
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


def purge_aside(db: Connection, agent: int, about: str | None) -> None:
    """Removes for good what was set aside of this agent, or of one of its lessons. (PostgreSQL sets nothing aside.)"""
    if (
        isinstance(db, sqlite3.Connection)
        and db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (TABLE,)).fetchone()
    ):
        db.execute(f"DELETE FROM {TABLE} WHERE agent = ? AND about = coalesce(?, about)", (agent, about))


def _literal(kind: str, value: Any) -> str:
    """A value as SQL. kind: its type in SQLite; a value of type text comes as bytes, which may not be UTF-8."""
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
