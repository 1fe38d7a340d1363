"""What a node works with: its episode under a lease, a journal for its effects, a meter, and events that are kept.

The nodes drive core's state machine; the graph owns the order. The graph's state holds the record so far; the store may
know more: a node that was killed after it had kept its event, or a run from an old checkpoint. Then effects come from
the journal and events are not kept twice. A run that goes on otherwise than it was recorded becomes an episode of its
own: see `mulligan.langgraph.forking`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langgraph.errors import GraphBubbleUp

from mulligan.app.leases import leased
from mulligan.core.codec import event_from_json, from_json, to_json
from mulligan.core.episode import RESUMABLE, Event, Resumed, Stopped, advance
from mulligan.core.errors import JournalError, NotFound, StoreError
from mulligan.core.journal import NoJournal
from mulligan.core.loop import Meter
from mulligan.core.protocols import Journal, Lease, Store
from mulligan.core.records import Episode, Json, Stop, Usage
from mulligan.core.scope import scope
from mulligan.langgraph.bridge import Settling, blocking, keeper, portal
from mulligan.langgraph.forking import ForkingJournal, forked
from mulligan.langgraph.state import DRAFT, Record

LEASE_SECONDS = 60.0
REMEMBERED = 256
"""Episodes whose record is held as an object beside its JSON."""

log = logging.getLogger("mulligan.langgraph")


@dataclass
class Work:
    """One node's work. `episode` grows with `keep`; begun, events, question, steps and next are what the graph's state
    holds of it: see `state.Record`.

    kept: the events that the store holds, without pauses; place: the number of the store's next event, in which pauses
    count too. resumed: False as long as the store says that the episode pauses.
    """

    episode: Episode
    begun: Any
    events: Sequence[Any]
    question: str
    steps: int
    next: str
    journal: Journal = field(default_factory=NoJournal)
    meter: Meter = field(default_factory=Meter)
    store: Store | None = None
    lease: Lease | None = None
    kept: Sequence[Event] = ()
    place: int = 0
    resumed: bool = True
    began: float = field(default_factory=time.monotonic)
    fork: Callable[[Json], Awaitable[None]] | None = None
    """Makes this the work on a fork of the episode, given how the two part; set where there is a store."""
    waits: Future[Any] | None = None
    """What a thread of the node waits for, to be given up with the node."""
    written: tuple[Any, int] = (None, 0)
    """What of it the graph's state holds already: the beginning, and how many events."""
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop that does what is asynchronous: the node's, or, in synchronous code, the portal."""
        return self._loop or portal.loop

    @property
    def record(self) -> Record:
        """As the graph's state holds it: JSON, which any checkpointer can keep. What no event has counted yet goes on
        to the next node: the draft's call belongs to the trial that it is executed in."""
        spent = {"usage": to_json(self.meter.usage), "seconds": self.lap()} if self.meter.usage.calls else None
        return {
            "begun": self.begun,
            "events": self.events,
            "question": self.question,
            "steps": self.steps,
            "next": self.next,
            "spent": spent,
        }

    def lacking(self, record: Record) -> Any:
        """What the graph's state lacks of this record: all of it where it begins here, as in a fork."""
        begun, events = self.written
        if begun is not self.begun:
            return record
        parts: dict[str, Any] = {"steps": record["steps"], "next": record["next"], "spent": record["spent"]}
        return {**parts, "events": record["events"][events:]}

    def lap(self) -> float:
        """Seconds since this was last asked, for the next event."""
        began, self.began = self.began, time.monotonic()
        return self.began - began

    async def keep(self, event: Event) -> None:
        """Raises `OutOfOrder` for what the episode was not waiting for, `StoreError`."""
        known = self.kept[len(self.events)] if len(self.events) < len(self.kept) else None
        if known is not None and replace(known, seconds=0.0) != replace(event, seconds=0.0):
            known = None
            assert self.fork, "what was kept came from a store"
            await self.fork(to_json(replace(event, seconds=0.0)))
        self.episode = advance(self.episode, known or event)
        if known is None:
            await self.tell(event)
        happened = known or event
        self.events = [*self.events, happened if isinstance(self.begun, Episode) else to_json(happened)]

    async def tell(self, event: Event) -> None:
        """Into the store alone: what is no step of the graph, such as that it was cut short, or goes on."""
        if self.store is None or self.lease is None:
            return
        if not self.resumed and not isinstance(event, Resumed):
            if isinstance(event, Stopped) and event.stop.reason in RESUMABLE:
                return  # it pauses already
            await self.tell(Resumed())
        await self.store.append(self.lease, self.place, event)
        self.place += 1
        self.resumed = not (isinstance(event, Stopped) and event.stop.reason in RESUMABLE)
        if not pause(event):
            self.kept = [*self.kept, event]

    def spent(self) -> Usage:
        """What was used since this was last asked."""
        used, self.meter.usage = self.meter.usage, Usage()
        return used


