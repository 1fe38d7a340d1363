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
    """Failures of something that the program can do without, within this process.

    Args:
        name: What can fail, such as a store's address.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    async def tolerated(self, consequence: str, work: Callable[[], Awaitable[T]], instead: T) -> T:
        """Returns the result of `work`, or `instead` if it fails or attempts are suspended. Cancellation is raised."""
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
        """Whether attempts are suspended, because the last one took long to fail."""
        return time.monotonic() < _resting.get(self._name, 0.0)

    @contextmanager
    def attempt(self) -> Generator[None]:
        """If the block takes many seconds to fail, makes no further attempts for a while."""
        start = time.monotonic()
        try:
            yield
        except Exception:
            if (seconds := time.monotonic() - start) > SLOW:
                _resting[self._name] = time.monotonic() + REST * seconds
            raise

    def warn(self, consequence: str, why: str) -> None:
        """Log a warning, unless this process has already logged this consequence."""
        if (self._name, consequence) not in _warned:
            _warned.add((self._name, consequence))
            log.warning("%s: %s", consequence, why)
