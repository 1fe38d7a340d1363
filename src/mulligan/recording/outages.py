"""Keeps failures of a store or a bank from stopping the program: it warns once and goes on without (design/124)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from mulligan.core.errors import headline

T = TypeVar("T")

log = logging.getLogger("mulligan")

SLOW, REST = 0.5, 10
"""Something that needs more than `SLOW` seconds to fail is left alone for `REST` times as long as it needed."""

_resting: dict[str, float] = {}
_warned: set[tuple[str, str]] = set()


class Outages:
    """The failures of something that the program can do without, in the whole process.

    Args:
        name: What may fail, such as the address of a store.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def tolerated(self, consequence: str, work: Callable[[], Awaitable[T]], instead: T) -> T:
        """The result of `work`. If it fails, or may not run for now, returns `instead`. A cancellation is raised."""
        if self.resting:
            return instead
        try:
            with self.attempt():
                return await work()
        except Exception as error:
            self.warn(consequence, headline(error))
            return instead

    @property
    def resting(self) -> bool:
        """Whether this is left alone for now, because it failed slowly."""
        return time.monotonic() < _resting.get(self._name, 0.0)

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Leave this alone for a while if the block needs many seconds to fail."""
        start = time.monotonic()
        try:
            yield
        except Exception:
            if (seconds := time.monotonic() - start) > SLOW:
                _resting[self._name] = time.monotonic() + REST * seconds
            raise

    def warn(self, consequence: str, why: str) -> None:
        """Log a warning, unless this process has logged this consequence before."""
        if (self._name, consequence) not in _warned:
            _warned.add((self._name, consequence))
            log.warning("%s: %s", consequence, why)
