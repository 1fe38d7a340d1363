"""Everything in one SQLite file: the `Store` of core.protocols.

What a call has returned from survives the death of the process at once. It survives the death of the machine when the
store has been idle for a fifth of a second since, as it is during any model call; before that the newest writes may be
missing, but never one without those after it. `synchronous="full"` closes this gap for 0.2 ms of CPU and the disk's
own delay per write. Events are only ever added; an episode is its record as created, with its events applied in order.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from mulligan.core.codec import SCHEMA, json_text
from mulligan.core.episode import Event
from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.protocols import Lease, StepRow
from mulligan.core.records import Brief, Episode, Head, Json
from mulligan.store.sqlite import episodes, leases
from mulligan.store.sqlite.benches import SqliteBenches
from mulligan.store.sqlite.database import Database, Synchronous
from mulligan.store.sqlite.lessons.rows import run_removed
from mulligan.store.sqlite.lessons.store import SqliteLessons
from mulligan.store.sqlite.queue import SqliteQueue
from mulligan.store.sqlite.rows import encoded

_NO_FILES: Mapping[str, str] = {}


@dataclass(frozen=True)
class SqliteMemory:
    """The lessons and the queued work of a store; closing it closes the store."""

    lessons: SqliteLessons
    queue: SqliteQueue
    database: Database

    async def close(self) -> None:
        await self.database.close()


class SqliteStore:
    """Opens nothing until it is used; close it in the end. Missing folders are made.

    Args:
        file: The path of the file, or an open database.
        busy_seconds: How long, in all, a write waits for writers in other processes before it raises `StoreError`.
        synchronous: "full" syncs the disk on each write.
        clock: Counts these seconds, and those for which another's heartbeat stands still before its lease is taken.
    """

    def __init__(
        self,
        file: str | Path | Database,
        *,
        busy_seconds: float = 30.0,
        synchronous: Synchronous = "normal",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        given = isinstance(file, Database)
        db = file if given else Database(Path(file), busy_seconds=busy_seconds, synchronous=synchronous, clock=clock)
        self._db = db
        self.memory = SqliteMemory(SqliteLessons(db), SqliteQueue(db), db)
        self.benches = SqliteBenches(db)

    async def close(self) -> None:
        await self._db.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # --- episodes -----------------------------------------------------------------------------------------------

    async def create(self, episode: Episode, files: Mapping[str, str] = _NO_FILES) -> None:
        if episode.trials or episode.recall or episode.stop:
            raise StoreError(f"Episode {episode.id}: it is created as it begins; what happens to it comes as events.")
        record = encoded(episode, f"Episode {episode.id}")
        await self._db.write(lambda db: episodes.insert(db, episode, record, files))

    async def copy(
        self, episode: str, id: str, run: str, head: Head, files: Mapping[str, str], event: Event
    ) -> Episode:
        text = encoded(event, f"The event that episode {id} begins with")

        def work(db: sqlite3.Connection) -> None:
            begun = replace(episodes.begun(db, episode), id=id, run=run, head=head, forked_from=episode)
            new = episodes.insert(db, begun, encoded(begun, f"Episode {id}"), files)
            episodes.copy(db, episodes.row(db, episode), new, text)

        await self._db.write(work)
        return await self.load(id)

    async def append(self, lease: Lease, seq: int, event: Event) -> None:
        text = encoded(event, f"Event {seq} of episode {lease.episode}")

        def work(db: sqlite3.Connection) -> None:
            row = leases.held(db, lease)
            due = db.execute("SELECT coalesce(max(seq) + 1, 0) FROM events WHERE episode = ?", (row,)).fetchone()[0]
            if seq != due:
                wrong = "is taken" if seq < due else "would leave a gap"
                raise StoreError(f"Event {seq} of episode {lease.episode} {wrong}: number {due} is next.")
            db.execute("INSERT INTO events (episode, seq, schema, event) VALUES (?, ?, ?, ?)", (row, seq, SCHEMA, text))

        await self._db.write(work, under_way=True)

    async def load(self, episode: str, *, agent: str | None = None) -> Episode:
        return await self._db.read(lambda db: episodes.load(db, episode, agent))

    async def list(
        self, *, run: str | None = None, agent: str | None = None, limit: int = 50, benches: bool = True
    ) -> Sequence[Episode]:
        return await self._db.read(lambda db: episodes.newest(db, run, agent, limit, benches))

    async def briefs(self, *, agent: str | None = None, before: str | None = None, limit: int = 50) -> Sequence[Brief]:
        return await self._db.read(lambda db: episodes.briefs(db, agent, before, limit))

    async def ids(self, prefix: str, *, agent: str | None = None, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: episodes.ids(db, prefix, agent, limit))

    async def agents(self, prefix: str = "", *, limit: int = 50) -> Sequence[str]:
        return await self._db.read(lambda db: episodes.agents(db, prefix, limit))

    async def events(self, episode: str) -> Sequence[Event]:
        return await self._db.read(lambda db: episodes.events(db, episode))

    async def files(self, episode: str) -> Mapping[str, str]:
        return await self._db.read(lambda db: episodes.files(db, episode))

    async def resolve(self, prefix: str) -> Sequence[str]:
        return await self._db.read(lambda db: episodes.resolve(db, prefix))

    async def remove(self, lease: Lease) -> None:
        def work(db: sqlite3.Connection) -> None:
            episodes.remove(db, leases.held(db, lease))
            run_removed(db, lease.episode)

        await self._db.write(work)

    async def workspaces(self) -> Sequence[Mapping[str, Json]]:
        return await self._db.read(episodes.workspaces)

    # --- leases -------------------------------------------------------------------------------------------------

    async def acquire(self, episode: str, owner: str, seconds: float) -> Lease:
        return await self._db.write(lambda db: leases.acquire(db, self._db.watch, episode, owner, seconds))

    async def holder(self, episode: str) -> str | None:
        return await self._db.read(lambda db: leases.holder(db, episode))

    async def renew(self, lease: Lease, seconds: float) -> None:
        await self._db.write(lambda db: leases.renew(db, lease, seconds), under_way=True)

    async def release(self, lease: Lease) -> None:
        await self._db.write(lambda db: leases.release(db, lease))

    # --- the journal --------------------------------------------------------------------------------------------

    async def steps(self, episode: str) -> Sequence[StepRow]:
        return await self._db.read(lambda db: episodes.steps(db, episode))

    async def begin_step(self, lease: Lease, key: str, request: Json, request_hash: str) -> None:
        text = json_text(request)
        await self._db.write(
            lambda db: episodes.begin_step(db, leases.held(db, lease), key, text, request_hash), under_way=True
        )

    async def finish_step(self, lease: Lease, key: str, result: Json) -> None:
        try:
            text = json_text(result)
        except InvalidInput as error:
            raise StoreError(f"The result of the step {key} cannot be kept: {error}") from error

        def work(db: sqlite3.Connection) -> None:
            added = db.execute(
                "INSERT OR IGNORE INTO results (step, result) SELECT n, ? FROM steps WHERE episode = ? AND key = ?",
                (text, leases.held(db, lease), key),
            ).rowcount
            if not added:
                raise StoreError(f"The step {key} of episode {lease.episode} is not one that is under way.")

        await self._db.write(work, under_way=True)
