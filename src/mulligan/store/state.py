"""The state of a store: its version and size, its contents, what waits, and advice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.work_queue import QUOTA
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.store import SqliteStore

_TOTALS = {
    "episodes": "SELECT count(*) FROM episodes",
    "agents": "SELECT count(*) FROM agents",
    "lessons": "SELECT count(*) FROM lessons",
    "active lessons": "SELECT count(*) FROM lessons WHERE state = 'active'",
    "recalls": "SELECT count(*) FROM receipts",
}
_LEASES = "SELECT count(*), sum(CASE WHEN until < ? THEN 1 ELSE 0 END) FROM leases WHERE owner <> ''"
_LONG_WAIT_SECONDS = 3600.0
"""Work that has waited longer leads to advice."""


@dataclass(frozen=True)
class State:
    """The state of a store.

    Attributes:
        engine: facts about the engine by name, such as its version and its size.
        totals: how many episodes, agents, lessons (all, and active ones) and recalls this role sees.
        queue: the number of unfinished jobs by status.
        leases: the number of leases held.
        expired: how many of these leases have expired.
        advice: what to do, in sentences.
    """

    engine: Mapping[str, str]
    totals: Mapping[str, int]
    queue: Mapping[str, int]
    leases: int
    expired: int
    advice: tuple[str, ...]


async def state(store: Store) -> State:
    """The state of a store. Raises `InvalidInput` for a store without tables, and `StoreError`."""
    if not isinstance(store, SqliteStore):
        raise InvalidInput(f"A {type(store).__name__} has no state to show.")
    database, now = store.memory.database, time.time()

    def work(db: Connection) -> tuple[dict[str, int], tuple[Any, ...], float | None]:
        totals = {name: db.execute(query).fetchone()[0] for name, query in _TOTALS.items()}
        oldest = db.execute("SELECT min(created) FROM work WHERE status = 'queued'").fetchone()[0]
        return totals, db.execute(_LEASES, (now,)).fetchone(), oldest

    totals, (leases, expired), oldest = await database.read(work)
    queue = Counter[str]()
    for kind, depth in (await store.memory.queue.depth()).items():
        queue.update(depth if kind != QUOTA else {})
    advice: list[str] = []
    if oldest is not None and now - oldest > _LONG_WAIT_SECONDS:
        hours = (now - oldest) / 3600
        advice.append(
            f"Jobs have been pending for {hours:.0f} h. Start a server with a model, or run: mulligan memory work"
        )
    if queue.get("failed"):
        advice.append("Jobs have failed. To list them with the reasons: mulligan memory pending")
    if expired:
        advice.append(
            "Leases have expired because their processes ended. mulligan runs list shows the runs; resume "
            "continues them."
        )
    return State(await database.about(), totals, queue, leases, expired or 0, tuple(advice))
