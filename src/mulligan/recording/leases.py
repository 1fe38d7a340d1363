"""The right to drive an episode, or a benchmark run, held as long as the work on it takes."""

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
from mulligan.recording.bridge import blocking, keeper, pause
from mulligan.recording.holders import owner as new_owner

LEASE_SECONDS = 30.0
POLL, WATCH = 0.01, 0.5
"""Seconds between two tries: for a lease that is held for moments, and of one whose holder may be dead."""
LOOK = 0.5
"""Seconds between two looks at the leases that are renewed together, unless one of them is shorter than three looks."""

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
    cancels: bool = True,
    removing: bool = False,
    released: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[Lease]:
    """Hold the lease of the episode, or of a benchmark run, while the block runs. It is renewed meanwhile.

    Args:
        owner: who holds it; None: a new owner.
        seconds: how long the lease outlives its holder. Another's, if that process may be dead, is watched as long.
        wait: seconds to wait for somebody else's lease.
        cancels: losing the lease cancels the block, if that runs in an event loop; else the next write is refused.
        removing: the block only removes what it holds, which works on a full disk.
        released: whether the block has ended the lease itself.

    Raises:
        LeaseLost: somebody else holds it, or the block was cancelled because it was lost.
        NotFound: there is no such episode.
    """
    lease = await _acquired(store, episode, owner or new_owner(), seconds, wait, removing)
    worker = asyncio.current_task() if cancels and not blocking.get() else None
    lost: list[LeaseLost] = []

    def on_lost(error: LeaseLost) -> None:
        if not released():
            lost.append(error)
            if worker:
                worker.cancel()

    renewal = _Renewal(store, lease, seconds, on_lost)
    _beat(renewal) if blocking.get() else renewal.begin()
    try:
        yield lease
    except asyncio.CancelledError:
        if lost:
            raise lost[0] from None
        raise
    finally:
        renewal.stop()
        if not (lost or released()):
            # taken over while we stood still, or the work removed what it holds (perhaps on a full disk)
            with suppress(LeaseLost, NotFound, *([StoreError] if removing else [])):
                await store.release(lease)


async def _acquired(
    store: Leases, episode: str, owner: str, seconds: float, wait: float, removing: bool = False
) -> Lease:
    until, watched = time.monotonic() + wait, None
    how = {"removing": True} if removing else {}
    while True:
        rest = POLL
        try:
            return await store.acquire(episode, owner, seconds, **how)
        except LeaseLost as error:
            doubtful = error.heartbeat is not None and watched in (None, error.heartbeat)
            if not doubtful and time.monotonic() >= until:
                raise
            if doubtful and watched is None:
                log.warning("%s Waiting to see whether it still lives (%g s at most).", error, seconds)
            watched = watched or error.heartbeat
            rest = POLL if time.monotonic() < until else WATCH
        except asyncio.CancelledError:  # the store may have been at it already
            with suppress(StoreError):
                await store.release(await store.acquire(episode, owner, seconds))
            raise
        await pause(rest)


class _Renewal:
    """Renews a lease every third of its time, in the running loop; a task is made only when that is due."""

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


_beating: dict[asyncio.AbstractEventLoop, set[_Renewal]] = {}
"""The leases that synchronous code holds, by the loop that renews them while there are any."""
_changing = threading.Lock()


def _beat(renewal: _Renewal) -> None:
    """Have the keeper renew the lease. It looks at all of them at once, so that taking a lease wakes no thread."""
    loop = keeper.loop
    with _changing:
        begun = loop in _beating
        _beating.setdefault(loop, set()).add(renewal)
    if not begun:
        loop.call_soon_threadsafe(_look, loop, context=Context())  # what this thread is at is not its matter


def _look(loop: asyncio.AbstractEventLoop) -> None:
    with _changing:
        held = _beating[loop] = {one for one in _beating[loop] if not one.stopped}
        if not held:
            del _beating[loop]
            return
    for one in held:
        if time.monotonic() >= one.due:
            one.renew()
    loop.call_later(min(LOOK, *(one.interval for one in held)), _look, loop)
