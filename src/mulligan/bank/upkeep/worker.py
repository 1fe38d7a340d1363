"""Does queued work, one piece after the other, until none is due: whatever process accepted it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from mulligan.bank.learn.learning import Learning
from mulligan.bank.ports import LEASE, Ports
from mulligan.bank.upkeep.upkeep import Tending
from mulligan.core.errors import LeaseLost, MulliganError, StoreError
from mulligan.core.queued import Claim, Queued
from mulligan.core.secrets import mask

RETRY = 30.0
"""Seconds until the second attempt; doubled for each further one."""

SHORTEST, LONGEST = 0.05, 20.0
"""Seconds between two looks at work that is not due yet."""

STOPPED = "the process was stopped"

log = logging.getLogger("mulligan")


class Worker:
    def __init__(self, ports: Ports, learning: Learning, tending: Tending) -> None:
        self._ports, self._learning, self._tending = ports, learning, tending
        self._background: asyncio.Task[None] | None = None
        self._bell = asyncio.Event()
        self._leaving = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """What can be done here: thinking needs a model, vectors an embedder."""
        thinks = ("facts", "extract", "merge") if self._ports.model is not None else ("facts", "merge")
        return (*thinks, "embed", "link") if self._ports.vectors.embedder is not None else thinks

    async def work(self, seconds: float | None = None) -> int:
        """Until nothing is due, or the time is up; how many pieces were done. What was begun is brought to its end."""
        until, done = None if seconds is None else time.monotonic() + seconds, 0
        while until is None or time.monotonic() < until:
            claimed = await self._ports.memory.queue.claim(self._ports.owner, LEASE, self.kinds)
            if claimed is None:
                break
            await self._one(*claimed)
            done += 1
        return done

    def wake(self, *, once: bool = False) -> None:
        """Work is done behind the caller's back, in this process, while there is some. once: unless it was before."""
        if once and self._background is not None:
            return
        self._ring()
        if self._background is None or self._background.done():
            self._bell, self._leaving = asyncio.Event(), False
            self._background = asyncio.create_task(self._attend())

    def _ring(self) -> None:
        """Also where the work is done on another event loop, in another thread."""
        if self._background is None or self._background.get_loop() is asyncio.get_running_loop():
            self._bell.set()
        elif self._background.get_loop().is_running():
            self._background.get_loop().call_soon_threadsafe(self._bell.set)

    async def leave(self, seconds: float) -> None:
        """What can be done now is, for that long at most; nothing is waited for."""
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
        """What failed is tried again when its time has come, and what another process had is taken over if it ended.
        Who rings while it is looked whether anything is left is heard, and a store that fails is asked again later.
        """
        while True:
            self._bell.clear()
            try:
                await self.work()
                due = await self._ports.memory.queue.due(self.kinds)
            except StoreError as error:
                log.warning("queued work is not gone on with for now: %s", error)
                due = time.time() + LONGEST
            if self._leaving or (due is None and not self._bell.is_set()):
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), min(max((due or 0.0) - time.time(), SHORTEST), LONGEST))

    async def _one(self, work: Queued, claim: Claim) -> None:
        kinds: dict[str, Callable[[Queued, Claim], Awaitable[object]]] = {
            "facts": self._learning.keep_facts,
            "extract": self._learning.extract,
            "embed": self._tending.embed,
            "link": self._tending.link,
            "merge": self._tending.merge,
        }
        do = kinds[work.kind]
        try:
            await self._ports.held(claim, lambda: do(work, claim))
        except LeaseLost:
            log.warning("work %s was taken over by another process", work.id)
        except asyncio.CancelledError:
            await self._ports.memory.queue.fail(claim, STOPPED, retry_in=0.0)
            raise
        except Exception as error:
            last = work.attempts >= self._ports.settings.attempts and work.error != STOPPED
            said = mask(str(error) if isinstance(error, MulliganError) else f"{type(error).__name__}: {error}")
            log.warning("work %s (%s) failed: %s", work.id, work.kind, said)
            await self._ports.memory.queue.fail(
                claim, said, retry_in=None if last else RETRY * 2 ** (work.attempts - 1)
            )
