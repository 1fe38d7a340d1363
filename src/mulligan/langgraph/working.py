"""A node's work on its episode, with a journal for its effects, a meter and events; and what records it in a store.

The nodes drive core's state machine; the graph owns the order. The graph's state holds the record so far. The store may
be ahead of it: when a node was killed after it had recorded its event, or when a run starts from an old checkpoint.
Then effects come from the journal, and events are not recorded twice.

A run may continue in another way than it was recorded: from an old checkpoint with the state edited, or with another
prompt or model after a crash. It then becomes an episode of its own, `forked_from` the old one, which stays as it is:
design/015.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from langgraph.errors import GraphBubbleUp

from mulligan.langgraph.state import DRAFT, Record, episode_of
from mulligan.plugins import (
    Episode,
    Journal,
    JournalError,
    Json,
    LeaseLost,
    NotFound,
    OutOfOrder,
    Stop,
    StoreError,
    Usage,
)
from mulligan.running import (
    Entry,
    Event,
    Ledger,
    Meter,
    NoJournal,
    Outages,
    Stopped,
    Store,
    StoredJournal,
    advance,
    from_json,
    portal,
    scope,
    to_json,
)

LEASE_SECONDS = 60.0
REMEMBERED = 256
"""The number of episodes whose record is held as an object beside its JSON."""

log = logging.getLogger("mulligan.langgraph")


@dataclass
class Work:
    """One node's work. `keep` adds events to its episode.

    Attributes:
        begun, events, question, steps, next: What the graph's state holds of the episode: see `Record`.
        entry: What the store holds of the episode; None: nothing is recorded.
        lap_start: The clock when the newest event happened.
        pending: What a thread of the node waits for. It is cancelled when the node ends.
        checkpoint: What the graph's state has already: the beginning, and the number of events.
    """

    episode: Episode
    begun: Any
    events: Sequence[Any]
    question: str
    steps: int
    next: str
    journal: Journal = field(default_factory=NoJournal)
    meter: Meter = field(default_factory=Meter)
    entry: Entry | None = None
    lap_start: float = field(default_factory=time.monotonic)
    recording: Recording | None = None
    pending: Future[Any] | None = None
    checkpoint: tuple[Any, int] = (None, 0)
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop for asynchronous calls: the node's, or, in synchronous code, the portal's."""
        return self._loop or portal.loop

    @property
    def record(self) -> Record:
        """The record for the graph's state.

        Usage that no event has counted yet goes on to the next node: a draft's call counts in the trial that executes
        the draft.
        """
        spent = {"usage": to_json(self.meter.usage), "seconds": self.lap()} if self.meter.usage.calls else None
        return {
            "begun": self.begun,
            "events": self.events,
            "question": self.question,
            "steps": self.steps,
            "next": self.next,
            "spent": spent,
        }

    def update_of(self, record: Record) -> Any:
        """Return what the graph's state lacks of this record: all of it if the record begins here, as in a fork."""
        begun, events = self.checkpoint
        if begun is not self.begun:
            return record
        parts: dict[str, Any] = {"steps": record["steps"], "next": record["next"], "spent": record["spent"]}
        return {**parts, "events": record["events"][events:]}

    def lap(self) -> float:
        """Return the seconds since the last call, for the next event."""
        start, self.lap_start = self.lap_start, time.monotonic()
        return self.lap_start - start

    async def keep(self, event: Event) -> None:
        """Add the event to the episode, and record it unless the store holds it already.

        Raises:
            OutOfOrder: The episode does not expect this event now.
            StoreError: The event could not be recorded.
        """
        stored = next(iter(self.stored_events[len(self.events) :]), None)
        if stored is not None and replace(stored, seconds=0.0) != replace(event, seconds=0.0):
            stored = None
            assert self.recording, "a stored event came from a store"
            await self.recording.fork(to_json(replace(event, seconds=0.0)))
        event = stored or await self.write(event)
        self.episode = advance(self.episode, event)
        self.events = [*self.events, event if isinstance(self.begun, Episode) else to_json(event)]

    @property
    def stored_events(self) -> Sequence[Event]:
        """The events in the store, without pauses."""
        return self.entry.moves if self.entry else ()

    async def write(self, event: Event) -> Event:
        """Add the event to the store, which writes it before the next step or at the end of the node; return it as it
        is recorded.

        If the node is killed before that, the journal leads to the same event again.
        """
        if self.entry is not None:
            try:
                await self.entry.append(event, later=True)
                return self.entry.events[-1]
            except StoreError as error:
                unrecorded(error)
                self.entry = None
        return event

    def spent(self) -> Usage:
        """Return the usage since the last call."""
        used, self.meter.usage = self.meter.usage, Usage()
        return used


