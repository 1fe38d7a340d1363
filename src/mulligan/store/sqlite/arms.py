"""Counts how the arms of learning strategies did. Each function works within the caller's transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from mulligan.core.arms import ArmRow, counted, model_of, outcomes
from mulligan.core.errors import StoreError
from mulligan.core.records import folded_kind
from mulligan.store.sqlite import episodes
from mulligan.store.sqlite.engine import Connection

MAX_KINDS = 500
"""How many kinds of task are kept for each model: those that changed last."""

log = logging.getLogger("mulligan")

_COLUMNS = "model, kind, arm, tried, passed, won, lost"
_PUT = (
    f"INSERT INTO arms ({_COLUMNS}, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (model, kind, arm) DO UPDATE SET"
    " tried = excluded.tried, passed = excluded.passed, won = excluded.won, lost = excluded.lost, at = excluded.at"
)
_HAS_CHOICE = "SELECT 1 FROM events WHERE episode = (SELECT n FROM episodes WHERE id = ?) AND event LIKE ? LIMIT 1"
"""Whether an episode may have a choice, found without decoding its record."""
_DELETE_OLD = (
    "DELETE FROM arms WHERE model = :model AND kind <> '' AND kind NOT IN (SELECT kind FROM arms"
    " WHERE model = :model AND kind <> '' GROUP BY kind ORDER BY max(at) DESC, kind LIMIT :most)"
)


def listed(db: Connection, model: str | None, kind: str | None) -> Sequence[ArmRow]:
    condition, values = _condition(model, kind, also="OR kind = ''")
    rows = db.execute(f"SELECT {_COLUMNS} FROM arms WHERE {condition} ORDER BY model, kind, arm", values)
    return tuple(ArmRow(*row) for row in rows)


def forget(db: Connection, model: str | None, kind: str | None) -> int:
    """Deletes the counts of this model and kind; None: of all. Returns the number of rows."""
    condition, values = _condition(model, kind)
    return db.execute(f"DELETE FROM arms WHERE {condition}", values).rowcount


def _condition(model: str | None, kind: str | None, also: str = "") -> tuple[str, dict[str, str | None]]:
    values = {"model": model, "kind": None if kind is None else folded_kind(kind)}
    of_model = "CAST(:model AS TEXT) IS NULL OR model = :model"
    of_kind = "CAST(:kind AS TEXT) IS NULL OR kind = :kind"
    return f"({of_model}) AND ({of_kind} {also})", values


def count(db: Connection, id: str) -> None:
    """Counts the choices of an episode that is over. An unreadable record is left out, with a warning."""
    if db.execute(_HAS_CHOICE, (id, '%"choice":{%')).fetchone() is None:
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
        values = [(row.model, row.kind, row.arm, row.tried, row.passed, row.won, row.lost, now) for row in rows]
        db.executemany(_PUT, values)
        db.execute(_DELETE_OLD, {"model": model, "most": MAX_KINDS})
