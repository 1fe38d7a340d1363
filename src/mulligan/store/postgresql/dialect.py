"""Runs the SQL of the store's functions on a connection of psycopg (see `store.sqlite.engine`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import psycopg

from mulligan.store.sqlite.engine import Cursor

_TOKENS = re.compile(r"GLOB '(?P<glob>[^']*)'|(?P<text>'[^']*')|(?P<mark>/\*!|\*/)|(?P<place>\?)|:(?P<name>\w+)|%")
"""The parts of a statement that differ between SQLite and psycopg, and texts in quotes, which stay as they are."""


@cache
def translated(sql: str) -> str:
    """The statement with psycopg's placeholders, and without the marks around the parts in `/*! … */`."""

    def translate(token: re.Match[str]) -> str:
        if (glob := token["glob"]) is not None:
            return "LIKE '" + glob.replace("*", "%%") + "'"
        if token["text"]:
            return token["text"].replace("%", "%%")
        if token["mark"]:
            return ""
        if token["place"]:
            return "%s"
        return f"%({token['name']})s" if token["name"] else "%%"

    return _TOKENS.sub(translate, sql)


class PostgresConnection:
    """The `Connection` of the store's functions, within a transaction that the caller ends."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, sql: str, values: Mapping[str, Any] | tuple[Any, ...] = (), /) -> Cursor:
        return self._db.execute(translated(sql).encode(), values, binary=True)

    def executemany(self, sql: str, values: Iterable[Any], /) -> Cursor:
        cursor = self._db.cursor()
        cursor.executemany(translated(sql).encode(), values)
        return cursor
