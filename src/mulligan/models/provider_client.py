"""The common part of models and embedders of a provider: loads the SDK once, sends requests, and retries them.

Retries use exponential back-off with jitter (Brooker, "Exponential Backoff And Jitter", AWS 2015), but `Retry-After`
comes first. The SDKs' own retries are turned off, so that attempts are counted once.
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
    """Wraps pydantic-ai's models with `instrument` before each request, until the block ends."""
    _instruments.append(instrument)
    try:
        yield
    finally:
        _instruments.remove(instrument)


def instrumented(model: T) -> T:
    """The model, wrapped by all instruments."""
    for instrument in _instruments:
        model = instrument(model)
    return model


@dataclass(frozen=True)
class Target:
    """Which model of which provider is called, and how.

    Attributes:
        sleep: waits between attempts.
        chance: returns numbers from 0 to 1 that vary the wait.
    """

    provider: str
    model: str
    access: Access
    settings: CallSettings
    sleep: Sleep
    chance: Callable[[], float]


class ProviderClient(Generic[SdkT]):
    """Calls a model through an object of pydantic-ai, which `_build` makes."""

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
        """Imports the SDK and builds the object for calls. The first time takes a second or two; nothing is sent."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._build()
            return self._loaded

    async def _ready(self) -> SdkT:
        """Like `load`, but without blocking the event loop."""
        return self._loaded or await asyncio.to_thread(self.load)

    async def _send(self, request: Callable[[], Awaitable[T]]) -> tuple[T | Failure, int]:
        """The response or the last failure, and the number of attempts."""
        settings = self._settings
        for attempt in range(1, settings.attempts + 1):
            result = await self._attempt(request)
            if not isinstance(result, Failure) or not result.retry or attempt == settings.attempts:
                return result, attempt
            seconds = _wait(result, attempt, settings, self._chance())
            log.warning(
                "attempt %d of %d failed (%s), next in %.1f s", attempt, settings.attempts, result.message, seconds
            )
            await self._sleep(seconds)
        raise AssertionError("attempts must be at least 1")

    async def _attempt(self, request: Callable[[], Awaitable[T]]) -> T | Failure:
        """One attempt. It returns a failure as text, so that no exception carries a header or a key out."""
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
        times = "once" if attempts == 1 else f"{attempts} times"
        return ModelError(f"{self._where} failed (tried {times}): {failure.message} {failure.advice}")

    @property
    def _where(self) -> str:
        """The model, and its server if that is not the provider's own."""
        return f"{self.id} at {without_credentials(self._access.base_url)}" if self._access.base_url else self.id


def _wait(failure: Failure, attempt: int, settings: CallSettings, chance: float) -> float:
    if failure.wait is not None:
        return min(failure.wait, settings.longest_wait)
    return min(settings.first_wait * 2 ** (attempt - 1), settings.longest_wait) * (0.5 + chance / 2)


Slots: TypeAlias = Callable[[str, int], AbstractAsyncContextManager[Any]]
"""Returns what to hold during a call, for a provider and its maximum number of concurrent calls."""

_shared: list[Slots] = []
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, int], asyncio.Semaphore]] = WeakKeyDictionary()


@contextmanager
def slots_from(shared: Slots) -> Generator[None]:
    """Makes calls take their slots from `shared`, for slots that several processes share, until the block ends."""
    _shared.append(shared)
    try:
        yield
    finally:
        _shared.remove(shared)


def _slot(provider: str, parallel: int) -> AbstractAsyncContextManager[Any]:
    """What to hold during a call. All models of a provider share the slots (per event loop, because locks are)."""
    if _shared:
        return _shared[-1](provider, parallel)
    slots = _slots.setdefault(asyncio.get_running_loop(), {})
    return slots.setdefault((provider, parallel), asyncio.Semaphore(parallel))
