"""The rows that a search index of lessons is built from, and their changes."""

from __future__ import annotations

import logging
from dataclasses import fields, replace
from typing import Any

from mulligan.core.lesson_history import Delta, Row
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.lessons.rows import owned
from mulligan.store.sqlite.rows import unreadable

log = logging.getLogger("mulligan")

_NUMBERS = " AND ".join(
    f"typeof({column}) IN ('integer', 'real')"
    for column in ("l.success", "l.confidence", "l.created", "l.fact", "l.pair")
)
_JOIN_QUERIES = "LEFT JOIN query_vectors q ON q.n = l.n AND l.embedder = :embedder"
_OTHER_COLUMNS = {
    "agent_id": "a.id",
    "uses": "coalesce(u.uses, 0)",
    "last_used": "u.last_used",
    "vector": "v.vector",
    "query_vector": "{query}",
    "worth": "h.positive",
}
"""Where to find the fields of a `Row` that are not columns of the table `lessons`."""
_ROW = (
    f"SELECT {{indexable}}, {', '.join(_OTHER_COLUMNS.get(one.name, f'l.{one.name}') for one in fields(Row))}"
    " FROM {source} JOIN agents a ON a.n = l.agent"
    " LEFT JOIN uses u ON u.n = l.n LEFT JOIN vectors v ON v.n = l.n AND l.embedder = :embedder"
    " LEFT JOIN worth h ON h.lesson = l.n AND h.agent = l.agent {join}"
)
_INDEXABLE = (
    f"{_NUMBERS} AND typeof(l.terms) = 'blob' AND typeof(l.project) = 'text' AND typeof(h.positive) IN ('real', 'null')"
    " AND typeof(l.layer) = 'text' AND typeof(l.kind) = 'text'"
    " AND typeof(l.expires) IN ('real', 'integer', 'null')"
    " AND typeof(coalesce(u.uses, 0)) = 'integer'"
    " AND typeof(v.vector) IN ('blob', 'null') AND {query}"
)
"""Whether all values of a row have types that an index accepts."""


def delta(db: Connection, agent: int | None, embedder: str | None, since: int, queries: bool) -> Delta:
    """The rows that have changed after line `since` of the log, and the numbers of lessons that are gone.

    Lessons whose row cannot be indexed count as gone, with a warning.
    """
    embedder_row = db.execute("SELECT n FROM embedders WHERE id = ?", (embedder,)).fetchone()
    values = {"agent": agent, "since": since, "embedder": embedder_row[0] if embedder_row else None}
    source, purged = "lessons l", []
    if since:
        changed = f"SELECT DISTINCT lesson FROM log c WHERE {owned(agent, 'c.agent')} AND seq > :since"
        gone = f"SELECT lesson FROM ({changed}) g WHERE NOT EXISTS (SELECT 1 FROM lessons WHERE n = g.lesson)"
        purged = [n for (n,) in db.execute(gone, values)]
        source = f"({changed}) c JOIN lessons l ON l.n = c.lesson"
    vector, blob = ("q.vector", "typeof(q.vector) IN ('blob', 'null')") if queries else ("NULL", "TRUE")
    query = _ROW.format(
        source=source, query=vector, join=_JOIN_QUERIES if queries else "", indexable=_INDEXABLE.format(query=blob)
    )
    rows: list[Row] = []
    for indexable, *row in db.execute(f"{query} WHERE {owned(agent)}", values):
        if indexable:
            rows.append(_row(*row))
        else:
            purged.append(row[0])
            log.warning(
                "left out: %s", unreadable(f"The search data of lesson {row[1]}", "a value is of the wrong kind")
            )
    rows.sort(key=lambda row: row.n)  # not in SQL: a database may write a large bank's vectors to disk to sort them
    newest = f"SELECT coalesce(max(seq), 0) FROM log c WHERE {owned(agent, 'c.agent')}"
    return Delta(db.execute(newest, {"agent": agent}).fetchone()[0], _generation(db, agent), rows, purged)


def _row(n: int, id: str, agent_id: str, experience: str, state: Any, success: int, *rest: Any) -> Row:
    row = Row(n, id, agent_id, experience, state, bool(success), *rest)
    return replace(row, fact=bool(row.fact), pair=bool(row.pair))


def _generation(db: Connection, agent: int | None) -> int:
    """The agent's generation; for an agent without lessons, the one that it would start with."""
    row = db.execute("SELECT generation FROM agents WHERE n = ?", (agent,)).fetchone()
    return (row or db.execute("SELECT coalesce(max(generation), 0) FROM bank").fetchone())[0]
