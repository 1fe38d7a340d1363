"""Runs transactions on the connections to one SQLite file: in threads, or at once where that needs no wait."""

from __future__ import annotations

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mulligan.core.errors import RecordLost, StoreError
from mulligan.recording.bridge import Portal
from mulligan.store.sqlite.file_errors import NoFolder, explained, write_refused
from mulligan.store.sqlite.lock_wait import LockWait, MustWait
from mulligan.store.sqlite.open_file import OpenFile
from mulligan.store.sqlite.schema import check_readable

if TYPE_CHECKING:
    from mulligan.store.sqlite.database import Database

T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]

IDLE_SECONDS = 0.2
"""Time without a write after which the log is synced to the disk and folded into the file."""
BURST = 200
"""Short writes after which a thread folds the log; each is a few pages long."""
LOG_PAGES = 4000
"""After many long writes, the next commit folds the log once it has this many pages."""


@dataclass(frozen=True, eq=False)
class _LaneJob:
    """Work for a thread.

    Attributes:
        work: None only waits for its turn.
        in_transaction: run the work in a transaction.
        under_way: see `Engine.write`.
        last: close the connections and end the thread.
        loop, done: the caller's event loop, and the future that it waits for.
    """

    work: Work[Any] | None
    in_transaction: bool
    under_way: bool
    last: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]

    def settle(self, result: Any, error: BaseException | None = None) -> None:
        """Ends the caller's wait. Called in the caller's loop."""
        if error is not None and not self.done.done():
            self.done.set_exception(error)
        elif not self.done.done():
            self.done.set_result(result)


