"""Keeps a failure of a store or a bank away from the program that it serves: a warning, once, and no record."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger("mulligan")

SLOW, REST = 0.5, 10
"""What needs more than these seconds to fail is left alone for so many times as long."""

_resting: dict[str, float] = {}
_warned: set[tuple[str, str]] = set()


async def tolerated(name: str, consequence: str, work: Callable[[], Awaitable[T]], instead: T) -> T:
    """The result of `work`. If it raises an exception, `instead`, and a warning; a cancellation is raised.

    Args:
        name: What `work` needs, such as the address of a store.
        consequence: What the warning says first. It is logged once for each name and consequence.
    """
    began = time.monotonic()
    if began < _resting.get(name, 0.0):
        return instead
    try:
        return await work()
    except Exception as error:
        now = time.monotonic()
        if now - began > SLOW:
            _resting[name] = now + REST * (now - began)
        warn_once(name, consequence, f"{type(error).__name__}: {error}")
        return instead


def warn_once(name: str, consequence: str, why: str) -> None:
    """Log a warning, unless this process has logged it for this name before."""
    if (name, consequence) not in _warned:
        _warned.add((name, consequence))
        log.warning("%s: %s", consequence, why)
