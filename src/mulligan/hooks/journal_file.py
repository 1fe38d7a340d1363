"""The file of the journal of hooks, and what a person decides in it: pauses, banks, settings and guards."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence

from mulligan.core.home import home_path
from mulligan.core.light import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self, TypeVar

    T = TypeVar("T")

FILE = "hooks.db"
SETTINGS: Mapping[str, tuple[str, float, float]] = {
    "needed": ("2", 1, 100),
    "withhold": ("0", 0, 0.5),
    "days": ("90", 1, 10_000),
    "evidence": ("365", 1, 10_000),
    "why": ("none", 0, 0),
    "tokens": ("50000", 0, 100_000_000),
    "subagents": ("project", 0, 0),
}
"""The settings that a person can change: the default, and the lowest and highest value of numbers."""
OWN = "own"
"""The value of `subagents` that gives each type of sub-agent a bank of its own."""
_PAST_PAUSES, MAX_PAUSES = "pauses", 100
"""The setting that keeps the pauses that have ended, and how many it keeps."""
_GUARDS = "guards"
"""The setting that keeps the guards. They are not in the bank, so that an import can bring lessons, but no guard."""
EVERYWHERE = ""
"""Stands for all folders."""
_LOG_PAGES = 200
"""Pages of the file's log after which a commit empties it. Who opens the file next has to read all of them."""
_VERSION = 3
"""Of the tables: see `journal_tables`."""


class JournalFile:
    """The file of the journal. Close it, or use it as a context manager.

    Args:
        path: of the file; default: `hooks.db` in the user's data folder.
        wait: seconds that a call waits for another process.
    """

    def __init__(self, path: str = "", *, wait: float = 5.0) -> None:
        self.path = path or os.path.join(home_path(), FILE)
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        self._db = sqlite3.connect(self.path, timeout=wait, isolation_level=None)
        try:
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            self._hide()
            if version < _VERSION:
                from mulligan.hooks.journal_tables import bring_up_to_date  # once

                bring_up_to_date(self._db, self.path, _VERSION, wait)
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        except BaseException:
            self._db.close()
            raise

    def _hide(self) -> None:
        """Make the file readable by the user only: it has outputs and names of folders."""
        if os.stat(self.path).st_mode & 0o077:
            for file in (self.path, f"{self.path}-wal", f"{self.path}-shm"):
                if os.path.exists(file):
                    os.chmod(file, 0o600)

    def _write(self, work: Callable[[], T]) -> T:
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:  # commits, or rolls back
            return work()

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what a person decides ----------------------------------------------------------------------------------

    def pause(self, folder: str = EVERYWHERE) -> None:
        """Stop hooks in this folder and below it, or everywhere."""
        path = folder and os.path.realpath(folder)
        self._write(lambda: self._db.execute("INSERT OR IGNORE INTO paused VALUES (?, ?)", (path, time.time())))

    def resume(self, folder: str = EVERYWHERE) -> bool:
        """End a pause; False if there was none for exactly this folder."""
        path = folder and os.path.realpath(folder)

        def end() -> bool:
            row = self._db.execute("DELETE FROM paused WHERE folder = ? RETURNING at", (path,)).fetchone()
            if row:
                ended = [*json.loads(self.setting(_PAST_PAUSES, "[]")), [path, row[0], time.time()]]
                self._set(_PAST_PAUSES, json.dumps(ended[-MAX_PAUSES:]))
            return row is not None

        return self._write(end)

    def pauses(self, folder: str) -> Sequence[tuple[float, float]]:
        """The start and end of past pauses in this folder. Nothing that was said then is learned from."""
        path = os.path.realpath(folder)
        return [
            (start, end) for paused, start, end in json.loads(self.setting(_PAST_PAUSES, "[]")) if _holds(paused, path)
        ]

    def paused(self) -> Sequence[str]:
        """The folders in which hooks do nothing; `EVERYWHERE` comes first."""
        return [row[0] for row in self._db.execute("SELECT folder FROM paused ORDER BY folder")]

    def is_paused(self, folder: str) -> bool:
        return bool(self.pausing(folder))

    def pausing(self, folder: str) -> Sequence[str]:
        """The entries of `paused` that stop hooks in this folder."""
        path = os.path.realpath(folder)
        return [paused for paused in self.paused() if _holds(paused, path)]

    def bank_of(self, project: str) -> str:
        """The agent id of the bank with this project's lessons: the project's id, unless it is bound to another."""
        row = self._db.execute("SELECT bank FROM bound WHERE project = ?", (project,)).fetchone()
        return row[0] if row else project

    def bank_of_subagent(self, bank: str, kind: str) -> str:
        """The agent id of the bank of a sub-agent of this type, in a project with that bank."""
        return f"{bank}#{' '.join(kind.split())}" if kind and self.setting("subagents") == OWN else bank

    def banks_of_subagents(self, bank: str) -> Sequence[str]:
        """The banks that sub-agents have of their own in the project with this one."""
        rows = self._db.execute(
            "SELECT DISTINCT project FROM sessions WHERE substr(project, 1, length(?1)) = ?1 ORDER BY project",
            (f"{bank}#",),
        )
        return [row[0] for row in rows]

    def bind(self, project: str, bank: str) -> None:
        """Let this project use another bank, or its own again."""
        self._write(
            lambda: (
                self._db.execute("DELETE FROM bound WHERE project = ?", (project,))
                if bank == project
                else self._db.execute("INSERT OR REPLACE INTO bound VALUES (?, ?)", (project, bank))
            )
        )

    def setting(self, name: str, default: str = "") -> str:
        """What a person set, else the default in `SETTINGS`, else `default`."""
        row = self._db.execute("SELECT value FROM settings WHERE name = ?", (name,)).fetchone()
        return row[0] if row else SETTINGS.get(name, (default,))[0]

    def set(self, name: str, value: str) -> None:
        self._write(lambda: self._set(name, value))

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def guards(self) -> Mapping[str, str] | None:
        """The patterns of the guards that a person turned on here, by the ids of their lessons.

        A lesson that an earlier version marked has "". None: an earlier version made this file, and its marks were not
        imported yet.
        """
        value = self.setting(_GUARDS)
        return json.loads(value) if value else None

    def guard(self, patterns: Mapping[str, str]) -> None:
        """Turn on guards: a pattern for each lesson."""
        self._write(lambda: self._set(_GUARDS, json.dumps({**(self.guards() or {}), **patterns})))


def _holds(folder: str, path: str) -> bool:
    """Whether the path is this folder, or lies below it."""
    return not folder or path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
