"""Lessons and queued work in one SQLite file, the one that the episodes are in."""

from __future__ import annotations

from pathlib import Path

from mulligan.store.database import Database, Synchronous
from mulligan.store.lessons import SqliteLessons
from mulligan.store.queue import MOST, SqliteQueue


class SqliteMemory:
    """Opens nothing until it is used; `close` it in the end. Given a `Database`, it goes on in that one.

    busy_seconds: how long a write waits for writers in other processes. most: pieces of one agent's work that may be
    pending.
    """

    def __init__(
        self,
        file: str | Path | Database,
        *,
        busy_seconds: float = 30.0,
        synchronous: Synchronous = "normal",
        most: int = MOST,
    ) -> None:
        shared = isinstance(file, Database)
        self._db = file if shared else Database(Path(file), busy_seconds=busy_seconds, synchronous=synchronous)
        self.lessons = SqliteLessons(self._db)
        self.queue = SqliteQueue(self._db, most=most)

    async def close(self) -> None:
        await self._db.close()
