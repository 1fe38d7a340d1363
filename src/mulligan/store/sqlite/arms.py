"""What is counted of the arms of strategies that learn. Each function works within the caller's transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from mulligan.core.arms import ArmRow, counted, model_of, outcomes
from mulligan.core.errors import StoreError
from mulligan.core.records import folded_kind
from mulligan.store.sqlite import episodes
from mulligan.store.sqlite.engine import Connection

MOST_KINDS = 500
"""Kinds of task that are kept of each model: those that changed last."""

log = logging.getLogger("mulligan")

_COLUMNS = "model, kind, arm, tried, passed, won, lost"
_PUT = (
    f"INSERT INTO arms ({_COLUMNS}, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (model, kind, arm) DO UPDATE SET"
    " tried = excluded.tried, passed = excluded.passed, won = excluded.won, lost = excluded.lost, at = excluded.at"
)
_CHOSE = "SELECT 1 FROM events WHERE episode = (SELECT n FROM episodes WHERE id = ?) AND event LIKE ? LIMIT 1"
"""Whether an episode may have a choice, without reading its record."""
_OLD = (
    "DELETE FROM arms WHERE model = :model AND kind <> '' AND kind NOT IN (SELECT kind FROM arms"
    " WHERE model = :model AND kind <> '' GROUP BY kind ORDER BY max(at) DESC, kind LIMIT :most)"
)


def listed(db: Connection, model: str | None, kind: str | None) -> Sequence[ArmRow]:
    which, values = _which(model, kind, also="OR kind = ''")
    rows = db.execute(f"SELECT {_COLUMNS} FROM arms WHERE {which} ORDER BY model, kind, arm", values)
    return tuple(ArmRow(*row) for row in rows)


def forget(db: Connection, model: str | None, kind: str | None) -> int:
    which, values = _which(model, kind)
    return db.execute(f"DELETE FROM arms WHERE {which}", values).rowcount


def _which(model: str | None, kind: str | None, also: str = "") -> tuple[str, dict[str, str | None]]:
    values = {"model": model, "kind": None if kind is None else folded_kind(kind)}
    one, other = "CAST(:model AS TEXT) IS NULL OR model = :model", "CAST(:kind AS TEXT) IS NULL OR kind = :kind"
    return f"({one}) AND ({other} {also})", values


def count(db: Connection, id: str) -> None:
    """Counts the choices of an episode that is over. A record that cannot be read counts for nothing."""
    if db.execute(_CHOSE, (id, '%"choice":{%')).fetchone() is None:
        return
    try:
        episode = episodes.load(db, id, None)
        tried = outcomes(episode, episodes.events(db, id))
    except StoreError as error:
        log.warning("the choices of episode %s are not counted: %s", id, error)
        return
    model, now = model_of(episode.head), round(time.time(), 3)
    for kind in dict.fromkeys(("", folded_kind(episode.task.kind))) if tried else ():
        rows: Sequence[ArmRow] = [row for row in listed(db, model, kind) if row.kind == kind]
        for arm, passed in tried:
            rows = counted(rows, ArmRow(model, kind, arm), passed)
        parts = [(one.model, one.kind, one.arm, one.tried, one.passed, one.won, one.lost, now) for one in rows]
        db.executemany(_PUT, parts)
        db.execute(_OLD, {"model": model, "most": MOST_KINDS})
