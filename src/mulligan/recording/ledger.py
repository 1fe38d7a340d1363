"""The ledger: an episode is held by one driver at a time, and what happens in it is written before it counts.

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
from mulligan.recording.leases import LEASE_SECONDS, leased
from mulligan.text.reflections import rated

AT_HAND = 10_000_000
"""Characters, about, of entries that a ledger remembers, so that they need not be read again."""

BARE = 10_000
"""What an entry weighs that holds no text yet, in characters."""

log = logging.getLogger("mulligan")


class Entry:
    """An episode as its holder reads and extends it. What it says is what the store says, while the lease holds.

    Attributes:
        episode: with everything that has happened.
        events: all events, in their order.
        steps: the journal steps, in the order in which they were begun. None stands for one that this process has
            written and does not remember: see `step`.
        weight: about how many characters it held when it was last weighed.
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
        self.weight, self._unweighed = BARE, [*self.events, *steps]
        self._waiting: list[tuple[Event, Episode]] = []
        self._keep_steps, self._observers = keep_steps, observers

    @classmethod
    async def read(cls, store: Store, lease: Lease, **options: Any) -> Entry:
        id = lease.episode
        return cls(store, lease, await store.load(id), await store.events(id), await store.steps(id), **options)

    @property
    def paused(self) -> bool:
        """Whether the episode was stopped, and can be resumed."""
        return self.episode.stop is not None and self.episode.stop.resumable

    async def append(self, event: Event, *, later: bool = False) -> Episode:
        """Record the event, and return the episode after it. One that is paused is resumed first, or stays paused: a
        person's remark changes nothing of this.

        A reflection is recorded with its quality, whoever wrote it.

        Args:
            later: write it together with what is written next, at the latest as the episode is let go. It is for events
                that no effect follows before that, or whose making is in the journal. The store's errors come then.

        Raises:
            OutOfOrder: the episode was waiting for something else. Nothing is recorded.
            StoreError: it could not be written, or somebody else holds the episode now.
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
        """Whether an event is still to be written."""
        return bool(self._waiting)

    async def let_go(self) -> None:
        """Write what waits, if anything does; the lease ends with it. Raises `StoreError`."""
        if not self._waiting:
            return
        self.released = True
        try:
            await self._write(release=True)
        except BaseException:
            self.released = False
            raise

    async def _write(self, *added: Event, release: bool = False) -> None:
        """Write what waits, and these events. Those who observe what waited are told of it."""
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
        """Record that the episode goes on, if it is paused."""
        if self.paused:
            await self.append(Resumed())

    def notify(self, event: Event) -> None:
        """Tell the observers of an event that is recorded."""
        for observer in self._observers:
            inform(observer, self.episode, event)

    async def step(self, key: str) -> StepRow | None:
        """The journal step of this key, if it was ever begun."""
        if self.steps.get(key, self) is None:
            self.steps = {row.key: row for row in await self.store.steps(self.lease.episode)}
        return self.steps.get(key)

    def leave_behind(self, key: str) -> None:
        """Forget this step and those that were begun after it, as the store will when it is begun anew."""
        self.steps = {before: self.steps[before] for before in takewhile(lambda other: other != key, self.steps)}

    async def begin_step(self, key: str, request: Json) -> None:
        """Write the step as begun. If it was begun with another request, those begun after it are left behind."""
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
        """Write the result of a step that was begun."""
        await self._settle()
        await self.store.finish_step(self.lease, key, result)
        if (row := self.steps[key]) is not None:
            self.steps[key] = replace(row, done=True, result=result)
            self._unweighed.append(result)

    async def _settle(self) -> None:
        if self._waiting:
            await self._write()

    def weigh(self) -> None:
        """Bring `weight` up to date. What was weighed before is not walked again."""
        self.weight += _weight(self._unweighed)
        self._unweighed.clear()


class Ledger:
    """The episodes of one store.

    Args:
        owner: in whose name episodes are held. None: a new one each time, so that a second driver in this process is
            refused like one in another.
        keep_steps: whether an entry holds on to the requests and results of the steps that are written through it.
        observers: told of each event once it is recorded.
    """

    def __init__(
        self,
        store: Store,
        *,
        owner: str | None = None,
        keep_steps: bool = False,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.store = store
        self._owner = owner
        self._options: dict[str, Any] = {"keep_steps": keep_steps, "observers": observers}
        self._remembered: OrderedDict[str, Entry] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    async def begin(self, episode: Episode, files: Mapping[str, str] | None = None) -> None:
        """Create the episode. files: the texts that it rests on. Raises `StoreError` if its id is taken."""
        await self.store.create(episode, files or {})
        self._remember(Entry(self.store, Lease(episode.id, "", 0), episode, **self._options))

    def remembered(self, id: str) -> Episode | None:
        """The episode as this process knows it; another may have changed it since."""
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
        """Hold the episode while the block runs. What this process knows of it counts if nobody else has held it since.

        seconds, wait and cancels are those of `leased`.

        Raises:
            NotFound: there is no such episode.
            LeaseLost: somebody else holds it, or has taken it over meanwhile.
        """
        entry: Entry | None = None
        released = lambda: entry is not None and entry.released  # noqa: E731
        how: dict[str, Any] = {"owner": self._owner, "seconds": seconds, "wait": wait, "cancels": cancels}
        async with leased(self.store, id, released=released, **how) as lease:
            found = self._forget(id)
            if found is None or found.lease.fence + 1 != lease.fence:
                found = await Entry.read(self.store, lease, **self._options)
            entry, found.lease, found.released = found, lease, False
            try:
                yield entry
            except BaseException:
                with suppress(LeaseLost):  # what ended the block counts
                    await entry.let_go()
                raise
            await entry.let_go()
            if entry.episode.stop is None:
                self._remember(entry)

    async def fork(self, episode: Episode, plan: Plan, head: Head, files: Mapping[str, str]) -> Episode:
        """A copy of the episode, with its events and steps, that goes on as a run of its own."""
        run = secrets.token_hex(4)
        return await self.store.copy(episode.id, f"{run}.1", run, head, files, Forked(plan))

    async def branch(self, entry: Entry, begun: Episode, why: Json) -> Episode:
        """The episode in which a driver goes on that does not follow this record.

        Its id comes from `why`, so that a branch whose driver was killed is the same one when it is asked for again.

        Args:
            entry: the record that is left. If it is under way it is paused, and names the branch.
            begun: the episode as it began.
            why: where and how the two part.
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
            while self._weight > AT_HAND:
                self._weight -= self._remembered.popitem(last=False)[1].weight

    def _forget(self, id: str) -> Entry | None:
        with self._lock:
            entry = self._remembered.pop(id, None)
            self._weight -= entry.weight if entry else 0
            return entry


def with_quality(event: Event, episode: Episode) -> Event:
    """The event with its reflection scored: here for all drivers, so that all reflections are scored alike."""
    if not isinstance(event, Reflected | Revised) or not event.reflection or event.trial > len(episode.trials):
        return event
    return replace(event, reflection=rated(event.reflection, episode, event.trial))


def is_pause(event: Event) -> bool:
    """Whether the event only says that the episode was cut short, or goes on."""
    return isinstance(event, Resumed) or (isinstance(event, Stopped) and event.stop.resumable)


def is_move(event: Event) -> bool:
    """Whether the event is one of the loop itself: no pause, and no later change or rating."""
    return not (is_pause(event) or isinstance(event, Revised | Rated))


def inform(observer: Callable[..., None], *what: Any) -> None:
    """Call an observer. What it raises is logged, and changes nothing."""
    try:
        observer(*what)
    except Exception:
        log.exception("an observer failed; the episode continues")


def _weight(value: object) -> int:
    """Characters in a record or in JSON, about."""
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