here: ContextVar[Work | None] = ContextVar("mulligan_langgraph_work", default=None)
"""The work of the node that is running, for the models and tools that it calls; None outside a node."""


class Recorder:
    """Keeps episodes in a store. Without a store nothing is recorded, and the same rules hold."""

    def __init__(self, store: Store | None) -> None:
        self._ledger = None if store is None else Ledger(store)
        self._episodes: dict[str, tuple[Record, Episode]] = {}
        """The newest record of each episode that this process worked on, by id, and the episode that it describes."""
        self._lock = threading.Lock()
        self._outages = Outages(f"recorder {id(self):x}")

    @property
    def records(self) -> bool:
        return self._ledger is not None

    async def begin(self, episode: Episode, record: Record, files: Mapping[str, str]) -> None:
        """Create the episode in the store. record: the record of its beginning."""
        if self._ledger is not None and not self._outages.resting:
            try:
                with self._outages.attempt():
                    await self._ledger.begin(episode, files)
            except StoreError as error:
                if await self.stored(episode.id) is not None:
                    raise  # another run of the same thread has created it
                unrecorded(error)
        self._remember(record, episode)

    async def stored(self, id: str) -> Json:
        """Return the stored episode at its beginning, as JSON; None if the store does not have it."""
        if self._ledger is None or self._outages.resting:
            return None
        self._episodes.pop(id, None)
        try:
            episode = await self._ledger.store.load(id)
        except NotFound:
            return None
        except StoreError as error:
            unrecorded(error)
            return None
        begun = replace(episode, trials=(), recall=None, stop=None, seconds=0.0, lost=Usage())
        return to_json(begun)

    def episode(self, record: Record) -> Episode:
        begun: Any = record["begun"]
        remembered = self._episodes.get(begun.id if isinstance(begun, Episode) else begun["id"])
        return remembered[1] if remembered and _is_same(remembered[0], record) else episode_of(record)

    def update(self, work: Work) -> Any:
        """Return what this work adds to the record in the graph's state, and remember the episode."""
        record = work.record
        if work.episode.stop is None:
            self._remember(record, work.episode)
        else:
            self._episodes.pop(work.episode.id, None)
        return work.update_of(record)

    def _remember(self, record: Record, episode: Episode) -> None:
        with self._lock:
            self._episodes.pop(episode.id, None)
            self._episodes[episode.id] = (record, episode)
            while len(self._episodes) > REMEMBERED:
                del self._episodes[next(iter(self._episodes))]

    def work(self, record: Record, *names: str) -> AbstractAsyncContextManager[Work]:
        """Open the work of one node. The keys of its steps begin with these names, such as "trial.1", "act".

        A node that is interrupted leaves the episode stopped, so that it can be resumed; a node that waits for a person
        does not. Raises `LeaseLost` while another process works on the episode.
        """
        work = Work(
            self.episode(record), record["begun"], record["events"], record["question"], record["steps"], record["next"]
        )
        if record["next"] != DRAFT:
            work.checkpoint = record["begun"], len(record["events"])
        if spent := record["spent"]:
            work.meter.add(from_json(Usage, spent["usage"]))
            work.lap_start -= spent["seconds"]
        if not portal.blocking.get():
            work._loop = asyncio.get_running_loop()  # pyright: ignore[reportPrivateUsage]
        if self._ledger is None or self._outages.resting:
            return _AtWork(work)
        return self._recorded(self._ledger, work, names)

    @asynccontextmanager
    async def _recorded(self, ledger: Ledger, work: Work, names: Sequence[str]) -> AsyncGenerator[Work]:
        async with _AtWork(work), AsyncExitStack() as stack:
            work.recording = Recording(ledger, work, stack)
            try:
                with self._outages.attempt():
                    await work.recording.open()
            except StoreError as error:
                unrecorded(error)
            try:
                with scope(*names):
                    yield work
            except (GraphBubbleUp, StoreError, JournalError, GeneratorExit):
                raise
            except BaseException as error:
                where = " of ".join(reversed(names))
                stop = Stop("error", f"{where}: {type(error).__name__}: {error}")
                if isinstance(error, asyncio.CancelledError | KeyboardInterrupt):
                    stop = Stop("interrupted", f"during {where}")
                with suppress(StoreError, OutOfOrder):  # another process holds the lease now, or the episode is over
                    await work.write(Stopped(stop, work.spent()))
                raise