class Lane:
    """Connections that work takes in turn.

    Threads, which the first work starts, take their work from one queue. Synchronous code and short work run in the
    caller's thread.
    """

    def __init__(self, database: Database, file: OpenFile, lock_wait: LockWait, *, threads: int, writes: bool) -> None:
        self._database, self._file, self._lock_wait = database, file, lock_wait
        self._threads, self._writes = threads, writes
        self._closed = False
        self._starting = threading.Lock()
        self._set_up()

    def _set_up(self) -> None:
        self._process = os.getpid()
        self._running = 0
        self._jobs: queue.SimpleQueue[_LaneJob | None] = queue.SimpleQueue()
        self._turn = threading.Lock() if self._threads == 1 else threading.Semaphore(self._threads)
        self._idle: list[sqlite3.Connection] = []
        self._unfinished: set[_LaneJob] = set()  # jobs of the threads; short writes must not overtake them
        self._written_at: float | None = None  # of the last write that may not be synced yet
        self._folds = True  # whether the writer's connection folds a long log when it commits
        self._burst = 0  # short writes since the last sync

    async def do(
        self,
        work: Work[Any] | None,
        *,
        in_transaction: bool = True,
        under_way: bool = False,
        last: bool = False,
        short: bool = False,
    ) -> Any:
        """The result of the work. A thread finishes it even if the caller is cancelled in the meantime.

        short: the work takes no longer than handing it to a thread. It runs at once if it need not wait for other work,
        a lock or the disk. (The first write after a sync waits for the disk: SQLite starts a new log.)
        """
        if self._closed and not last:
            raise StoreError(f"{self._database.path} was closed: open the store again.")
        if self._process != os.getpid():  # a forked process has no threads, and must not use inherited connections
            self._set_up()
        if Portal.blocking.get():
            return self._run_here(work, in_transaction, under_way)
        if short and self._idle and (not self._writes or (self._written_at is not None and not self._unfinished)):
            with suppress(MustWait):
                result = self._run_here(work, in_transaction, under_way, waits=False)
                self._burst += self._writes
                if self._burst == BURST:
                    self._jobs.put(None)
                await asyncio.sleep(0)  # lets other tasks run and a cancellation through, as any wait does
                return result
        self._start()
        loop = asyncio.get_running_loop()
        job = _LaneJob(work, in_transaction, under_way, last, loop, loop.create_future())
        self._unfinished.add(job)
        self._jobs.put(job)
        return await job.done

    async def close(self) -> None:
        """Finishes earlier work, ends the threads and closes the connections."""
        self._closed = True
        if self._process == os.getpid():
            await asyncio.gather(*(self.do(None, last=True) for _ in range(self._running)))
            self._running = 0
            self._close_idle()

    def _close_idle(self) -> None:
        with self._turn:
            while self._idle:
                self._idle.pop().close()

    def _start(self) -> None:
        if self._running < self._threads:
            with self._starting:
                while self._running < self._threads:
                    threading.Thread(target=self._run, name="mulligan-store", daemon=True).start()
                    self._running += 1

    def _run_here(self, work: Work[Any] | None, in_transaction: bool, under_way: bool, waits: bool = True) -> Any:
        """Runs the work in the caller's thread. Raises `MustWait` if it would have to wait and may not."""
        try:
            return self._do(work, in_transaction, under_way, waits)
        except (sqlite3.Error, UnicodeError) as error:
            raise self._for_caller(error) from error

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=None if self._written_at is None else IDLE_SECONDS)
            except queue.Empty:
                self._sync()
                continue
            if job is None:
                self._sync()
                continue
            result, failure = None, None
            try:
                result = self._do(job.work, job.in_transaction, job.under_way)
                if job.last:
                    self._close_idle()
            except BaseException as error:  # goes to the caller; this thread also serves others
                failure = self._for_caller(error)
            self._unfinished.discard(job)
            with suppress(RuntimeError):  # the loop was closed in the meantime, so nobody waits
                job.loop.call_soon_threadsafe(job.settle, result, failure)
            if job.last:
                return
            del job, result, failure  # so that this thread keeps none of them alive

    def _for_caller(self, error: BaseException) -> BaseException:
        """The error to raise for the caller. It never raises, because somebody waits for it."""
        try:
            explain = isinstance(error, (sqlite3.Error, UnicodeError))
            return explained(error, self._database.path) if explain else error
        except Exception as other:
            return other

    def _sync(self) -> None:
        """Syncs the log and copies it into the file, as far as readers allow, after a pause or a burst of writes."""
        with self._turn:
            pause = 0.0 if self._written_at is None else time.monotonic() - self._written_at
            if self._idle and (pause >= IDLE_SECONDS or self._burst >= BURST):
                self._written_at, self._burst = None, 0
                with suppress(sqlite3.Error):
                    self._idle[-1].execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _do(self, work: Work[Any] | None, in_transaction: bool, under_way: bool, waits: bool = True) -> Any:
        """Waits for its turn and runs the work. Raises `MustWait` if it would have to wait and may not."""
        if not self._turn.acquire(blocking=waits):
            raise MustWait
        try:
            return None if work is None else self._do_in_turn(work, in_transaction, under_way, waits)
        finally:
            self._turn.release()

    def _do_in_turn(self, work: Work[Any], in_transaction: bool, under_way: bool, waits: bool) -> Any:
        try:
            db = self._connection(waits)
            try:
                return self._transact(db, work, under_way, waits) if in_transaction else work(db)
            finally:
                if db.in_transaction:  # Ctrl-C came just after it began
                    db.rollback()
                self._idle.append(db)
                if self._writes:
                    if self._written_at is None:
                        self._start()
                        self._jobs.put(None)  # wakes a thread, which syncs after a pause
                    self._written_at = time.monotonic()
        except (sqlite3.Error, NoFolder) as error:
            if self._writes or not (isinstance(error, NoFolder) or write_refused(error)):
                raise
            if not waits:  # a snapshot may copy the file
                raise MustWait from None
            with closing(self._database.snapshot()) as db:
                return self._run_transaction(db, work)

    def _connection(self, waits: bool) -> sqlite3.Connection:
        """An idle connection, or a new one. Only work that may wait folds a long log when it commits."""
        with suppress(IndexError):
            db = self._idle.pop()
            if self._folds != waits and self._writes:
                db.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES if waits else 0}")
                self._folds = waits
            return db
        if not waits:
            raise MustWait
        self._folds = True
        return self._database.connect(self._lock_wait)

    def _transact(self, db: sqlite3.Connection, work: Work[T], under_way: bool, waits: bool) -> T:
        if not under_way:
            self._file.check()
        result = self._lock_wait.through(lambda: self._run_transaction(db, work), waits=waits)
        try:
            self._file.check(db if self._writes else None)
        except RecordLost:
            if not under_way:
                raise
        return result

    def _run_transaction(self, db: sqlite3.Connection, work: Work[T]) -> T:
        db.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
        with db:  # commits, or rolls back
            check_readable(db, self._database.path)  # another process may have upgraded the file in the meantime
            return work(db)
