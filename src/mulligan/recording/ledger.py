"""The ledger of episodes: one driver holds an episode at a time, and events count once they are written.

ledger = Ledger(store)
await ledger.begin(episode)
async with ledger.hold(episode.id) as entry:
    journal = StoredJournal(entry)
    ...
    await entry.append(event)
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any, cast

from mulligan.core.codec import digest
from mulligan.core.episode import Event, Forked, Rated, Reflected, Resumed, Revised, Stopped, advance
from mulligan.core.errors import LeaseLost, NotFound
from mulligan.core.protocols import AppendsSeveral, Lease, Observer, StepRow, Store
from mulligan.core.records import Episode, Head, Json, Plan, Stop
from mulligan.recording.bridge import keeper
from mulligan.recording.leases import LEASE_SECONDS, leased
from mulligan.text.reflections import rated

MAX_REMEMBERED_WEIGHT = 10_000_000
"""Approximate characters of the entries that a ledger remembers, so that they need not be read again."""

EMPTY_WEIGHT = 10_000
"""The weight of an entry without any text, in characters."""

log = logging.getLogger("mulligan")


class Entry:
    """An episode, as its holder reads and extends it. While the lease is valid, it is the same as in the store.

    Attributes:
        episode: the episode with everything that has happened.
        events: all events, in order.
        steps: the journal steps, in the order in which they began. None represents a step that this process has written
            but not kept: see `step`.
        weight: the approximate number of characters when it was last measured.
        released: whether the lease ended with the last write.
    """

    released = False

    def __init__(
        self,
        store: Store,
        lease: Lease,
        episode: Episode,
        events: Sequence[Event] = (),
        steps: Sequence[StepRow] = (),
        *,
        keep_steps: bool = False,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.store, self.lease, self.episode = store, lease, episode
        self.events = list(events)
        self.steps: dict[str, StepRow | None] = {row.key: row for row in steps}
        self.weight, self._unweighed = EMPTY_WEIGHT, [*self.events, *steps]
        self._waiting: list[tuple[Event, Episode]] = []
        self._keep_steps, self._observers = keep_steps, observers

    @classmethod
    async def read(cls, store: Store, lease: Lease, **options: Any) -> Entry:
        id = lease.episode
        return cls(store, lease, await store.load(id), await store.events(id), await store.steps(id), **options)

    @property
    def moves(self) -> Sequence[Event]:
        """The loop's own events, without pauses and people's revisions and ratings."""
        return [event for event in self.events if not (is_pause(event) or isinstance(event, Revised | Rated))]

    @property
    def paused(self) -> bool:
        """Whether the episode was stopped, and can be resumed."""
        return self.episode.stop is not None and self.episode.stop.resumable

    async def append(self, event: Event, *, later: bool = False) -> Episode:
        """Record an event, and return the resulting episode.

        A paused episode is resumed first, unless the event is a person's revision or rating. A reflection is recorded
        with its quality.

        Args:
            later: Whether to write the event with the next write, or at the latest when the episode is released. Use it
                for events that have no effect before that, or that the journal can repeat. Store errors are raised at
                that time.

        Raises:
            OutOfOrder: The episode expected a different event. Nothing is recorded.
            StoreError: The event could not be written, or the episode now has another holder.
        """
        if self.paused and not isinstance(event, Resumed | Revised | Rated):
            if is_pause(event):
                return self.episode
            await self.resume()
        event = with_quality(event, self.episode)
        after = advance(self.episode, event)
        if not later:
            await self._write(event)
        self.episode = after
        self.events.append(event)
        self._unweighed.append(event)
        if later:
            self._waiting.append((event, after))
        else:
            self.notify(event)
        return after

    @property
    def waits(self) -> bool:
        """Whether an event is waiting to be written."""
        return bool(self._waiting)

    async def let_go(self) -> None:
        """Write any waiting events, and end the lease.

        Raises:
            StoreError
        """
        if not self._waiting:
            return
        self.released = True
        try:
            await self._write(release=True)
        except BaseException:
            self.released = False
            raise

    async def _write(self, *added: Event, release: bool = False) -> None:
        """Write the waiting events and these ones. Observers are told of those that waited."""
        waiting, store = self._waiting, self.store
        first, events = len(self.events) - len(waiting), [*(event for event, _ in waiting), *added]
        if isinstance(store, AppendsSeveral):
            await store.append_all(self.lease, first, events, release=release)
        else:
            for seq, event in enumerate(events, first):
                await store.append(self.lease, seq, event)
            if release:
                await store.release(self.lease)
        self._waiting = []
        for event, after in waiting:
            for observer in self._observers:
                inform(observer, after, event)

    async def resume(self) -> None:
        """Record that the episode continues, if it is paused."""
        if self.paused:
            await self.append(Resumed())

    def notify(self, event: Event) -> None:
        """Notify the observers of a recorded event."""
        for observer in self._observers:
            inform(observer, self.episode, event)

    async def step(self, key: str) -> StepRow | None:
        """The journal step with this key, if it has begun."""
        if self.steps.get(key, self) is None:
            self.steps = {row.key: row for row in await self.store.steps(self.lease.episode)}
        return self.steps.get(key)

    def leave_behind(self, key: str) -> None:
        """Forget this step and all later steps, as the store does when the step begins again."""
        self.steps = {before: self.steps[before] for before in takewhile(lambda other: other != key, self.steps)}

    async def begin_step(self, key: str, request: Json) -> None:
        """Record that the step began. If it began before with another request, all later steps are forgotten."""
        await self._settle()
        hashed, old = digest(request), self.steps.get(key)
        if old is not None and old.request_hash != hashed:
            self.leave_behind(key)
        await self.store.begin_step(self.lease, key, request, hashed)
        self.steps.pop(key, None)
        self.steps[key] = row = StepRow(key, hashed, False, request) if self._keep_steps else None
        if row is not None:
            self._unweighed.append(row)

    async def finish_step(self, key: str, result: Json) -> None:
        """Record the result of a step that began before."""
        await self._settle()
        await self.store.finish_step(self.lease, key, result)
        if (row := self.steps[key]) is not None:
            self.steps[key] = replace(row, done=True, result=result)
            self._unweighed.append(result)

    async def _settle(self) -> None:
        if self._waiting:
            await self._write()

    def weigh(self) -> None:
        """Update `weight` with what was added since the last call."""
        self.weight += _weight(self._unweighed)
        self._unweighed.clear()


class Ledger:
    """The episodes of one store.

    Args:
        owner: the name of the holder. None: a new name each time, so that a second driver in this process is refused
            like one in another process.
        keep_steps: whether entries keep the requests and results of the steps that they write.
        observers: called with each event after it is recorded.
    """

    def __init__(
        self,
        store: Store,
        *,
        owner: str | None = None,
        keep_steps: bool = False,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.store = keeper.wrap(store)
        self._owner = owner
        self._options: dict[str, Any] = {"keep_steps": keep_steps, "observers": observers}
        self._remembered: OrderedDict[str, Entry] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    async def begin(self, episode: Episode, files: Mapping[str, str] | None = None) -> None:
        """Create the episode.

        Args:
            files: the texts on which it depends.

        Raises:
            StoreError: the id already exists.
        """
        await self.store.create(episode, files or {})
        self._remember(Entry(self.store, Lease(episode.id, "", 0), episode, **self._options))

    def remembered(self, id: str) -> Episode | None:
        """Returns this process's copy of the episode, which another process may have changed."""
        entry = self._remembered.get(id)
        return entry.episode if entry else None

    @asynccontextmanager
    async def hold(
        self,
        id: str,
        *,
        seconds: float = LEASE_SECONDS,
        wait: float = 0.0,
        cancels: bool = True,
    ) -> AsyncGenerator[Entry]:
        """Hold the episode during the block. It is read from the store if it had another holder in the meantime.

        seconds, wait and cancels are those of `leased`.

        Raises:
            NotFound: there is no such episode.
            LeaseLost: it has another holder, or another holder took it over.
        """
        entry: Entry | None = None
        released = lambda: entry is not None and entry.released  # noqa: E731
        how: dict[str, Any] = {"owner": self._owner, "seconds": seconds, "wait": wait, "cancels": cancels}
        async with leased(self.store, id, released=released, **how) as lease:
            known = self._forget(id)
            if known is None or known.lease.fence + 1 != lease.fence:
                known = await Entry.read(self.store, lease, **self._options)
            known.lease, known.released = lease, False
            entry = known
            try:
                yield entry
            except BaseException:
                with suppress(LeaseLost):  # the error that ended the block counts
                    await entry.let_go()
                raise
            await entry.let_go()
            if entry.episode.stop is None:
                self._remember(entry)

    async def fork(self, episode: Episode, plan: Plan, head: Head, files: Mapping[str, str]) -> Episode:
        """Returns a copy of the episode, with its events and steps, which continues as a separate run."""
        run = secrets.token_hex(4)
        return await self.store.copy(episode.id, f"{run}.1", run, head, files, Forked(plan))

    async def branch(self, entry: Entry, begun: Episode, why: Json) -> Episode:
        """Returns the episode in which a driver continues when it departs from this record.

        Its id depends on `why`, so that the same branch is returned again after its driver was killed.

        Args:
            entry: the original record. If it is in progress, it is paused, and refers to the branch.
            begun: the episode at its beginning.
            why: where and how the records differ.
        """
        run = digest(why)[:12]
        if entry.episode.stop is None:
            await entry.append(Stopped(Stop("interrupted", f"it went on otherwise, as run {run}")))
        branch = replace(begun, id=f"{run}.1", run=run, forked_from=entry.episode.id)
        try:
            await self.store.load(branch.id)
        except NotFound:
            await self.begin(branch, await self.store.files(entry.episode.id))
        return branch

    def _remember(self, entry: Entry) -> None:
        self._forget(entry.episode.id)
        entry.weigh()
        with self._lock:
            self._remembered[entry.episode.id] = entry
            self._weight += entry.weight
            while self._weight > MAX_REMEMBERED_WEIGHT:
                self._weight -= self._remembered.popitem(last=False)[1].weight

    def _forget(self, id: str) -> Entry | None:
        with self._lock:
            entry = self._remembered.pop(id, None)
            self._weight -= entry.weight if entry else 0
            return entry


def with_quality(event: Event, episode: Episode) -> Event:
    """The event with its reflection scored. This is done here so that it is the same for all drivers."""
    if not isinstance(event, Reflected | Revised) or not event.reflection or event.trial > len(episode.trials):
        return event
    return replace(event, reflection=rated(event.reflection, episode, event.trial))


def is_pause(event: Event) -> bool:
    """Whether the event only says that the episode was interrupted or continues."""
    return isinstance(event, Resumed) or (isinstance(event, Stopped) and event.stop.resumable)


def inform(observer: Callable[..., None], *what: Any) -> None:
    """Call an observer. Its errors are logged and have no other effect."""
    try:
        observer(*what)
    except Exception:
        log.exception("an observer failed; the episode continues")


def _weight(value: object) -> int:
    """Approximate number of characters in a record or a JSON value."""
    if isinstance(value, str):
        return len(value) + 1
    children: Iterable[Any] = ()
    if isinstance(value, dict):
        children = cast(dict[str, Any], value).values()
    elif isinstance(value, list | tuple):
        children = cast(Sequence[Any], value)
    elif hasattr(value, "__dict__"):
        children = vars(value).values()
    return 1 + sum(map(_weight, children))
