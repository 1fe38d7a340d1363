"""Lists of episodes that read no event: what a client is shown to choose from, however long the episodes are.

Each function is work within one reading transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from mulligan.core.codec import SCHEMA
from mulligan.core.episode import Stopped
from mulligan.core.errors import NotFound
from mulligan.core.records import Brief, Episode
from mulligan.store.reading import event_of, readable, record_of

BEGINNING = 200
"""Characters of a task that a list says."""

_LAST = chr(0x10FFFF)
_KINDS = {"acted": '{"event":"acted",', "stopped": '{"event":"stopped",'}
"""How the text of an event begins."""

_BRIEF = (
    "SELECT p.id, p.schema, p.record,"
    " (SELECT count(*) FROM events v WHERE v.episode = p.n AND substr(v.event, 1, length(:acted)) = :acted),"
    " (SELECT CASE WHEN substr(v.event, 1, length(:stopped)) = :stopped THEN v.event END"
    " FROM events v WHERE v.episode = p.n ORDER BY v.seq DESC LIMIT 1)"
    " FROM episodes p WHERE {where} ORDER BY p.n DESC"
)


def missing(episode: str) -> NotFound:
    return NotFound(f"There is no episode {episode!r} in this store.")


def listed(db: sqlite3.Connection, agent: str | None, before: str | None, limit: int) -> Sequence[Brief]:
    wall = "1" if agent is None else "agent = :agent"
    values: dict[str, Any] = {"agent": agent, "before": before, **_KINDS}
    if before is not None:
        last = db.execute(f"SELECT n FROM episodes WHERE id = :before AND {wall}", values).fetchone()
        if last is None:
            raise missing(before)
        wall, values["before"] = f"{wall} AND p.n < :before", last[0]
    with closing(db.execute(_BRIEF.format(where=wall), values)) as rows:
        return tuple(islice(readable(rows, _brief), limit))


def _brief(row: tuple[str, int, str, int, str | None]) -> Brief:
    id, schema, record, trials, stopped = row
    begun = record_of(Episode, f"Episode {id}", schema, record)
    last = event_of(f"The end of episode {id}", SCHEMA, stopped) if stopped else None
    reason = last.stop.reason if isinstance(last, Stopped) else None
    return Brief(id, begun.run, begun.agent, begun.started, begun.task.prompt[:BEGINNING], trials, reason)


def ids(db: sqlite3.Connection, prefix: str, agent: str | None, limit: int) -> Sequence[str]:
    wall = ["1" if agent is None else "agent = :agent"]
    if prefix:
        wall.append("id >= :first AND id < :last")
    values = {"agent": agent, "first": prefix, "last": prefix + _LAST, "limit": limit}
    rows = db.execute(f"SELECT id FROM episodes WHERE {' AND '.join(wall)} ORDER BY n DESC LIMIT :limit", values)
    return tuple(id for (id,) in rows)


def agents(db: sqlite3.Connection, prefix: str, limit: int) -> Sequence[str]:
    """From one to the next by the index: as many steps as there are agents, not episodes."""
    found: list[str] = []
    after, operator = prefix, ">=" if prefix else ">"
    while len(found) < limit:
        query = f"SELECT min(agent) FROM episodes WHERE agent {operator} ? AND agent < ?"
        (name,) = db.execute(query, (after, prefix + _LAST)).fetchone()
        if name is None:
            break
        found.append(name)
        after, operator = name, ">"
    return tuple(found)
