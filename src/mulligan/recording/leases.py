"""The right to drive an episode, or a benchmark run, held as long as the work on it takes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from typing import Protocol

from mulligan.core.errors import LeaseLost, NotFound, StoreError
from mulligan.core.protocols import Lease
from mulligan.recording.holders import owner as new_owner

LEASE_SECONDS = 30.0
POLL, WATCH = 0.01, 0.5
"""Seconds between two tries: for a lease that is held for moments, and of one whose holder may be dead."""

log = logging.getLogger("mulligan")


class Leases(Protocol):
    """A store, as far as it gives the right to drive something out."""

    async def acquire(self, id: str, owner: str, seconds: float, /, *, removing: bool = False) -> Lease: ...
    async def renew(self, lease: Lease, seconds: float) -> None: ...
    async def release(self, lease: Lease) -> None: ...


@asynccontextmanager
async def leased(
    store: Leases,
    episode: str,
    *,
    owner: str | None = None,
    seconds: float = LEASE_SECONDS,
    wait: float = 0.0,
    loop: asyncio.AbstractEventLoop | None = None,
    removing: bool = False,
) -> AsyncGenerator[Lease]:
    """Hold the lease of the episode, or of a benchmark run, while the block runs. It is renewed meanwhile.

    Args:
        owner: who holds it; None: a new owner.
        seconds: how long the lease outlives its holder. Another's, if that process may be dead, is watched as long.
        wait: seconds to wait for somebody else's lease.
        loop: the event loop that renews it, where the block runs in none. Losing the lease then cancels nothing, and
            the next write is refused.
        removing: the block only removes what it holds, which works on a full disk.

    Raises:
        LeaseLost: somebody else holds it. Losing it within the block cancels the work there, and raises this.
        NotFound: there is no such episode.
    """
    lease = await _acquired(store, episode, owner or new_owner(), seconds, wait, removing)
    worker = asyncio.current_task() if loop is None else None
    lost: list[LeaseLost] = []

    def on_lost(error: LeaseLost) -> None:
        lost.append(error)
        if worker:
            worker.cancel()

    renewal = _Renewal(store, lease, seconds, on_lost, loop or asyncio.get_running_loop())
    try:
        yield lease
    except asyncio.CancelledError:
        if lost:
            raise lost[0] from None
        raise
    finally:
        renewal.stop()
        if not lost:
            # taken over while we stood still, or the work removed what it holds (perhaps on a full disk)
            with suppress(LeaseLost, NotFound, *([StoreError] if removing else [])):
                await store.release(lease)


async def _acquired(
    store: Leases, episode: str, owner: str, seconds: float, wait: float, removing: bool = False
) -> Lease:
    until, watched = time.monotonic() + wait, None
    how = {"removing": True} if removing else {}
    while True:
        pause = POLL
        try:
            return await store.acquire(episode, owner, seconds, **how)
        except LeaseLost as error:
            doubtful = error.heartbeat is not None and watched in (None, error.heartbeat)
            if not doubtful and time.monotonic() >= until:
                raise
            if doubtful and watched is None:
                log.warning("%s Waiting to see whether it still lives (%g s at most).", error, seconds)
            watched = watched or error.heartbeat
            pause = POLL if time.monotonic() < until else WATCH
        except asyncio.CancelledError:  # the store may have been at it already
            with suppress(StoreError):
                await store.release(await store.acquire(episode, owner, seconds))
            raise
        await asyncio.sleep(pause)


class _Renewal:
    """Renews a lease every third of its time, in this loop; a task is made only when that is due."""

    def __init__(
        self,
        store: Leases,
        lease: Lease,
        seconds: float,
        on_lost: Callable[[LeaseLost], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._store, self._lease, self._seconds, self._on_lost, self._loop = store, lease, seconds, on_lost, loop
        self._timer: asyncio.TimerHandle | None = None
        self._beat: asyncio.Task[None] | None = None
        self._stopped = False
        self._do(self._rest)

    def stop(self) -> None:
        self._stopped = True
        self._do(self._cancel)

    def _do(self, what: Callable[[], None]) -> None:
        """Here, if the heart beats in this thread's loop, else over there."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            what()
        else:
            self._loop.call_soon_threadsafe(what, context=Context())  # what this thread is at is not its matter

    def _rest(self) -> None:
        if not self._stopped:
            self._timer = self._loop.call_later(self._seconds / 3, self._start)

    def _start(self) -> None:
        self._beat = self._loop.create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._store.renew(self._lease, self._seconds)
        except LeaseLost as error:
            if not self._stopped:
                self._on_lost(error)
            return
        except StoreError as error:  # busy, perhaps; there is time for another beat or two
            log.warning("the lease of %s was not renewed: %s", self._lease.episode, error)
        self._rest()

    def _cancel(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._beat:
            self._beat.cancel()
