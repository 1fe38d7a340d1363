"""Lists of episodes that read no event: what a client is shown to choose from, however long the episodes are.

Each function is work within one reading transaction.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from mulligan.core.codec import from_json
from mulligan.core.errors import InvalidInput, NotFound
from mulligan.core.records import Brief, Episode

BEGINNING = 200
"""Characters of a task that a list says."""

log = logging.getLogger("mulligan")

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
    """What cannot be read is logged and passed over: one broken record must not hide all others."""
    wall = "1" if agent is None else "agent = :agent"
    values: dict[str, Any] = {"agent": agent, "before": before, **_KINDS}
    if before is not None:
        last = db.execute(f"SELECT n FROM episodes WHERE id = :before AND {wall}", values).fetchone()
        if last is None:
            raise missing(before)
        wall, values["before"] = f"{wall} AND p.n < :before", last[0]
    with closing(db.execute(_BRIEF.format(where=wall), values)) as rows:
        found = (_brief(*row) for row in rows)
        return tuple(islice((brief for brief in found if brief is not None), limit))


def _brief(id: str, schema: int, record: str, trials: int, stopped: str | None) -> Brief | None:
    try:
        begun = from_json(Episode, json.loads(record), schema)
        reason: Any = json.loads(stopped)["stop"]["reason"] if stopped else None
    except (InvalidInput, ValueError, LookupError) as error:
        log.warning("episode %s cannot be read, and is not listed: %s", id, error)
        return None
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
