"""One SQLite file, spoken to from async code: one writer thread, a few reader threads, no SQL of its own.

Each piece of work is one transaction in one call, so none is ever open across an await. Work is a function of a
connection; the file is opened, and brought up to date, by the first that comes. Write-ahead logging lets readers
and one writer go on at once, in this process and in others; other writers wait up to `busy_seconds`.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from mulligan.core.errors import StoreError
from mulligan.store.schema import migrate

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]
Synchronous: TypeAlias = Literal["normal", "full"]

IDLE = 0.2
"""Seconds without a write after which the log is synced to the disk and folded into the file."""

READERS = 2
_ELSEWHERE = "name another folder in MULLIGAN_HOME"


class Database:
    """Raises `StoreError` for whatever SQLite or the file system will not do, saying what and what to try."""

    def __init__(self, path: Path, *, busy_seconds: float, synchronous: Synchronous) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._synchronous = synchronous
        self._writer = _Lane(self._connect, path, "BEGIN IMMEDIATE", 1)
        self._readers = _Lane(self._connect, path, "BEGIN", READERS)

    async def write(self, work: Work[T]) -> T:
        """The result of `work`, committed. It is finished, or refused, even when the caller is cancelled meanwhile."""
        try:
            return await self._writer.do(work)
        except asyncio.CancelledError:
            await self._writer.caught_up()
            raise

    async def read(self, work: Work[T]) -> T:
        """The result of `work`, which sees the file as of one moment."""
        return await self._readers.do(work)

    async def fold(self) -> None:
        """Folds the log into the file and empties it, so that nothing deleted is left there, unless a reader is in it
        for longer than a second: then the next to fold it does so.
        """
        await self._writer.do(_emptied, whole=False)

    async def close(self) -> None:
        """Everything asked for before is finished first. The last one to close folds the log into the file."""
        await self._readers.close()
        await self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"The store's folder {self.path.parent} cannot be made: {error.strerror or error}. "
                "Name another in MULLIGAN_HOME."
            ) from error
        db = sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None)
        try:
            db.execute(f"PRAGMA synchronous = {self._synchronous}")
            db.execute("PRAGMA secure_delete = ON")
            _patiently(lambda: migrate(db, self.path), self._busy_seconds)
        except BaseException:
            db.close()
            raise
        return db


def explained(error: sqlite3.Error | UnicodeError, path: Path) -> StoreError:
    """What SQLite's error means for the person whose file this is."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = {
        sqlite3.SQLITE_NOTADB: f"{path} is not a Mulligan database (nor any of SQLite's). Move it, or {_ELSEWHERE}.",
        sqlite3.SQLITE_CORRUPT: f"{path} is damaged: {error}. Restore it from a copy, or {_ELSEWHERE}.",
        sqlite3.SQLITE_READONLY: f"{path} cannot be written: it, its folder or its disk is read-only.",
        sqlite3.SQLITE_CANTOPEN: f"{path} cannot be opened: see that it is a file, and that you may read its folder.",
        sqlite3.SQLITE_FULL: f"{path} cannot grow: the disk is full. Free some space; what was recorded is safe.",
        sqlite3.SQLITE_IOERR: f"{path}: the disk failed to read or write ({error}). It may be full or out of reach.",
        sqlite3.SQLITE_BUSY: f"{path} is locked by another process that has been writing for too long. Try again.",
    }
    return StoreError(said.get(code, f"{path}: {error}"))


@dataclass(frozen=True)
class _Job:
    """`work` None: only tell when its turn has come. `whole`: in one transaction. `last`: close up and end."""

    work: Work[Any] | None
    whole: bool
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


class _Lane:
    """Threads that take work from one queue, each with a connection of its own. They start with the first work."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path, begin: str, threads: int) -> None:
        self._connect = connect
        self._path = path
        self._begin = begin
        self._threads = threads
        self._running = 0
        self._closed = False
        self._starting = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()

    async def do(self, work: Work[T], *, whole: bool = True) -> T:
        if self._closed:
            raise StoreError(f"{self._path} was closed: open the store anew.")
        if not self._running:
            self._start()
        return await self._hand_in(work, whole=whole)

    async def caught_up(self) -> None:
        """Until what was asked for before is settled, in a lane of one thread."""
        if not self._closed:
            await self._hand_in(None)

    async def close(self) -> None:
        self._closed = True
        await asyncio.gather(*(self._hand_in(None, last=True) for _ in range(self._running)))
        self._running = 0

    async def _hand_in(self, work: Work[Any] | None, *, whole: bool = True, last: bool = False) -> Any:
        loop = asyncio.get_running_loop()
        job = _Job(work, whole, last, loop, loop.create_future())
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
                    db = db or self._connect()
                    result = self._transact(db, job.work) if job.whole else job.work(db)
                    unsynced = self._begin == "BEGIN IMMEDIATE"
            except (sqlite3.Error, UnicodeError) as error:
                job.settle(None, explained(error, self._path))
            except BaseException as error:  # handed to whoever asked: this thread has others to serve
                job.settle(None, error)
            else:
                job.settle(result, None)
            if job.last:
                return

    def _transact(self, db: sqlite3.Connection, work: Work[T]) -> T:
        db.execute(self._begin)
        try:
            result = work(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return result


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


def _patiently(do: Callable[[], None], seconds: float) -> None:
    """Again while the file is busy: SQLite itself does not wait when a file is switched to write-ahead logging."""
    until = time.monotonic() + seconds
    while True:
        try:
            return do()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
