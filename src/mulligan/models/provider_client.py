"""What a model and an embedder of a provider share: load the SDK once, send a request, send it again where that helps.

Exponential back-off with full jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015); `Retry-After` comes first.
These are the only retries: the SDKs' own are turned off, so that attempts are counted once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from mulligan.core.errors import ModelError
from mulligan.models import prices
from mulligan.models.failures import Failure, failure_of
from mulligan.models.prices import Price
from mulligan.models.providers import Access, without_credentials
from mulligan.models.settings import CallSettings

SdkT = TypeVar("SdkT")
T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]
log = logging.getLogger("mulligan.models")


_instruments: list[Callable[[Any], Any]] = []


@contextmanager
def instrumented_by(instrument: Callable[[Any], Any]) -> Generator[None]:
    """Have pydantic-ai's models wrapped by this before each request, until the block ends."""
    _instruments.append(instrument)
    try:
        yield
    finally:
        _instruments.remove(instrument)


def instrumented(model: T) -> T:
    """The model of pydantic-ai, in what watches its requests."""
    for instrument in _instruments:
        model = instrument(model)
    return model


@dataclass(frozen=True)
class Target:
    """Which model of which provider is called, and how.

    Attributes:
        sleep: waits between attempts.
        chance: gives numbers from 0 to 1 that vary how long.
    """

    provider: str
    model: str
    access: Access
    settings: CallSettings
    sleep: Sleep
    chance: Callable[[], float]


class ProviderClient(Generic[SdkT]):
    """Calls a model through pydantic-ai's object for it, which `_build` makes."""

    def __init__(self, target: Target) -> None:
        self.id = f"{target.provider}:{target.model}"
        self._provider, self._model = target.provider, target.model
        self._access, self._settings = target.access, target.settings
        self._sleep, self._chance = target.sleep, target.chance
        free = Price(0.0, 0.0) if target.provider in ("ollama", "vllm") and target.access.at_home else None
        self._flat = prices.given(target.settings) or free
        self._loading = threading.Lock()
        self._loaded: SdkT | None = None

    def _build(self) -> SdkT:
        raise NotImplementedError

    def load(self) -> SdkT:
        """Import and build what the calls go through. Takes a second or two, once; nothing is called."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._build()
            return self._loaded

    async def _ready(self) -> SdkT:
        """The same without blocking the event loop, so that a heartbeat goes on meanwhile."""
        return self._loaded or await asyncio.to_thread(self.load)

    async def _send(self, request: Callable[[], Awaitable[T]]) -> tuple[T | Failure, int]:
        """The answer, or the last failure; and the number of attempts."""
        settings = self._settings
        for attempt in range(1, settings.attempts + 1):
            got = await self._attempt(request)
            if not isinstance(got, Failure) or not got.retry or attempt == settings.attempts:
                return got, attempt
            seconds = _wait(got, attempt, settings, self._chance())
            log.warning(
                "attempt %d of %d failed (%s), next in %.1f s", attempt, settings.attempts, got.message, seconds
            )
            await self._sleep(seconds)
        raise AssertionError("attempts must be at least 1")

    async def _attempt(self, request: Callable[[], Awaitable[T]]) -> T | Failure:
        """One attempt. A failure is returned as text, so that no exception carries a header or a key further."""
        seconds = self._settings.timeout
        async with _slot(self._provider, self._settings.parallel):
            try:
                async with asyncio.timeout(seconds):
                    return await request()
            except TimeoutError:
                return Failure(f"no answer within {seconds:g} s.", "Raise the setting timeout.", retry=True)
            except Exception as error:
                return failure_of(error, self.id, self._access.variable, self._access.secrets)

    def _error(self, failure: Failure, attempts: int) -> ModelError:
        often = "once" if attempts == 1 else f"{attempts} times"
        return ModelError(f"{self._where} failed (tried {often}): {failure.message} {failure.advice}")

    @property
    def _where(self) -> str:
        """The model, and its server where that is not the provider's own."""
        return f"{self.id} at {without_credentials(self._access.base_url)}" if self._access.base_url else self.id


def _wait(failure: Failure, attempt: int, settings: CallSettings, chance: float) -> float:
    if failure.wait is not None:
        return min(failure.wait, settings.longest_wait)
    return min(settings.first_wait * 2 ** (attempt - 1), settings.longest_wait) * (0.5 + chance / 2)


Slots: TypeAlias = Callable[[str, int], AbstractAsyncContextManager[Any]]
"""What to hold while a call to this provider is in flight, of which there may be so many."""

_shared: list[Slots] = []
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, int], asyncio.Semaphore]] = WeakKeyDictionary()


@contextmanager
def slots_from(shared: Slots) -> Generator[None]:
    """Have calls take their slots from here, where several processes share them, until the block ends."""
    _shared.append(shared)
    try:
        yield
    finally:
        _shared.remove(shared)


def _slot(provider: str, parallel: int) -> AbstractAsyncContextManager[Any]:
    """To be held while a call is in flight: one for all models of a provider (per event loop, as locks are)."""
    if _shared:
        return _shared[-1](provider, parallel)
    ours = _slots.setdefault(asyncio.get_running_loop(), {})
    return ours.setdefault((provider, parallel), asyncio.Semaphore(parallel))
