"""Hold the lease of an episode or a benchmark run while work on it lasts."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from typing import Protocol

from mulligan.core.errors import LeaseLost, NotFound, StoreError
from mulligan.core.protocols import Lease
from mulligan.recording.bridge import keeper, pause
from mulligan.recording.holders import owner as new_owner

LEASE_SECONDS = 30.0
SHORT_PAUSE, LONG_PAUSE = 0.01, 0.5
"""Seconds between two tries to get a lease: at first, and while its holder may be dead."""
RENEWAL_CHECK = 0.5
"""Seconds between two looks at the leases that are renewed together. Shorter leases are looked at more often."""

log = logging.getLogger("mulligan")


class Leases(Protocol):
    """The part of a store that hands out leases."""

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
    cancels: bool = True,
    removing: bool = False,
    released: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Lease]:
    """Hold the lease of an episode, or of a benchmark run, and renew it while the block runs.

    Args:
        owner: Who holds the lease. None takes a new owner.
        seconds: How long the lease outlives its holder. A holder that may be dead is watched for as long.
        wait: How many seconds to wait for another holder.
        cancels: Whether losing the lease cancels the block, if it runs in an event loop. Else its next write fails.
        removing: Whether the block only deletes the episode, which must work on a full disk.
        released: Tells whether the block has ended the lease itself.

    Raises:
        LeaseLost: Somebody else holds the lease, or the block was cancelled because the lease was lost.
        NotFound: There is no such episode.
    """
    lease = await _acquired(store, episode, owner or new_owner(), seconds, wait, removing)
    worker = asyncio.current_task() if cancels and not keeper.blocking.get() else None
    lost: list[LeaseLost] = []

    def on_lost(error: LeaseLost) -> None:
        if not released():
            lost.append(error)
            if worker:
                worker.cancel()

    renewal = _Renewal(store, lease, seconds, on_lost)
    _renew_on_keeper(renewal) if keeper.blocking.get() else renewal.begin()
    try:
        yield lease
    except asyncio.CancelledError:
        if lost:
            raise lost[0] from None
        raise
    finally:
        renewal.stop()
        if not (lost or released()):
            # It may have been taken over, or the block has deleted the episode (perhaps on a full disk).
            with suppress(LeaseLost, NotFound, *([StoreError] if removing else [])):
                await store.release(lease)


async def _acquired(
    store: Leases, episode: str, owner: str, seconds: float, wait: float, removing: bool = False
) -> Lease:
    """The lease, as soon as it is free. A holder that may be dead is watched until its heartbeat changes."""
    until, first_heartbeat = time.monotonic() + wait, None
    options = {"removing": True} if removing else {}
    while True:
        seconds_to_wait = SHORT_PAUSE
        try:
            return await store.acquire(episode, owner, seconds, **options)
        except LeaseLost as error:
            may_be_dead = error.heartbeat is not None and first_heartbeat in (None, error.heartbeat)
            if not may_be_dead and time.monotonic() >= until:
                raise
            if may_be_dead and first_heartbeat is None:
                log.warning("%s Waiting up to %g s to see whether it is still alive.", error, seconds)
            first_heartbeat = first_heartbeat or error.heartbeat
            seconds_to_wait = SHORT_PAUSE if time.monotonic() < until else LONG_PAUSE
        except asyncio.CancelledError:  # the store may have granted it already
            with suppress(StoreError):
                await store.release(await store.acquire(episode, owner, seconds))
            raise
        await pause(seconds_to_wait)


class _Renewal:
    """Renews a lease after each third of its time, in the running event loop."""

    def __init__(self, store: Leases, lease: Lease, seconds: float, on_lost: Callable[[LeaseLost], None]) -> None:
        self._store, self._lease, self._seconds, self._on_lost = store, lease, seconds, on_lost
        self.interval = seconds / 3
        self.due = time.monotonic() + self.interval
        self.stopped = False
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self.interval, self.renew)

    def renew(self) -> None:
        self.due = time.monotonic() + self.interval
        self._task = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        try:
            await self._store.renew(self._lease, self._seconds)
        except LeaseLost as error:
            if not self.stopped:
                self.stopped = True
                self._on_lost(error)
            return
        except StoreError as error:  # busy, perhaps; there is time for another beat or two
            log.warning("the lease of %s was not renewed: %s", self._lease.episode, error)
        if self._timer and not self.stopped:
            self.begin()

    def stop(self) -> None:
        self.stopped = True
        if self._timer:
            self._timer.cancel()
            if self._task:
                self._task.cancel()


_renewals: dict[asyncio.AbstractEventLoop, set[_Renewal]] = {}
"""The leases that synchronous code holds, by the event loop that renews them."""
_renewals_lock = threading.Lock()


def _renew_on_keeper(renewal: _Renewal) -> None:
    """Have the keeper's loop renew the lease. One timer looks at all leases, so that taking one wakes no thread."""
    loop = keeper.loop
    with _renewals_lock:
        is_running = loop in _renewals
        _renewals.setdefault(loop, set()).add(renewal)
    if not is_running:
        loop.call_soon_threadsafe(_renew_due, loop, context=Context())  # without the context variables of this thread


def _renew_due(loop: asyncio.AbstractEventLoop) -> None:
    """Renew the leases that are due, and look again later while there are any."""
    with _renewals_lock:
        active = _renewals[loop] = {renewal for renewal in _renewals[loop] if not renewal.stopped}
        if not active:
            del _renewals[loop]
            return
    for renewal in active:
        if time.monotonic() >= renewal.due:
            renewal.renew()
    loop.call_later(min(RENEWAL_CHECK, *(renewal.interval for renewal in active)), _renew_due, loop)
