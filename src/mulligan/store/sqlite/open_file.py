"""Notices that the store's file or its log was deleted or replaced, and folds the log into the file."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path
from typing import TypeAlias

from mulligan.core.errors import RecordLost

_Identity: TypeAlias = tuple[int, int]
"""Device and inode of a file."""


class OpenFile:
    """The file that the connections have open. It is lost once its path leads to another file or to none."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._log = f"{path}-wal"
        self._index = f"{path}-shm"
        self._identities: list[_Identity | None] | None = None  # of the file, its log and its index
        self._lost = ""
        self._opening = threading.Lock()

    def remember(self) -> None:
        """Remembers which file it is, when the first connection is open."""
        with self._opening:
            if self._identities is None:
                self._identities = [_identity(path) for path in (self._path, self._log, self._index)]

    def check(self, writer: sqlite3.Connection | None = None) -> None:
        """Raises `RecordLost` if the file is lost. Does nothing before the first connection.

        writer: the connection that has just written; then the log next to the file is checked as well.
        """
        if self._identities is None:
            return
        file, log, index = self._identities
        present = None if self._lost else _identity(self._path)
        if self._lost or present != file:
            self._lose(f"it was {'replaced' if present else 'deleted'} while it was in use")
        if writer is None or (_identity(self._log), _identity(self._index)) == (log, index):
            return
        # The log or its index was deleted or replaced. Other processes cannot see what this log holds, unless all of it
        # is folded into the file, and no other process has made a new log.
        if not (_fold_all(writer) and self._is_log_free(log, index)):
            self._lose("the log next to it (-wal) was deleted or replaced while it was in use")

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        raise RecordLost(
            f"{self._path}: {self._lost}, so data stored there since this process opened it may be lost. Restore the "
            "file if you have it, and restart the programs that use it."
        )

    def _is_log_free(self, log: _Identity | None, index: _Identity | None) -> bool:
        """Whether no other process has made a log of its own in the meantime."""
        return _identity(self._log) in (None, log) and _identity(self._index) in (None, index)


def _identity(path: str | Path) -> _Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _fold_all(db: sqlite3.Connection) -> bool:
    """Copies the log into the file. Returns whether all of it is there now."""
    busy, pages, folded = _checkpoint(db, "FULL", 250)
    return not busy and pages == folded


def empty_log(db: sqlite3.Connection) -> None:
    """Copies the log into the file and empties it. Readers may keep it from being emptied."""
    _checkpoint(db, "TRUNCATE", 1000)


def _checkpoint(db: sqlite3.Connection, mode: str, milliseconds: int) -> tuple[int, int, int]:
    """Copies the log into the file. Waits up to `milliseconds` for readers and writers."""
    db.execute(f"PRAGMA busy_timeout = {milliseconds}")
    try:
        return db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        db.execute("PRAGMA busy_timeout = 0")