class Recording:
    """Connects one node's work to the store: to the entry of its episode, or of the fork that it continues in."""

    def __init__(self, ledger: Ledger, work: Work, stack: AsyncExitStack) -> None:
        self._ledger, self._work, self._stack = ledger, work, stack

    async def open(self) -> None:
        entry = await self._hold()
        self._work.journal = self._steps = StoredJournal(entry, diverge=self._diverge, lost=unrecorded)

    async def _hold(self) -> Entry:
        """Hold the work's episode, and write the events of the graph's state that the store lacks."""
        work, ledger = self._work, self._ledger
        try:
            entry = await self._stack.enter_async_context(_Held(ledger.hold(work.episode.id, seconds=LEASE_SECONDS)))
        except NotFound:  # the checkpoint comes from another machine, or the store was emptied
            await ledger.begin(from_json(Episode, work.begun))
            entry = await self._stack.enter_async_context(_Held(ledger.hold(work.episode.id, seconds=LEASE_SECONDS)))
        work.entry = entry
        for event in work.events[len(work.stored_events) :]:
            await work.write(from_json(Event, event))
        if len(work.events) == len(work.stored_events):
            await entry.resume()
        return entry

    async def fork(self, why: Json) -> None:
        """Continue in a fork of the episode, with the steps of this work. why: the event in which the two differ."""
        await self._steps.move(await self._diverge(why))

    async def _diverge(self, why: Json) -> Entry:
        work = self._work
        assert work.entry is not None, "only a recorded episode can be forked"
        old = work.episode
        begun = await self._ledger.branch(work.entry, from_json(Episode, work.begun), [old.id, len(work.events), why])
        work.begun = to_json(begun)
        work.episode = replace(old, id=begun.id, run=begun.run, forked_from=old.id)
        return await self._hold()


class _Held:
    """Holds an episode. A node does not fail if the store cannot take the lease back: the lease expires."""

    def __init__(self, held: AbstractAsyncContextManager[Entry]) -> None:
        self._held = held

    async def __aenter__(self) -> Entry:
        return await self._held.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        try:
            return await self._held.__aexit__(*error)
        except StoreError as raised:
            if raised is not error[1]:
                unrecorded(raised)
            return None


def unrecorded(error: Exception) -> None:
    """Warn once that a run continues without its record.

    Raises the error if it is not a failure of the store, or if it says that another process works on the episode.
    """
    if isinstance(error, LeaseLost) or not isinstance(error, StoreError):
        raise error
    Outages(type(error).__name__).warn("a run of a graph is not recorded, and continues", str(error))


class _AtWork:
    """Sets `here` to the work while the context is open."""

    def __init__(self, work: Work) -> None:
        self._work = work

    async def __aenter__(self) -> Work:
        self._token = here.set(self._work)
        return self._work

    async def __aexit__(self, *_: object) -> None:
        here.reset(self._token)
        if self._work.pending is not None:
            self._work.pending.cancel()


def _is_same(one: Record, other: Record) -> bool:
    """Whether both are the same record of this process, with the same events so far."""
    events, others = one["events"], other["events"]
    if one["begun"] is not other["begun"] or len(events) != len(others):
        return False
    return not events or events[-1] is others[-1]
