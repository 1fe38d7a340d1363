"""One SQLite file, spoken to from async code: one writer thread, a few reader threads, no SQL of its own.

Each piece of work is one transaction in one call, so none is ever open across an await. Work is a function of a
connection; the file is opened, and brought up to date, by the first that comes. Write-ahead logging lets readers
and one writer go on at once, in this process and in others; other writers wait up to `busy_seconds`.

A file that is deleted or replaced keeps taking writes from those who have it open, and nobody finds them again. So
after each transaction the path is compared with the file that was opened: design/027.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from mulligan.core.errors import RecordLost, StoreError
from mulligan.store.leases import Watch
from mulligan.store.sqlite.full_disk import Snapshots, barred, in_place, trouble
from mulligan.store.sqlite.schema import migrate, missing_table, reading_on

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]
Synchronous: TypeAlias = Literal["normal", "full"]
Identity: TypeAlias = tuple[int, int]
"""Device and inode of a file."""

IDLE = 0.2
"""Seconds without a write after which the log is synced to the disk and folded into the file."""

READERS = 2

WAIT_AT_ONCE = 0.25
"""Seconds that SQLite waits for a lock by itself, before we look how long that has been going on."""

SAY_AFTER = 2.0
"""Seconds of waiting for another process's lock after which that is said."""

log = logging.getLogger("mulligan")

_ELSEWHERE = "name another folder in MULLIGAN_HOME"


class Database:
    """Raises `StoreError` for whatever SQLite or the file system will not do, saying what and what to try; once the
    file was deleted or replaced, `RecordLost` for everything.

    busy_seconds: how long a lock that another process holds is waited for, in all. clock: counts the seconds of all
    that is waited for.
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
        self._file = _OpenFile(self.path)
        self._writer = Lane(self, "BEGIN IMMEDIATE", 1, Patience(self.path, self._busy_seconds, self._clock))
        self._readers = Lane(self, "BEGIN", READERS, Patience(self.path, self._busy_seconds, self._clock))

    async def write(self, work: Work[T], *, under_way: bool = False) -> T:
        """The result of `work`, committed. It is finished, or refused, even when the caller is cancelled meanwhile.

        under_way: the work belongs to something longer that should come to its end although the file is gone; one
        of its later writes, without this, raises `RecordLost`.
        """
        try:
            return await self._writer.do(work, under_way=under_way)
        except asyncio.CancelledError:
            await self._writer.caught_up()
            raise

    async def read(self, work: Work[T]) -> T:
        """The result of `work`, which sees the file as of one moment. Nothing need be writable."""
        return await self._readers.do(lambda db: reading_on(db, self.path, work))

    async def remove(self, work: Work[T]) -> T:
        """As `write` and `fold`, for work that only removes. On a disk that is full it is done, too, and makes the file
        smaller: there nobody else may have the file open, and other work is refused meanwhile.
        """
        try:
            result = await self.write(work)
        except DiskFull:
            await self.close()
            try:
                return await asyncio.to_thread(self._in_place, work)
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
        """Folds the log into the file and empties it, so that nothing deleted is left there, unless a reader is in it
        for longer than a second: then the next to fold it does so.
        """
        await self._writer.do(_emptied, whole=False)

    async def close(self) -> None:
        """Everything asked for before is finished first. The last one to close folds the log into the file."""
        await self._readers.close()
        await self._writer.close()
        self._snapshots.close()

    def snapshot(self) -> sqlite3.Connection:
        """A connection that writes nothing, to the file as it is now. For one piece of work."""
        db = self._snapshots.connect()
        db.text_factory = lenient
        return db

    def connect(self, patience: Patience) -> sqlite3.Connection:
        """A connection to the file as it is now, brought up to date."""
        self.check()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            unwritable = error.errno in (errno.EROFS, errno.ENOSPC, errno.EACCES, errno.EPERM)
            raise (NoFolder if unwritable else StoreError)(
                f"The store's folder {self.path.parent} cannot be made: {error.strerror or error}. "
                "Name another in MULLIGAN_HOME."
            ) from error
        at_once = min(WAIT_AT_ONCE, self._busy_seconds)
        db = sqlite3.connect(self.path, timeout=at_once, isolation_level=None)
        db.text_factory = lenient
        try:
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA secure_delete = ON")
            # SQLite itself does not wait when a file is switched to write-ahead logging
            patience.through(lambda: migrate(db, self.path), pause=0.01)
            self._file.opened()
        except BaseException:
            db.close()
            raise
        return db

    def check(self) -> None:
        """Raises `RecordLost` when the file is no longer where it was opened."""
        self._file.check()

    def settled(self, db: sqlite3.Connection, *, wrote: bool) -> None:
        """After each transaction: `check`, also for what SQLite keeps beside the file."""
        self.check()
        if wrote and self._file.log_gone() and not (_folded(db) and self._file.log_free()):
            self._file.lose("the log beside it (-wal) was deleted or replaced while it was in use")


class NoFolder(StoreError):
    """The folder that the file should be in cannot be made, as nothing may be written there."""


class DiskFull(StoreError):
    """Nothing can be written, as no space is left."""


def explained(error: sqlite3.Error | UnicodeError, path: Path) -> StoreError:
    """What SQLite's error means for the person whose file this is."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = {
        sqlite3.SQLITE_NOTADB: f"{path} is not a Mulligan database (nor any of SQLite's). Move it, or {_ELSEWHERE}.",
        sqlite3.SQLITE_CORRUPT: f"{path} is damaged: {error}. Restore it from a copy, or {_ELSEWHERE}.",
        sqlite3.SQLITE_READONLY: f"{path} cannot be written: it, its folder or its disk is read-only.",
        sqlite3.SQLITE_CANTOPEN: f"{path} cannot be opened: see that it is a file, and that you may read its folder.",
        sqlite3.SQLITE_IOERR: f"{path}: the disk failed to read or write ({error}). It may be full or out of reach.",
        sqlite3.SQLITE_BUSY: f"{path} is locked by another process that has been writing for too long. Try again.",
    }
    if missing := missing_table(error):
        return StoreError(f"{path}: the table {missing} is gone. To make it again: mulligan memory verify --mend")
    disk = trouble(path) if barred(error) else ""
    if code == sqlite3.SQLITE_FULL or disk == "full":
        return DiskFull(f"{path} cannot grow: the disk is full. Free some space; what was recorded is safe.")
    if disk == "read-only":
        return StoreError(f"{path} cannot be written: its disk is read-only. Reading works; to write, {_ELSEWHERE}.")
    return StoreError(said.get(code, f"{path}: {error}"))