here: ContextVar[Work | None] = ContextVar("mulligan_langgraph_work", default=None)
"""The work of the node that runs now, for the models and tools that it calls; None outside a node."""


@dataclass(frozen=True)
class _Known:
    """What this process knows of an episode: its record and what that stands for; what the store held when the lease
    of this fence was given back."""

    record: Record
    episode: Episode
    fence: int = -1
    kept: Sequence[Event] = ()
    place: int = 0
    resumed: bool = True


class Recorder:
    """Keeps episodes in a store; without one nothing is recorded, and the same rules hold."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._settling = cast(Store, Settling(store, keeper))
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()

    @property
    def records(self) -> bool:
        return self._store is not None

    async def begin(self, episode: Episode, record: Record, files: Mapping[str, str]) -> None:
        """Creates the episode in the store. record: its beginning, as the graph's state holds it."""
        if self._store is not None:
            await self._settling.create(episode, files)
        self._remember(_Known(record, episode, fence=0))

    async def stored(self, id: str) -> Json:
        """The episode as JSON, as it was begun, without what happened since; None where there is none."""
        if self._store is None:
            return None
        self._known.pop(id, None)
        try:
            episode = await self._settling.load(id)
        except NotFound:
            return None
        begun = replace(episode, trials=(), recall=None, stop=None, seconds=0.0, lost=Usage())
        return to_json(begun)

    def episode(self, record: Record) -> Episode:
        begun: Any = record["begun"]
        known = self._known.get(begun.id if isinstance(begun, Episode) else begun["id"])
        return known.episode if known and _same(known.record, record) else episode_of(record)

    def update(self, work: Work) -> Any:
        """What this work adds to the record in the graph's state; what that stands for is remembered beside it."""
        record = work.record
        if work.episode.stop is None:
            self._remember(_Known(record, work.episode))
        else:
            self._known.pop(work.episode.id, None)
        return work.lacking(record)

    def _remember(self, known: _Known) -> None:
        with self._lock:
            self._known.pop(known.episode.id, None)
            self._known[known.episode.id] = known
            while len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]

    def work(self, record: Record, *names: str) -> AbstractAsyncContextManager[Work]:
        """The work of one node; what it records is keyed below these names, such as "trial.1", "act".

        A node that is cut short leaves the episode stopped, resumably; a node that waits for a person does not.
        Raises `LeaseLost` while somebody else works on the episode.
        """
        work = Work(
            self.episode(record),
            record["begun"],
            record["events"],
            record["question"],
            record["steps"],
            record["next"],
        )
        if record["next"] != DRAFT:
            work.written = record["begun"], len(record["events"])
        if spent := record["spent"]:
            work.meter.add(from_json(Usage, spent["usage"]))
            work.began -= spent["seconds"]
        if not blocking.get():
            work._loop = asyncio.get_running_loop()  # pyright: ignore[reportPrivateUsage]
        return _AtWork(work) if self._store is None else self._recorded(work, names)

    @asynccontextmanager
    async def _recorded(self, work: Work, names: Sequence[str]) -> AsyncGenerator[Work]:
        async with _AtWork(work), AsyncExitStack() as stack:
            await self.take(work, stack)
            try:
                with scope(*names):
                    yield work
                self._leave(work)
            except (GraphBubbleUp, StoreError, JournalError, GeneratorExit):
                raise
            except BaseException as error:
                cut = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
                where = " of ".join(reversed(names))
                said = f"during {where}" if cut else f"{where}: {type(error).__name__}: {error}"
                with suppress(StoreError):  # it was lost, and is somebody else's
                    await work.tell(Stopped(Stop("interrupted" if cut else "error", said), work.spent()))
                raise

    async def take(self, work: Work, stack: AsyncExitStack, journal: ForkingJournal | None = None) -> None:
        """The lease of the work's episode, and what the store knows of it; what it lacks of the record it is given.

        journal: the one that goes on here, in a fork.
        """
        id, store = work.episode.id, self._settling
        heart = keeper.loop if blocking.get() else None
        holding = leased(store, id, seconds=LEASE_SECONDS, heart=heart)
        try:
            lease = await stack.enter_async_context(holding)
        except NotFound:  # the checkpoint came from another machine, or the store was emptied
            await store.create(from_json(Episode, work.begun))
            lease = await stack.enter_async_context(leased(store, id, seconds=LEASE_SECONDS, heart=heart))
        work.store, work.lease = store, lease
        known = self._known.pop(id, None)  # put back by a node that ends well
        contiguous = known is not None and known.fence + 1 == lease.fence
        if known is not None and contiguous:
            work.kept, work.place, work.resumed = known.kept, known.place, known.resumed
        else:
            events = await store.events(id)
            work.kept, work.place = [event for event in events if not pause(event)], len(events)
            work.resumed = not events or not isinstance(events[-1], Stopped) or not pause(events[-1])
        for event in work.events[len(work.kept) :]:
            await work.tell(event_from_json(event))
        if not work.resumed and len(work.events) == len(work.kept):
            await work.tell(Resumed())
        if journal is None:
            # A draft leaves a step and no event: another drive that begins with it has to look the step up.
            here_too = known is not None and (known.record["next"], known.record["steps"]) == (work.next, work.steps)
            fresh = contiguous and here_too and len(work.events) == len(work.kept)
            work.journal = ForkingJournal(work, fresh=fresh)
            work.fork = lambda why: forked(self, work, stack, why)
        else:
            await journal.move(store, lease)

    def _leave(self, work: Work) -> None:
        """What the next node need not read, if nobody else has held the lease in between."""
        known, lease = self._known.get(work.episode.id), work.lease
        if known is not None and lease is not None:
            of_store: dict[str, Any] = {"kept": work.kept, "place": work.place, "resumed": work.resumed}
            self._remember(replace(known, fence=lease.fence, **of_store))


class _AtWork:
    """While it is open, the work is that of `here`."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def __aenter__(self) -> Work:
        self._token = here.set(self._work)
        return self._work

    async def __aexit__(self, *_: object) -> None:
        here.reset(self._token)
        if self._work.waits is not None:
            self._work.waits.cancel()


def _same(one: Record, other: Record) -> bool:
    """Whether both are the same record of this process, as far as it has come."""
    events, others = one["events"], other["events"]
    if one["begun"] is not other["begun"] or len(events) != len(others):
        return False
    return not events or events[-1] is others[-1]


def episode_of(record: Record) -> Episode:
    """The episode that a graph's state holds as `record`, with its trials. Raises `InvalidInput`, `OutOfOrder`."""
    begun: Any = record["begun"]
    episode = begun if isinstance(begun, Episode) else from_json(Episode, begun)
    for event in record["events"]:
        episode = advance(episode, event_from_json(event) if isinstance(event, dict) else event)
    return episode


def pause(event: Event) -> bool:
    """Whether it is no step of the graph: that the episode was cut short, or goes on."""
    return isinstance(event, Resumed) or (isinstance(event, Stopped) and event.stop.reason in RESUMABLE)
