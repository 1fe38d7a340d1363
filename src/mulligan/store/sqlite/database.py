"""Runs transactions on one SQLite file: for async code on one writer thread and a few reader threads, or at once if the
work is short and need not wait (design/161).

Work is a function of a connection, and runs as one transaction in one call, so no transaction is open across an await.
The first work opens the file and brings it up to date. Write-ahead logging lets readers and one writer work at the
same time, in this process and in others; other writers wait up to `busy_seconds`.

A file that is deleted or replaced still accepts writes from processes that have it open, and nobody can read them
again. So after each transaction the path is compared with the file that was opened: design/027.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

from mulligan.core import trusted
from mulligan.core.errors import StoreError
from mulligan.core.lesson_history import Fault
from mulligan.recording.holders import Watch
from mulligan.store.sqlite.file_errors import DiskFull, NoFolder, explained
from mulligan.store.sqlite.lanes import LOG_PAGES, Lane, Work
from mulligan.store.sqlite.lock_wait import LockWait
from mulligan.store.sqlite.open_file import OpenFile, empty_log
from mulligan.store.sqlite.schema import (
    MIGRATIONS,
    described,
    migrate,
    missing,
    read_with_missing_tables,
    version_of,
)
from mulligan.store.sqlite.snapshots import Snapshots, in_place

T = TypeVar("T")
Synchronous: TypeAlias = Literal["normal", "full"]

LENIENT = partial(str, encoding="utf-8", errors="replace")
"""Decodes bytes that are not UTF-8 as well: `rows.json_of` reports them, and other columns stay readable."""

READERS = 2
"""Threads that read at the same time."""

_REVISION = (
    "SELECT (SELECT max(n) FROM episodes), (SELECT max(rowid) FROM events), (SELECT max(n) FROM steps),"
    " (SELECT max(step) FROM results), (SELECT max(n) FROM bench_runs), (SELECT max(rowid) FROM bench_cases),"
    " (SELECT count(*) FROM leases WHERE owner <> '')"
)


class Database:
    """One file, its threads and its connections.

    Args:
        path: The path of the file; missing folders are created.
        busy_seconds: How long, in all, to wait for a lock that another process holds.
        synchronous: SQLite's setting of this name.
        clock: Measures the waiting.

    Raises:
        StoreError: SQLite or the file system failed; the message says what to try.
        RecordLost: The file was deleted or replaced since it was opened; then all methods raise this.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_seconds: float = 30.0,
        synchronous: Synchronous = "normal",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._synchronous = synchronous
        self._clock = clock
        self.watch = Watch(clock)
        self._snapshots = Snapshots(path)
        self._open()

    def _open(self) -> None:
        self._open_lanes()

    def _open_lanes(self) -> None:
        self._file = OpenFile(self.path)

        def lane(threads: int, *, writes: bool) -> Lane:
            lock_wait = LockWait(self.path, self._busy_seconds, self._clock)
            return Lane(self, self._file, lock_wait, threads=threads, writes=writes)

        self._writer = lane(1, writes=True)
        self._readers = lane(READERS, writes=False)

    async def write(
        self,
        work: Work[T],
        *,
        agent: str | None = None,
        alone: str | None = None,
        under_way: bool = False,
        short: bool = False,
    ) -> T:
        """See `Engine.write`."""
        try:
            return await self._writer.do(work, under_way=under_way, short=short and self._synchronous == "normal")
        except asyncio.CancelledError:
            with suppress(StoreError):  # the database was closed, which finishes earlier work
                await self._writer.do(None)
            raise

    async def read(self, work: Work[T], *, agent: str | None = None, settled: bool = False, short: bool = False) -> T:
        """The result of `work`, which sees the file as of one moment. Works on a read-only disk as well."""
        return await self._readers.do(lambda db: read_with_missing_tables(db, self.path, work), short=short)

    async def revision(self) -> str:
        return await self.read(lambda db: " ".join(map(str, db.execute(_REVISION).fetchone())))

    async def about(self) -> Mapping[str, str]:
        def work(db: sqlite3.Connection) -> Mapping[str, str]:
            pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
            version = described(*version_of(db))
            return {"store": str(self.path), "version": version, "size": f"{pages * size / 1e6:.1f} MB"}

        return await self.read(work)

    async def knows_all(self) -> bool:
        return await self.read(lambda db: version_of(db)[0] <= len(MIGRATIONS))

    async def numbered(self, table: str, column: str) -> None:
        """Does nothing: SQLite numbers rows above the existing ones."""

    async def verify(self, mend: bool) -> Sequence[Fault]:
        from mulligan.store.sqlite.verify import Damaged, verify

        do = self.write if mend else self.read
        try:
            return await do(lambda db: verify(db, mend))
        except Damaged as damaged:
            return damaged.findings

    async def remove(self, work: Work[T], *, agent: str | None = None) -> T:
        """`write`, then `fold`, for work that only removes rows.

        It also works on a full disk, and makes the file smaller. In that case no other process may have the file open,
        and other work is refused in the meantime.
        """

        def removing(db: sqlite3.Connection) -> T:
            if any(part.kind == "table" for part in missing(db)):
                from mulligan.store.sqlite.verify import verify

                verify(db, mend=True)
            return work(db)

        try:
            result = await self.write(removing)
        except DiskFull:
            await self.close()
            try:
                return await asyncio.to_thread(self._in_place, removing)
            finally:
                self._open()
        await self.fold()
        return result

    def _in_place(self, work: Work[T]) -> T:
        try:
            return in_place(self.path, work)
        except sqlite3.Error as error:
            raise explained(error, self.path) from error

    async def fold(self) -> None:
        """Copies the log into the file and empties it, so that deleted text does not remain there.

        If a reader holds the log for longer than a second, the next fold empties it.
        """
        await self._writer.do(empty_log, in_transaction=False)

    async def close(self) -> None:
        """Closes the file after earlier work is done. The last process to close it copies the log into the file."""
        await self._readers.close()
        await self._writer.close()
        self._snapshots.close()

    def snapshot(self) -> sqlite3.Connection:
        """A connection that only reads the file as it is now, for one piece of work."""
        db = self._snapshots.connect()
        db.text_factory = LENIENT
        return db

    def connect(self, lock_wait: LockWait) -> sqlite3.Connection:
        """A connection to the file as it is now, brought up to date."""
        self._file.check()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            unwritable = error.errno in (errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EPERM)
            raise (NoFolder if unwritable else StoreError)(
                f"The store's folder {self.path.parent} cannot be created: {error.strerror or error}. Set "
                "MULLIGAN_HOME to another folder."
            ) from error
        # A new file is readable only by its user: it holds what people say. If it cannot be created, SQLite says why.
        with suppress(OSError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            trusted.note_store(self.path)
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        db.text_factory = LENIENT
        try:
            db.execute("PRAGMA busy_timeout = 250")
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA secure_delete = ON")
            db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
            lock_wait.through(lambda: migrate(db, self.path))
            db.execute("PRAGMA busy_timeout = 0")  # from here on, `LockWait` does the waiting
            self._file.remember()
        except BaseException:
            db.close()
            raise
        return db
