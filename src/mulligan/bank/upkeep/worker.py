"""Do queued work of any process, one piece after the other, until none is due."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from mulligan.bank.ports import LEASE, Ports
from mulligan.core.errors import LeaseLost, MulliganError, StoreError
from mulligan.core.queued import Claim, Queued
from mulligan.text.secrets import mask

RETRY = 30.0
"""Seconds until the second attempt; doubled for each further one."""

SHORTEST, LONGEST = 0.05, 20.0
"""Seconds between two looks at work that is not due yet."""

STOPPED = "the process was stopped"

log = logging.getLogger("mulligan")


class Worker:
    """Does queued work, whichever process accepted it. jobs: what does each kind of work."""

    def __init__(self, ports: Ports, jobs: Mapping[str, Callable[[Queued, Claim], Awaitable[object]]]) -> None:
        self._ports, self._jobs = ports, jobs
        self._queue = ports.memory.queue
        self._background: asyncio.Task[None] | None = None
        self._bell = asyncio.Event()
        self._leaving = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of work that can be done here: some need a model, some an embedder."""
        unavailable = (
            *(("extract",) if self._ports.model is None else ()),
            *(("embed", "link") if self._ports.vectors.embedder is None else ()),
        )
        return tuple(kind for kind in self._jobs if kind not in unavailable)

    async def work(self, seconds: float | None = None) -> int:
        """Works until nothing is due, or the time is up; how many pieces were done. A piece that was begun is ended."""
        until, done = None if seconds is None else time.monotonic() + seconds, 0
        while until is None or time.monotonic() < until:
            claimed = await self._queue.claim(self._ports.owner, LEASE, self.kinds)
            if claimed is None:
                break
            await self._do(*claimed)
            done += 1
        return done

    def wake(self, *, once: bool = False) -> None:
        """Starts to work in the background, if that does not happen yet. once: only if it never did."""
        if once and self._background is not None:
            return
        self._ring()
        if self._background is None or self._background.done():
            self._bell, self._leaving = asyncio.Event(), False
            self._background = asyncio.create_task(self._attend())

    def _ring(self) -> None:
        """Wakes the background task, on whichever event loop it runs."""
        if self._background is None or self._background.get_loop() is asyncio.get_running_loop():
            self._bell.set()
        elif self._background.get_loop().is_running():
            self._background.get_loop().call_soon_threadsafe(self._bell.set)

    async def leave(self, seconds: float) -> None:
        """Does what is due, for this long at most, and stops."""
        if self._background is None:
            return
        at = self._background.get_loop()
        if at is not asyncio.get_running_loop():  # the bank is used from several event loops
            if at.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.leave(seconds), at))
            return
        self._leaving = True
        self._bell.set()
        await asyncio.wait([self._background], timeout=seconds)
        self._background.cancel()
        await asyncio.gather(self._background, return_exceptions=True)

    async def _attend(self) -> None:
        """Works until nothing is left: tries failed work again when it is due, and takes over what dead processes left.

        A `wake` during the last look is noticed. A store that fails is asked again later.
        """
        while True:
            self._bell.clear()
            try:
                await self.work()
                due = await self._queue.due(self.kinds)
            except StoreError as error:
                log.warning("queued work pauses: %s", error)
                due = time.time() + LONGEST
            if self._leaving or (due is None and not self._bell.is_set()):
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), min(max((due or 0.0) - time.time(), SHORTEST), LONGEST))

    async def _do(self, work: Queued, claim: Claim) -> None:
        """Does a piece of work. Where it fails, it is tried again later, or has failed for good."""
        try:
            await self._ports.held(claim, lambda: self._jobs[work.kind](work, claim))
        except LeaseLost:
            log.warning("work %s was taken over by another process", work.id)
        except asyncio.CancelledError:
            await self._queue.fail(claim, STOPPED, retry_in=0.0)
            raise
        except Exception as error:
            last = work.attempts >= self._ports.settings.attempts and work.error != STOPPED
            message = mask(str(error) if isinstance(error, MulliganError) else f"{type(error).__name__}: {error}")
            log.warning("work %s (%s) failed: %s", work.id, work.kind, message)
            await self._queue.fail(claim, message, retry_in=None if last else RETRY * 2 ** (work.attempts - 1))
