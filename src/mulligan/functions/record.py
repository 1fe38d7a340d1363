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
from mulligan.recording.journal import NoJournal, StoredJournal
from mulligan.recording.ledger import Entry, Ledger, with_quality
from mulligan.recording.outages import Outages

T = TypeVar("T")
log = logging.getLogger("mulligan")

RESUMABLE_AMONG = 5
"""How many of the newest records of a key are searched for a call that was cut off."""
UNRECORDED = "a call is not recorded, but continues (record='required' raises this error instead)"


class CallRecord:
    """The record of one call, always in this process, and in a store as long as the store works.

    Attributes:
        episode: the episode so far; None before it begins.

    Args:
        name: names the store in warnings.
        store: opens the store. None: the call is not stored.
        required: raise the errors of the store.
    """

    def __init__(self, name: str, store: Callable[[], Store] | None, *, required: bool) -> None:
        self._outages, self._open, self._required = Outages(name), store, required
        self._entry: Entry | None = None
        self._lease: AbstractAsyncContextManager[Entry] | None = None
        self.episode: Episode | None = None

    async def begin(
        self, key: str | None, new_episode: Callable[[str], Episode], can_resume: Callable[[Episode], bool]
    ) -> None:
        """Begins an episode, or continues one with this key for which `can_resume` is true.

        new_episode: makes an episode of a run.
        """
        run = f"f{key or secrets.token_hex(6)}"
        if self._open is not None:
            try:
                await self._tolerated(lambda: self._take(run, key, new_episode, can_resume))
            except StoreError as error:
                raise StoreError(f"{error} Without record='required', the call would continue unrecorded.") from error
        self.episode = new_episode(run) if self._entry is None else self._entry.episode

    async def _take(
        self, run: str, key: str | None, new_episode: Callable[[str], Episode], can_resume: Callable[[Episode], bool]
    ) -> None:
        assert self._open is not None
        ledger = Ledger(self._open())
        for candidate in await ledger.store.list(run=run, limit=RESUMABLE_AMONG) if key else ():
            if can_resume(candidate):
                try:
                    entry = await self._hold(ledger, candidate.id)
                except LeaseLost:  # an equal call is running it
                    continue
                if can_resume(entry.episode):
                    await entry.resume()
                    self._entry = entry
                    return
                await self.close()  # an equal call has finished it in the meantime
        episode = new_episode(run)
        await ledger.begin(episode)
        self._entry = await self._hold(ledger, episode.id)

    async def _hold(self, ledger: Ledger, id: str) -> Entry:
        lease = ledger.hold(id, cancels=False)  # losing the lease ends the record, not the function
        entry = await lease.__aenter__()
        self._lease = lease
        return entry

    async def append(self, event: Event) -> Episode:
        """Records the event, and returns the episode after it."""
        assert self.episode is not None
        episode = None
        if (entry := self._entry) is not None:
            # After these events nothing happens but the end, so they can be written together with it.
            ending = isinstance(event, Stopped) or (isinstance(event, Evaluated) and bool(event.feedback.passed))
            episode = await self._tolerated(lambda: entry.append(event, later=ending))
        self.episode = episode or advance(self.episode, with_quality(event, self.episode))
        return self.episode

    async def close(self, error: BaseException | None = None) -> None:
        """Releases the episode. error: the error that ended the call."""
        lease, self._lease = self._lease, None
        if lease is None:
            return
        try:
            await lease.__aexit__(type(error) if error else None, error, error and error.__traceback__)
        except Exception as raised:
            if self._required and error is None:
                raise
            if self._entry is not None and self._entry.waits:
                self._outages.warn(UNRECORDED, f"{type(raised).__name__}: {raised}")
            log.debug("the lease of a call was not released", exc_info=True)

    async def _tolerated(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """The result of work that uses the store. If the store fails, the result is None and recording ends."""
        if self._required:
            return await work()
        results = list[T]()

        async def run() -> None:
            results.append(await work())

        await self._outages.tolerated(UNRECORDED, run, None)
        if not results:
            self._entry = None
        return results[0] if results else None

    @property
    def journal(self) -> Journal:
        """The journal for the model calls of judges and reflectors."""
        return NoJournal() if self._entry is None else StoredJournal(self._entry, lost=self._lose)

    def _lose(self, error: Exception) -> None:
        if self._required:
            raise error
        self._entry = None
        self._outages.warn(UNRECORDED, f"{type(error).__name__}: {error}")
