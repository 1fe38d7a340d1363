"""Waits for locks of other processes on a file of SQLite."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Seconds between two looks at a lock of another process; the last one from then on."""

SAY_AFTER = 2.0
"""Seconds of waiting for another process's lock after which a warning is logged."""

log = logging.getLogger("mulligan")


class MustWait(Exception):
    """Work that was to be done without waiting has to wait."""


class LockWait:
    """Waits for locks of other processes, and logs it. After a wait that took too long, the next work does not wait
    again until the lock was free once, or nothing was asked for as long."""

    def __init__(self, path: Path, seconds: float, clock: Callable[[], float]) -> None:
        self._path, self._seconds, self._clock = path, seconds, clock
        self._since: float | None = None
        self._last = 0.0
        self._logged = False

    def through(self, do: Callable[[], T], *, waits: bool = True) -> T:
        """The result of `do`, called again while the file is busy; without `waits`, `MustWait` is raised then."""
        began, pauses = self._clock() if waits else 0.0, iter(PAUSES)
        while True:
            try:
                result = do()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if not waits:
                    raise MustWait from None
                if not self._go_on(began):
                    raise
                time.sleep(next(pauses, PAUSES[-1]))
            else:
                self._since, self._logged = None, False
                return result

    def _go_on(self, began: float) -> bool:
        now = self._clock()
        if self._since is None or began - self._last > self._seconds:
            self._since, self._logged = began, False
        self._last = now
        waited = now - self._since
        if not self._logged and waited >= min(SAY_AFTER, self._seconds / 2):
            self._logged = True
            log.warning("waiting for another process that has %s locked (%g s at most)", self._path, self._seconds)
        return waited < self._seconds
