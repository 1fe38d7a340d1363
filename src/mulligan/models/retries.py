"""Sends again what failed for a passing reason, and never more at once than a provider takes.

Exponential back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015); `Retry-After` comes first.
These are the only retries: the SDKs' own are turned off, so that attempts are counted once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from mulligan.models.failures import Failure
from mulligan.models.settings import CallSettings

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
log = logging.getLogger("mulligan.models")


async def persist(
    send: Callable[[], Awaitable[T | Failure]], settings: CallSettings, sleep: Sleep, chance: Callable[[], float]
) -> tuple[T | Failure, int]:
    """What came of it, and how many attempts that took. `chance` gives numbers from 0 to 1."""
    for attempt in range(1, settings.attempts + 1):
        got = await send()
        if not isinstance(got, Failure) or not got.retry or attempt == settings.attempts:
            return got, attempt
        seconds = _wait(got, attempt, settings, chance())
        log.warning("attempt %d of %d failed (%s), next in %.1f s", attempt, settings.attempts, got.said, seconds)
        await sleep(seconds)
    raise AssertionError("attempts is at least 1")


def _wait(failure: Failure, attempt: int, settings: CallSettings, chance: float) -> float:
    if failure.wait is not None:
        return min(failure.wait, settings.longest_wait)
    return min(settings.first_wait * 2 ** (attempt - 1), settings.longest_wait) * (0.5 + chance / 2)


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, int], asyncio.Semaphore]] = WeakKeyDictionary()


def slot(provider: str, parallel: int) -> asyncio.Semaphore:
    """To be held while a call is in flight: one for all models of a provider (per event loop, as locks are)."""
    ours = _slots.setdefault(asyncio.get_running_loop(), {})
    return ours.setdefault((provider, parallel), asyncio.Semaphore(parallel))
