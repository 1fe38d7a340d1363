"""Reading and removing on a disk that is full or read-only.

SQLite itself needs to write in order to read a file with a write-ahead log: the log's index lies beside it.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar
from urllib.parse import quote

from mulligan.store.sqlite.schema import MIGRATIONS, migrate

T = TypeVar("T")

LEAST = 1 << 16
"""Bytes that must be free, or the disk counts as full: SQLite's index of the log alone takes half of it."""

log = logging.getLogger("mulligan")

_CODES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def barred(error: Exception) -> bool:
    """Whether SQLite failed because it could not write, or found no file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _CODES


def trouble(path: Path) -> str:
    """What keeps the disk of this file from being written: "full", "read-only", or ""."""
    there = next((folder for folder in (path, *path.parents) if folder.exists()), None)
    if there is None or not hasattr(os, "statvfs"):
        return ""
    try:
        disk = os.statvfs(there)
    except OSError:
        return ""
    if disk.f_flag & os.ST_RDONLY:
        return "read-only"
    return "full" if disk.f_bavail * disk.f_frsize < LEAST else ""


class Snapshots:
    """Connections that read a file and write nothing beside it. Close it in the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = Path(f"{path}-wal")
        self._copied: tuple[object, TemporaryDirectory[str]] | None = None
        self._copying = threading.Lock()
        self._warned = False

    def connect(self) -> sqlite3.Connection:
        """A new connection; a missing file reads as empty. Raises `sqlite3.Error`."""
        if not self._path.exists():
            self._warn("it is not there, and cannot be made here")
            return _ready(":memory:", lambda db: migrate(db, self._path))
        if Path(f"{self._path}-shm").exists():  # another process holds it open
            with suppress(sqlite3.Error):
                return self._opened("mode=ro")
        if not self._log.exists() or not self._log.stat().st_size:
            with suppress(_Old):
                return self._opened("immutable=1")
        return self._copy()

    def close(self) -> None:
        with self._copying:
            if self._copied:
                self._copied[1].cleanup()
                self._copied = None

    def _opened(self, how: str) -> sqlite3.Connection:
        return _ready(f"file:{quote(str(self._path.absolute()))}?{how}", _check)

    def _copy(self) -> sqlite3.Connection:
        """A connection to a copy of the file and its log, brought up to date."""
        with self._copying:
            state = tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in self._files())
            if self._copied is None or self._copied[0] != state:
                try:
                    self._copied = state, self._copied_to()
                except OSError as error:
                    self._warn(
                        f"it cannot be copied ({error.strerror or error}), so what was stored last may be missing"
                    )
                    return self._opened("immutable=1")
            folder = self._copied[1].name
        return _ready(str(Path(folder, self._path.name)), lambda db: migrate(db, self._path))

    def _files(self) -> list[Path]:
        return [file for file in (self._path, self._log) if file.exists()]

    def _copied_to(self) -> TemporaryDirectory[str]:
        if self._copied:
            self._copied[1].cleanup()
            self._copied = None
        places = [place for place in (_temporary(), "/dev/shm", "/run/shm") if place and os.access(place, os.W_OK)]
        for last, place in enumerate(places, 1):
            folder = TemporaryDirectory(prefix="mulligan-", dir=place, ignore_cleanup_errors=True)
            try:
                for file in self._files():
                    shutil.copyfile(file, Path(folder.name, file.name))
            except OSError:
                folder.cleanup()
                if last == len(places):
                    raise
            else:
                return folder
        raise OSError("no folder for temporary files can be written")

    def _warn(self, what: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("%s: %s", self._path, what)


def in_place(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Runs `work`, which only removes, without the log, and makes the file smaller.

    The journal that undoes a failure is held in memory: a kill meanwhile could damage the file. No other process may
    have the file open. Raises `sqlite3.Error`.
    """
    db = sqlite3.connect(path, timeout=1.0, isolation_level=None)
    try:
        for pragma in (
            "locking_mode = EXCLUSIVE",
            "temp_store = MEMORY",
            "secure_delete = ON",
            "journal_mode = MEMORY",
        ):
            db.execute(f"PRAGMA {pragma}").fetchone()
        db.execute("BEGIN IMMEDIATE")
        try:
            result = work(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        db.execute("VACUUM")
        return result
    finally:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.close()


class _Old(sqlite3.OperationalError):
    """The file is of an older version."""


def _check(db: sqlite3.Connection) -> None:
    if db.execute("PRAGMA user_version").fetchone()[0] < len(MIGRATIONS):
        raise _Old("the file is of an older version")


def _ready(name: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    db = sqlite3.connect(name, isolation_level=None, uri=name.startswith("file:"))
    try:
        db.execute("PRAGMA temp_store = MEMORY")
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _temporary() -> str | None:
    try:
        return tempfile.gettempdir()
    except OSError:
        return None