@dataclass(frozen=True)
class _Job:
    """`work` None: only tell when its turn has come. `whole`: in one transaction. `under_way`: see `Database.write`.
    `last`: close up and end."""

    work: Work[Any] | None
    whole: bool
    under_way: bool
    last: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]

    def settle(self, result: Any, error: BaseException | None) -> None:
        def tell() -> None:
            if self.done.done():
                return
            if error is not None:
                self.done.set_exception(error)
            else:
                self.done.set_result(result)

        try:
            self.loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop was closed before the answer came: nobody is left to hear it
            return


class Lane:
    """Threads that take work from one queue, each with a connection of its own. They start with the first work."""

    def __init__(self, database: Database, begin: str, threads: int, patience: Patience) -> None:
        self._database = database
        self._path = database.path
        self._begin = begin
        self._threads = threads
        self._patience = patience
        self._running = 0
        self._closed = False
        self._starting = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()

    async def do(self, work: Work[T], *, whole: bool = True, under_way: bool = False) -> T:
        if self._closed:
            raise StoreError(f"{self._path} was closed: open the store anew.")
        if not self._running:
            self._start()
        return await self._hand_in(work, whole=whole, under_way=under_way)

    async def caught_up(self) -> None:
        """Until what was asked for before is settled, in a lane of one thread."""
        if not self._closed:
            await self._hand_in(None)

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(self._hand_in(None, last=True) for _ in range(self._running)))
        self._running = 0

    async def _hand_in(
        self, work: Work[Any] | None, *, whole: bool = True, under_way: bool = False, last: bool = False
    ) -> Any:
        loop = asyncio.get_running_loop()
        job = _Job(work, whole, under_way, last, loop, loop.create_future())
        self._jobs.put(job)
        return await job.done

    def _start(self) -> None:
        with self._starting:
            while self._running < self._threads:
                threading.Thread(target=self._run, name="mulligan-store", daemon=True).start()
                self._running += 1

    def _run(self) -> None:
        db: sqlite3.Connection | None = None
        unsynced = False
        while True:
            try:
                job = self._jobs.get(timeout=IDLE if unsynced else None)
            except queue.Empty:
                unsynced = False
                if db:
                    _checkpoint(db)
                continue
            try:
                if job.last and db:
                    db.close()
                result = None
                if job.work:
                    try:
                        db = db or self._database.connect(self._patience)
                        result = self._transact(db, job.work, job.under_way) if job.whole else job.work(db)
                    except (sqlite3.Error, NoFolder) as error:
                        if self._begin != "BEGIN" or not (isinstance(error, NoFolder) or barred(error)):
                            raise
                        with closing(self._database.snapshot()) as still:
                            result = self._once(still, job.work)
                    unsynced = self._begin == "BEGIN IMMEDIATE"
            except (sqlite3.Error, UnicodeError) as error:
                job.settle(None, explained(error, self._path))
            except BaseException as error:  # handed to whoever asked: this thread has others to serve
                job.settle(None, error)
            else:
                job.settle(result, None)
            if job.last:
                return

    def _transact(self, db: sqlite3.Connection, work: Work[T], under_way: bool) -> T:
        if not under_way:
            self._database.check()
        result = self._patience.through(lambda: self._once(db, work))
        try:
            self._database.settled(db, wrote=self._begin == "BEGIN IMMEDIATE")
        except RecordLost:
            if not under_way:
                raise
        return result

    def _once(self, db: sqlite3.Connection, work: Work[T]) -> T:
        db.execute(self._begin)
        try:
            result = work(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return result


class _OpenFile:
    """Which file the connections have open, and whether its path still leads there. Once it did not, it is lost."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._index = f"{path}-shm"
        self._known: tuple[Identity | None, Identity | None, Identity | None] | None = None
        self._lost = ""
        self._opening = threading.Lock()

    def opened(self) -> None:
        """A connection has it open. The first one decides which file it is."""
        with self._opening:
            if self._known is None:
                self._known = (_identity(self._path), _identity(self._log), _identity(self._index))

    def check(self) -> None:
        """Raises `RecordLost`; nothing before the first connection."""
        if self._known is None:
            return
        now = None if self._lost else _identity(self._path)
        if self._lost or now != self._known[0]:
            self.lose(f"it was {'replaced' if now else 'deleted'} while it was in use")

    def lose(self, why: str) -> None:
        self._lost = self._lost or why
        raise RecordLost(
            f"{self._path}: {self._lost}, so what was stored there since this process opened it may be lost. Put the "
            "file back if you have it, and start again whatever uses it."
        )

    def log_gone(self) -> bool:
        """Whether SQLite's log or its index are not those that were opened: nobody else would find what is in them."""
        return self._known is not None and (_identity(self._log), _identity(self._index)) != self._known[1:]

    def log_free(self) -> bool:
        """Whether no other process has begun a log of its own meanwhile."""
        known = self._known or (None, None, None)
        return _identity(self._log) in (None, known[1]) and _identity(self._index) in (None, known[2])


class Patience:
    """Waits for other processes' locks, and says so. What comes after a wait that was too long is not waited for
    again, until the lock was had once or nobody asked for as long."""

    def __init__(self, path: Path, seconds: float, clock: Callable[[], float]) -> None:
        self._path, self._seconds, self._clock = path, seconds, clock
        self._since: float | None = None
        self._last = 0.0
        self._said = False

    def through(self, do: Callable[[], T], *, pause: float = 0.0) -> T:
        """The result of `do`, tried again while the file is busy. pause: seconds between two tries."""
        began = self._clock()
        while True:
            try:
                result = do()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or not self._go_on(began):
                    raise
                time.sleep(pause)
            else:
                self._since, self._said = None, False
                return result

    def _go_on(self, began: float) -> bool:
        now = self._clock()
        if self._since is None or began - self._last > self._seconds:
            self._since, self._said = began, False
        self._last = now
        waited = now - self._since
        if not self._said and waited >= min(SAY_AFTER, self._seconds / 2):
            self._said = True
            log.warning("waiting for another process that has %s locked (%g s at most)", self._path, self._seconds)
        return waited < self._seconds


def _identity(path: str | Path) -> Identity | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _folded(db: sqlite3.Connection) -> bool:
    """Whether all of the log is in the file itself now."""
    busy, pages, folded = db.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    return not busy and pages == folded


def lenient(text: bytes) -> str:
    """Bytes that are not UTF-8 are noticed where a record is read (`store.reading`), and hide nothing else."""
    return text.decode("utf-8", "replace")


def _checkpoint(db: sqlite3.Connection) -> None:
    """Sync the log to the disk and fold it into the file as far as readers allow; the rest waits for the next time."""
    try:
        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:
        return


def _emptied(db: sqlite3.Connection) -> None:
    patience = db.execute("PRAGMA busy_timeout").fetchone()[0]
    db.execute("PRAGMA busy_timeout = 1000")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        db.execute(f"PRAGMA busy_timeout = {patience}")
