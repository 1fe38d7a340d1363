"""What a node works with: its episode under a lease, a journal for its effects, a meter, and events that are kept.

The nodes drive core's state machine; the graph owns the order. A graph that is run again on an episode that is there
already (a resume without a checkpoint) takes the same way: effects come from the journal, events that are kept are not
kept twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from langgraph.errors import GraphBubbleUp

from mulligan.core.codec import from_json, to_json
from mulligan.core.episode import RESUMABLE, Event, Resumed, Stopped, advance
from mulligan.core.errors import NotFound
from mulligan.core.journal import NoJournal, StoredJournal
from mulligan.core.loop import Meter
from mulligan.core.protocols import Journal, Lease, Store
from mulligan.core.records import Episode, Json, Stop, Usage
from mulligan.core.scope import scope
from mulligan.store.leases import owner

LEASE_SECONDS = 60.0
REMEMBERED = 256
"""Episodes whose record is held as an object beside its JSON."""


@dataclass
class Work:
    """One node's work. `episode` grows with `keep`; `seq` is the number of its events so far, in this run of the graph.

    kept: how many are in the store already, from an earlier run on the same episode; next: the number of the store's
    next event, in which pauses count too.
    """

    episode: Episode
    seq: int
    journal: Journal
    loop: asyncio.AbstractEventLoop
    meter: Meter = field(default_factory=Meter)
    store: Store | None = None
    lease: Lease | None = None
    kept: int = 0
    next: int = 0
    began: float = field(default_factory=time.monotonic)

    async def keep(self, event: Event) -> None:
        """Raises `OutOfOrder` for what the episode was not waiting for, `StoreError`."""
        now = time.monotonic()
        event, self.began = replace(event, seconds=now - self.began), now
        self.episode = advance(self.episode, event)
        if self.seq >= self.kept:
            await self.tell(event)
        self.seq += 1

    async def tell(self, event: Event) -> None:
        """Into the store alone: what is no step of the graph, such as that it was cut short, or goes on."""
        if self.store is not None and self.lease is not None:
            await self.store.append(self.lease, self.next, event)
            self.next += 1

    def spent(self) -> Usage:
        """What was used since this was last asked."""
        used, self.meter.usage = self.meter.usage, Usage()
        return used


here: ContextVar[Work | None] = ContextVar("mulligan_langgraph_work", default=None)
"""The work of the node that runs now, for the models and tools that it calls; None outside a node."""


class Recorder:
    """Keeps episodes in a store; without one nothing is recorded, and the same rules hold."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._owner = owner()
        self._known: dict[str, tuple[Json, Episode]] = {}

    async def begin(self, episode: Episode, files: Mapping[str, str] | None = None) -> Json:
        """The episode as the graph's state holds it, created in the store."""
        if self._store is not None:
            await self._store.create(episode, files or {})
        return self.held(episode)

    def held(self, episode: Episode) -> Json:
        """As JSON, which any checkpointer can keep; the object is remembered beside it."""
        record = to_json(episode)
        self._known[episode.id] = (record, episode)
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return record

    def episode(self, record: Json) -> Episode:
        known = self._known.get(record["id"])
        return known[1] if known and known[0] is record else from_json(Episode, record)

    async def stored(self, id: str) -> Episode | None:
        """The episode as it was created, without what happened since; None where there is none."""
        if self._store is None:
            return None
        try:
            episode = await self._store.load(id)
        except NotFound:
            return None
        return replace(episode, trials=(), recall=None, stop=None, seconds=0.0, lost=Usage())

    @asynccontextmanager
    async def work(self, record: Json, seq: int, *names: str) -> AsyncGenerator[Work]:
        """The work of one node; what it records is keyed below these names, such as "trial.1", "act".

        A node that is cut short leaves the episode stopped, resumably; a node that waits for a person does not.
        """
        work = Work(self.episode(record), seq, NoJournal(), asyncio.get_running_loop())
        if self._store is not None:
            await self._under_lease(work, self._store)
        token = here.set(work)
        try:
            with scope(*names):
                yield work
        except GraphBubbleUp:
            raise
        except BaseException as error:
            cut = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
            said = f"during {' of '.join(reversed(names))}" if cut else f"{names[-1]}: {type(error).__name__}: {error}"
            await work.tell(Stopped(Stop("interrupted" if cut else "error", said), work.spent()))
            raise
        finally:
            here.reset(token)
            if work.store is not None and work.lease is not None:
                await work.store.release(work.lease)

    async def _under_lease(self, work: Work, store: Store) -> None:
        work.store, work.lease = store, await store.acquire(work.episode.id, self._owner, LEASE_SECONDS)
        work.journal = StoredJournal(store, work.lease)
        events = await store.events(work.episode.id)
        work.kept, work.next = sum(not _pause(event) for event in events), len(events)
        if events and isinstance(events[-1], Stopped) and _pause(events[-1]):
            await work.tell(Resumed())


def _pause(event: Event) -> bool:
    return isinstance(event, Resumed) or (isinstance(event, Stopped) and event.stop.reason in RESUMABLE)
