"""Keeps failures of a store or a bank from stopping the program: it warns once and goes on without (design/124)."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mulligan.core.errors import headline
from mulligan.core.protocols import Journal
from mulligan.core.records import Json

T = TypeVar("T")

log = logging.getLogger("mulligan")

SLOW, REST = 0.5, 10
"""Something that needs more than `SLOW` seconds to fail is left alone for `REST` times as long as it needed."""

_resting: dict[str, float] = {}
_warned: set[tuple[str, str]] = set()


async def tolerated(name: str, consequence: str, work: Callable[[], Awaitable[T]], instead: T) -> T:
    """The result of `work`. If it fails, logs a warning and returns `instead`. A cancellation is raised.

    Args:
        name: What `work` needs, such as the address of a store.
        consequence: What the warning says first. It is logged once for each name and consequence.
    """
    if is_resting(name):
        return instead
    began = time.monotonic()
    try:
        return await work()
    except Exception as error:
        rest(name, time.monotonic() - began)
        warn_once(name, consequence, headline(error))
        return instead


def is_resting(name: str) -> bool:
    """Whether this is left alone for now, because it failed slowly."""
    return time.monotonic() < _resting.get(name, 0.0)


def rest(name: str, seconds: float) -> None:
    """Leave this alone for a while if it needed many seconds to fail."""
    if seconds > SLOW:
        _resting[name] = time.monotonic() + REST * seconds


def warn_once(name: str, consequence: str, why: str) -> None:
    """Log a warning, unless this process has logged it for this name before."""
    if (name, consequence) not in _warned:
        _warned.add((name, consequence))
        log.warning("%s: %s", consequence, why)


class UnharmedJournal:
    """A journal that goes on without a record if its store fails.

    Args:
        journal: Records the steps.
        lost: Called with the store's error. It may raise an error itself.
    """

    def __init__(self, journal: Journal, lost: Callable[[Exception], None]) -> None:
        self._journal: Journal | None = journal
        self._lost = lost

    async def step(
        self, name: str, request: Json, do: Callable[[], Awaitable[Json]], *, repeatable: bool = True
    ) -> Json:
        if self._journal is None:
            return await do()
        results, errors = list[Json](), list[Exception]()

        async def once() -> Json:
            try:
                results.append(await do())
            except Exception as error:
                errors.append(error)
                raise
            return results[0]

        try:
            return await self._journal.step(name, request, once, repeatable=repeatable)
        except Exception as error:
            if error in errors:
                raise
            self._lost(error)
            self._journal = None
        return results[0] if results else await do()
