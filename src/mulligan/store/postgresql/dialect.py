"""A connection of psycopg that takes the SQL of the code of rows: see `store.sqlite.engine`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import psycopg

from mulligan.store.sqlite.engine import Cursor

_TOKENS = re.compile(r"GLOB '(?P<glob>[^']*)'|(?P<text>'[^']*')|(?P<mark>/\*!|\*/)|(?P<place>\?)|:(?P<name>\w+)|%")
"""What differs between the two. Texts in quotes are passed over."""


@cache
def translated(sql: str) -> str:
    """The statement with the placeholders of psycopg, and with what stands in `/*! … */`."""

    def other(found: re.Match[str]) -> str:
        if (glob := found["glob"]) is not None:
            return "LIKE '" + glob.replace("*", "%%") + "'"
        if found["text"]:
            return found["text"].replace("%", "%%")
        if found["mark"]:
            return ""
        if found["place"]:
            return "%s"
        return f"%({found['name']})s" if found["name"] else "%%"

    return _TOKENS.sub(other, sql)


class PostgresConnection:
    """The `Connection` of the code of rows over one of psycopg, within a transaction that somebody else ends."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, sql: str, values: Mapping[str, Any] | tuple[Any, ...] = (), /) -> Cursor:
        return self._db.execute(translated(sql).encode(), values, binary=True)

    def executemany(self, sql: str, values: Iterable[Any], /) -> Cursor:
        cursor = self._db.cursor()
        cursor.executemany(translated(sql).encode(), values)
        return cursor
