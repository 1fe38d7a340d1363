"""Waits for the locks that other processes hold on an SQLite file."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Seconds between two attempts to get a lock; the last one is repeated."""

WARN_AFTER_SECONDS = 2.0
"""How long to wait for another process's lock before a warning is logged."""

log = logging.getLogger("mulligan")


class MustWait(Exception):
    """Work that may not wait would have to wait."""


class LockWait:
    """Waits for locks of other processes, and logs it.

    After a wait of `seconds` in vain, later work does not wait again until the lock was free once, or no work came for
    as long.
    """

    def __init__(self, path: Path, seconds: float, clock: Callable[[], float]) -> None:
        self._path, self._seconds, self._clock = path, seconds, clock
        self._since: float | None = None
        self._last = 0.0
        self._logged = False

    def through(self, do: Callable[[], T], *, waits: bool = True) -> T:
        """The result of `do`, which is called again while the file is busy; if not `waits`, raises `MustWait` then."""
        began = self._clock() if waits else 0.0
        pauses = iter(PAUSES)
        while True:
            try:
                result = do()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if not waits:
                    raise MustWait from None
                if not self._may_wait(began):
                    raise
                time.sleep(next(pauses, PAUSES[-1]))
            else:
                self._since, self._logged = None, False
                return result

    def _may_wait(self, began: float) -> bool:
        now = self._clock()
        if self._since is None or began - self._last > self._seconds:
            self._since, self._logged = began, False
        self._last = now
        waited = now - self._since
        if not self._logged and waited >= min(WARN_AFTER_SECONDS, self._seconds / 2):
            self._logged = True
            log.warning("waiting for another process that has %s locked (%g s at most)", self._path, self._seconds)
        return waited < self._seconds
