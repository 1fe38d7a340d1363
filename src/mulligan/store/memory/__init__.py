"""Everything in memory, for tests: `memory:`, or `memory:NAME` for a store that several parts of a process share.

Tables and rules are those of the SQLite store, without its file (design/047).
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from mulligan.store.sqlite.database import LENIENT, Database
from mulligan.store.sqlite.lanes import Lane
from mulligan.store.sqlite.lock_wait import LockWait
from mulligan.store.sqlite.schema import migrate
from mulligan.store.sqlite.store import SqliteStore


def open_address(name: str) -> SqliteStore:
    """A new store; with a name, another handle on the store of that name."""
    return SqliteStore(MemoryDatabase(name))


@dataclass
class _NamedLane:
    lane: Lane
    handles: int = 0


_named: dict[str, _NamedLane] = {}


class MemoryDatabase(Database):
    """One connection that readers and writers use in turn. Its data is gone when the last handle is closed."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        super().__init__(Path(f"memory:{name}"))

    def connect(self, lock_wait: LockWait) -> sqlite3.Connection:
        db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        db.text_factory = LENIENT
        migrate(db, self.path)
        return db

    async def close(self) -> None:
        shared, self._shared = self._shared, None
        if shared is None:
            return
        self._open_lanes()
        await super().close()  # closes new, unused lanes of this handle, which then refuse further work
        shared.handles -= 1
        if not shared.handles:
            _named.pop(self._name, None)
            await shared.lane.close()

    def _open(self) -> None:
        self._open_lanes()
        own = _NamedLane(self._writer)
        self._shared: _NamedLane | None = _named.setdefault(self._name, own) if self._name else own
        self._shared.handles += 1
        self._writer = self._readers = self._shared.lane
