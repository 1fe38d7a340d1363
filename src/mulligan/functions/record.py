"""The record of a call while it runs. If its store fails, the call continues without a record."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

from mulligan.core.episode import Evaluated, Event, Stopped, advance
from mulligan.core.errors import LeaseLost, StoreError
from mulligan.core.protocols import Journal, Store
from mulligan.core.records import Episode
from mulligan.recording.bridge import kept_both_ways
from mulligan.recording.journal import NoJournal, StoredJournal
from mulligan.recording.ledger import Entry, Ledger, with_quality
from mulligan.recording.outages import UnharmedJournal, tolerated, warn_once

T = TypeVar("T")
log = logging.getLogger("mulligan")

NEWEST = 5
"""Records of a key among which one that was cut off is looked for."""
UNRECORDED = "a call is not recorded, but continues (record='required' raises this error instead)"


class CallRecord:
    """What is kept of one call: in a store while that works, and in this process in any case.

    Attributes:
        episode: as far as it has come; None before it began.

    Args:
        name: of the store, in warnings.
        store: opens it; None: nothing is kept outside of this process.
        required: raise what the store raises.
    """

    def __init__(self, name: str, store: Callable[[], Store] | None, *, required: bool) -> None:
        self._name, self._open, self._required = name, store, required
        self._entry: Entry | None = None
        self._held: AbstractAsyncContextManager[Entry] | None = None
        self.episode: Episode | None = None

    async def begin(self, key: str | None, begun: Callable[[str], Episode], resumes: Callable[[Episode], bool]) -> None:
        """Begins an episode, or continues one of this key for which `resumes` holds.

        begun: makes the episode of a run.
        """
        run = f"f{key or secrets.token_hex(6)}"
        if self._open is not None:
            try:
                await self._tolerated(lambda: self._take(run, key, begun, resumes))
            except StoreError as error:
                raise StoreError(f"{error} Without record='required', the call would continue unrecorded.") from error
        self.episode = begun(run) if self._entry is None else self._entry.episode

    async def _take(
        self, run: str, key: str | None, begun: Callable[[str], Episode], resumes: Callable[[Episode], bool]
    ) -> None:
        assert self._open is not None
        store = kept_both_ways(self._open())
        ledger = Ledger(store)
        for candidate in await store.list(run=run, limit=NEWEST) if key else ():
            if resumes(candidate):
                try:
                    entry = await self._hold(ledger, candidate.id)
                except LeaseLost:  # an equal call is at it
                    continue
                if resumes(entry.episode):
                    await entry.resume()
                    self._entry = entry
                    return
                await self.close()  # an equal call has ended it since
        episode = begun(run)
        await ledger.begin(episode)
        self._entry = await self._hold(ledger, episode.id)

    async def _hold(self, ledger: Ledger, id: str) -> Entry:
        held = ledger.hold(id, cancels=False)  # a lease that is lost ends the record, not the function
        entry = await held.__aenter__()
        self._held = held
        return entry

    async def append(self, event: Event) -> Episode:
        """The episode after the event."""
        assert self.episode is not None
        after = None
        if (entry := self._entry) is not None:
            ends = isinstance(event, Stopped) or (isinstance(event, Evaluated) and bool(event.feedback.passed))
            after = await self._tolerated(lambda: entry.append(event, later=ends))  # nothing is done before the end
        self.episode = after or advance(self.episode, with_quality(event, self.episode))
        return self.episode

    async def close(self, error: BaseException | None = None) -> None:
        """Lets the episode go. error: what ended the call."""
        held, self._held = self._held, None
        if held is None:
            return
        try:
            await held.__aexit__(type(error) if error else None, error, error and error.__traceback__)
        except Exception as raised:
            if self._required and error is None:
                raise
            if self._entry is not None and self._entry.waits:
                warn_once(self._name, UNRECORDED, f"{type(raised).__name__}: {raised}")
            log.debug("the lease of a call was not released", exc_info=True)

    async def _tolerated(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """The result of what needs the store; None where the store fails, which ends the record."""
        if self._required:
            return await work()
        done = list[T]()

        async def kept() -> None:
            done.append(await work())

        await tolerated(self._name, UNRECORDED, kept, None)
        if not done:
            self._entry = None
        return done[0] if done else None

    @property
    def journal(self) -> Journal:
        """The journal of what judges and reflectors ask models."""
        return NoJournal() if self._entry is None else UnharmedJournal(StoredJournal(self._entry), self._lose)

    def _lose(self, error: Exception) -> None:
        if self._required:
            raise error
        self._entry = None
        warn_once(self._name, UNRECORDED, f"{type(error).__name__}: {error}")
