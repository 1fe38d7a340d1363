"""Reads the store's file without writing beside it, as on a read-only disk, and removes from it on a full disk."""

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
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from mulligan.store.sqlite.schema import MIGRATIONS, migrate, version_of

T = TypeVar("T")

log = logging.getLogger("mulligan")


class _Copy(NamedTuple):
    """A copy of the file and its log, and their sizes and times when it was made."""

    state: object
    folder: TemporaryDirectory[str]


class Snapshots:
    """Opens connections that read a file and write nothing beside it. Close it when you are done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = Path(f"{path}-wal")
        self._copy: _Copy | None = None
        self._copying = threading.Lock()
        self._warned = False

    def connect(self) -> sqlite3.Connection:
        """A new connection; a missing file reads as empty. Raises `sqlite3.Error`."""
        if not os.path.exists(self._path):
            self._warn("it does not exist, and cannot be created here")
            return _connect(":memory:", lambda db: migrate(db, self._path))
        if os.path.exists(f"{self._path}-shm"):  # another process holds it open
            with suppress(sqlite3.Error):
                return self._connect_with("mode=ro")
        if not os.path.exists(self._log) or not self._log.stat().st_size:
            with suppress(_OutdatedFile):
                return self._connect_with("immutable=1")
        return self._connect_to_copy()

    def close(self) -> None:
        """Removes the copy, if there is one."""
        with self._copying:
            self._remove_copy()

    def _connect_with(self, option: str) -> sqlite3.Connection:
        return _connect(f"file:{quote(str(self._path.absolute()))}?{option}", _check_version)

    def _connect_to_copy(self) -> sqlite3.Connection:
        """A connection to a copy of the file and its log, brought up to date."""
        with self._copying:
            state = tuple((file.stat().st_size, file.stat().st_mtime_ns) for file in self._files())
            if self._copy is None or self._copy.state != state:
                self._remove_copy()
                try:
                    self._copy = _Copy(state, self._copy_files())
                except OSError as error:
                    self._warn(f"it cannot be copied ({error.strerror or error}), so the newest data may be missing")
                    return self._connect_with("immutable=1")
            folder = self._copy.folder.name
        return _connect(str(Path(folder, self._path.name)), lambda db: migrate(db, self._path))

    def _files(self) -> list[Path]:
        return [file for file in (self._path, self._log) if os.path.isfile(file)]  # reading a device may never end

    def _remove_copy(self) -> None:
        if self._copy:
            self._copy.folder.cleanup()
            self._copy = None

    def _copy_files(self) -> TemporaryDirectory[str]:
        """Copies the files to the first temporary folder with enough space. Raises `OSError` if there is none."""
        candidates = (_temporary_folder(), "/dev/shm", "/run/shm")
        failure = OSError("there is no writable folder for temporary files")
        for parent in (folder for folder in candidates if folder and os.access(folder, os.W_OK)):
            folder = TemporaryDirectory(prefix="mulligan-", dir=parent, ignore_cleanup_errors=True)
            try:
                for file in self._files():
                    shutil.copyfile(file, Path(folder.name, file.name))
                return folder
            except OSError as error:
                folder.cleanup()
                failure = error
        raise failure

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("%s: %s", self._path, message)


def in_place(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Runs `work`, which only removes rows, without the write-ahead log, and makes the file smaller.

    The journal that undoes a failure is kept in memory, so a kill in the meantime could damage the file. No other
    process may have the file open. Raises `sqlite3.Error`.
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
        with db:  # commits, or rolls back
            result = work(db)
        db.execute("VACUUM")
        return result
    finally:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.close()


class _OutdatedFile(sqlite3.OperationalError):
    """The file is of an older version."""


def _check_version(db: sqlite3.Connection) -> None:
    if version_of(db)[0] < len(MIGRATIONS):
        raise _OutdatedFile("the file has an older version")


def _connect(name: str, prepare: Callable[[sqlite3.Connection], None]) -> sqlite3.Connection:
    db = sqlite3.connect(name, isolation_level=None, uri=name.startswith("file:"))
    try:
        db.execute("PRAGMA temp_store = MEMORY")
        prepare(db)
    except BaseException:
        db.close()
        raise
    return db


def _temporary_folder() -> str | None:
    try:
        return tempfile.gettempdir()
    except OSError:
        return None
