"""Explains errors of SQLite on the store's file: what happened, and what to do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from mulligan.core.errors import StoreError
from mulligan.store.sqlite.schema import missing_table

MIN_FREE_BYTES = 1 << 16
"""With less free space the disk counts as full: SQLite's index of the log alone takes half of it."""

_WRITE_ERRORS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_ELSEWHERE = "set MULLIGAN_HOME to another folder"


class NoFolder(StoreError):
    """The folder of the file cannot be created, because nothing may be written there."""


class DiskFull(StoreError):
    """The disk is full."""


def write_refused(error: Exception) -> bool:
    """Whether SQLite failed because it could not write, or found no file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _WRITE_ERRORS


def disk_problem(path: Path) -> str:
    """Why the disk of this file cannot be written: "full", "read-only", or "" if it can."""
    # os.path.exists returns False where Path.exists raises, such as in a folder that may not be searched.
    existing = next((parent for parent in (path, *path.parents) if os.path.exists(parent)), None)
    if existing is None or not hasattr(os, "statvfs"):
        return ""
    try:
        disk = os.statvfs(existing)
    except OSError:
        return ""
    if disk.f_flag & os.ST_RDONLY:
        return "read-only"
    return "full" if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES else ""


def explained(error: sqlite3.Error | UnicodeError, path: Path) -> StoreError:
    """Converts SQLite's error to one that says what happened to the file, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    messages = {
        sqlite3.SQLITE_NOTADB: f"{path} is not a Mulligan database (nor any of SQLite's). Move it, or {_ELSEWHERE}.",
        sqlite3.SQLITE_CORRUPT: f"{path} is damaged: {error}. Restore it from a copy, or {_ELSEWHERE}.",
        sqlite3.SQLITE_READONLY: f"{path} cannot be written: it, its folder or its disk is read-only.",
        sqlite3.SQLITE_CANTOPEN: f"{path} cannot be opened: check that it is a file, and that you may read its folder.",
        sqlite3.SQLITE_IOERR: f"{path}: the disk failed to read or write ({error}). It may be full or out of reach.",
        sqlite3.SQLITE_BUSY: f"{path} is locked by another process that has been writing for too long. Try again.",
    }
    if missing := missing_table(error):
        return StoreError(f"{path}: the table {missing} is missing. To create it again: mulligan memory verify --mend")
    disk = disk_problem(path) if write_refused(error) else ""
    if code == sqlite3.SQLITE_FULL or disk == "full":
        return DiskFull(f"{path} cannot grow: the disk is full. Free some space; what was recorded is safe.")
    if disk == "read-only":
        return StoreError(f"{path} cannot be written: its disk is read-only. Reading works; to write, {_ELSEWHERE}.")
    return StoreError(messages.get(code, f"{path}: {error}"))
