"""Have an SQLite file keep a write-ahead log."""

from __future__ import annotations

import sqlite3
import time


def keep_log(db: sqlite3.Connection, wait: float = 5.0) -> str:
    """Turn the log on, and return the file's journal mode: "wal", unless its file system cannot hold one.

    SQLite does not wait by itself while another process turns it on for the same file.

    Args:
        wait: Seconds for which the file may be locked.

    Raises:
        sqlite3.OperationalError: It is locked for longer, or cannot be written.
    """
    until = time.monotonic() + wait
    while True:
        try:
            return str(db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
        time.sleep(0.01)
