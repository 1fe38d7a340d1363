"""The place in a query of what an error names, where the database does not say it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mulligan.core.errors import QueryError
from mulligan.graphs._guard import place
from mulligan.graphs._tokens import Token, Unreadable, tokens

_PROPERTY = re.compile(r"Cannot find property (\S+) for ([^\s.]+)")
_OTHERS = (
    ("label", re.compile(r"Table (\S+) does not exist")),
    ("function", re.compile(r"[Ff]unction:? '?([A-Za-z_][\w.]*)'? does not exist")),
    ("function", re.compile(r"Unknown function '([^']+)'")),
    ("variable", re.compile(r"Variable '?([^\s']+)'? (?:is )?not (?:in scope|defined)")),
)


def spotted(error: QueryError, query: str) -> QueryError:
    """The error with line and column, where one of its words can be found in the query; else as it is."""
    if error.line is not None or error.kind in ("slow", "large"):
        return error
    try:
        at = _at(str(error), tokens(query))
    except Unreadable:
        return error
    if at is None:
        return error
    line, column = place(query, at)
    return QueryError(f"{error} (line {line}, column {column})", error.kind, line, column)


def _at(message: str, found: Sequence[Token]) -> int | None:
    if named := _PROPERTY.search(message):
        name, owner = named[1].lower(), named[2].lower()
        for n, token in enumerate(found[2:], 2):
            if token.text.lower() == name and found[n - 1].text == "." and found[n - 2].text.lower() == owner:
                return token.at
        return _first(found, name, before=(".", "{", ","))
    for kind, pattern in _OTHERS:
        if named := pattern.search(message):
            name = named[1].lower()
            if kind == "label":
                return _first(found, name, before=(":", "|", "&", "!"))
            if kind == "function":
                return _first(found, name.rsplit(".")[-1], after="(")
            return _first(found, name, no_before=(".", ":"))
    return None


def _first(
    found: Sequence[Token], name: str, *, before: Sequence[str] = (), no_before: Sequence[str] = (), after: str = ""
) -> int | None:
    for n, token in enumerate(found):
        left = found[n - 1].text if n else ""
        right = found[n + 1].text if n + 1 < len(found) else ""
        if token.kind not in ("word", "quoted") or token.text.lower() != name:
            continue
        if (not before or left in before) and left not in no_before and (not after or right == after):
            return token.at
    return None
