"""Runs transactions on one SQLite file: for async code on one writer thread and a few reader threads, or at once where
the work is short and waits for nothing (design/161).

Work is a function of a connection, and runs as one transaction in one call, so no transaction is open across an await.
The first work opens the file and brings it up to date. Write-ahead logging lets readers and one writer work at the
same time, in this process and in others; other writers wait up to `busy_seconds`.

A file that is deleted or replaced still accepts writes from processes that have it open, and nobody can read them
again. So after each transaction the path is compared with the file that was opened: design/027.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import queue
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from mulligan.core import trusted
from mulligan.core.errors import RecordLost, StoreError
from mulligan.core.lessons import Fault
from mulligan.recording.bridge import blocking
from mulligan.recording.holders import Watch
from mulligan.store.sqlite.lock_wait import LockWait, MustWait
from mulligan.store.sqlite.schema import (
    MIGRATIONS,
    check_readable,
    described,
    migrate,
    missing,
    missing_table,
    read_with_missing_tables,
    version_of,
)

LEAST = 1 << 16
"""Bytes that must be free, or the disk counts as full: SQLite's index of the log alone takes half of it."""

log = logging.getLogger("mulligan")

_CODES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]
Synchronous: TypeAlias = Literal["normal", "full"]
Identity: TypeAlias = tuple[int, int]
"""Device and inode of a file."""

IDLE = 0.2
"""Seconds without a write after which the log is synced to the disk and folded into the file."""

LENIENT = partial(str, encoding="utf-8", errors="replace")
"""Decodes bytes that are not UTF-8, too: `rows.json_of` reports them, and other columns stay readable."""

READERS = 2
BURST = 200
"""Short writes after which a thread folds the log; they are of a few pages each."""
LOG_PAGES = 4000
"""Pages of the log after which the next commit folds it by itself: those of many long writes."""
_REVISION = (
    "SELECT (SELECT max(n) FROM episodes), (SELECT max(rowid) FROM events), (SELECT max(n) FROM steps),"
    " (SELECT max(step) FROM results), (SELECT max(n) FROM bench_runs), (SELECT max(rowid) FROM bench_cases),"
    " (SELECT count(*) FROM leases WHERE owner <> '')"
)
_ELSEWHERE = "name another folder in MULLIGAN_HOME"


def write_refused(error: Exception) -> bool:
    """Whether SQLite failed because it could not write, or found no file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _CODES


def disk_problem(path: Path) -> str:
    """What keeps the disk of this file from being written: "full", "read-only", or ""."""
    # os.path.exists is False where Path.exists raises, as below a folder that may not be searched.
    there = next((folder for folder in (path, *path.parents) if os.path.exists(folder)), None)
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
        if not os.path.exists(self._path):
            self._warn("it does not exist, and cannot be created here")
            return _ready(":memory:", lambda db: migrate(db, self._path))
        if os.path.exists(f"{self._path}-shm"):  # another process holds it open
            with suppress(sqlite3.Error):
                return self._opened("mode=ro")
        if not os.path.exists(self._log) or not self._log.stat().st_size:
            with suppress(_OutdatedFile):
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
                    self._warn(f"it cannot be copied ({error.strerror or error}), so the newest data may be missing")
                    return self._opened("immutable=1")
            folder = self._copied[1].name
        return _ready(str(Path(folder, self._path.name)), lambda db: migrate(db, self._path))

    def _files(self) -> list[Path]:
        return [file for file in (self._path, self._log) if os.path.isfile(file)]  # a device may have no end

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
        raise OSError("there is no writable folder for temporary files")

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
        with db:  # commits, or rolls back
            result = work(db)
        db.execute("VACUUM")
        return result
    finally:
        db.execute("PRAGMA journal_mode = WAL").fetchone()
        db.close()


class _OutdatedFile(sqlite3.OperationalError):
    """The file is of an older version."""


def _check(db: sqlite3.Connection) -> None:
    if version_of(db)[0] < len(MIGRATIONS):
        raise _OutdatedFile("the file has an older version")


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


class Database:
    """One file, its threads and its connections.

    Args:
        path: Of the file; missing folders are made.
        busy_seconds: How long, in all, to wait for a lock that another process holds.
        synchronous: SQLite's setting of this name.
        clock: Counts all seconds of waiting.

    Raises:
        StoreError: SQLite or the file system failed; the message says what to try.
        RecordLost: The file was deleted or replaced since it was opened; then everything raises this.
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
        wait = self.path, self._busy_seconds, self._clock
        self._writer = Lane(self, self._file, "BEGIN IMMEDIATE", 1, LockWait(*wait))
        self._readers = Lane(self, self._file, "BEGIN", READERS, LockWait(*wait))

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
            with suppress(StoreError):  # it was closed, and so has done its work
                await self._writer.do(None)
            raise

    async def read(self, work: Work[T], *, agent: str | None = None, settled: bool = False, short: bool = False) -> T:
        """The result of `work`, which sees the file as of one moment. Works on a read-only disk, too."""
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
        """SQLite does this by itself."""

    async def verify(self, mend: bool) -> Sequence[Fault]:
        from mulligan.store.sqlite.verify import Damaged, verify

        do = self.write if mend else self.read
        try:
            return await do(lambda db: verify(db, mend))
        except Damaged as damaged:
            return damaged.findings

    async def remove(self, work: Work[T], *, agent: str | None = None) -> T:
        """`write`, then `fold`, for work that only removes. Works on a full disk, too, and makes the file smaller: then
        no other process may have the file open, and other work is refused meanwhile.
        """

        def removing(db: sqlite3.Connection) -> T:
            if any(one.kind == "table" for one in missing(db)):
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
        """Copies the log into the file and empties it, so that deleted text does not remain there. If a reader holds it
        for longer than a second, the next call that folds empties it.
        """
        await self._writer.do(_empty_log, whole=False)

    async def close(self) -> None:
        """Finishes earlier work first. The last process to close copies the log into the file."""
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
                f"The store's folder {self.path.parent} cannot be created: {error.strerror or error}. "
                "Name another in MULLIGAN_HOME."
            ) from error
        with suppress(OSError):  # a new file is for its user alone: it holds what people say; SQLite says what is wrong
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
            db.execute("PRAGMA busy_timeout = 0")  # from here on, `LockWait` waits
            self._file.opened()
        except BaseException:
            db.close()
            raise
        return db


class NoFolder(StoreError):
    """The folder of the file cannot be made: nothing may be written there."""


class DiskFull(StoreError):
    """The disk is full."""


def explained(error: sqlite3.Error | UnicodeError, path: Path) -> StoreError:
    """SQLite's error as one that says what happened to the file and what to do."""
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


def _failure(error: BaseException, path: Path) -> BaseException:
    """What the caller is to raise. It raises nothing itself, as somebody waits for it."""
    try:
        return explained(error, path) if isinstance(error, (sqlite3.Error, UnicodeError)) else error
    except Exception as other:
        return other


@dataclass(frozen=True, eq=False)
class _WriteJob:
    """Work for a thread.

    work: None only waits for its turn. whole: run it in one transaction. under_way: see `Database.write`. last: close
    the connection and end the thread.
    """

    work: Work[Any] | None
    whole: bool
    under_way: bool
    last: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]

    def settle(self, result: Any, error: BaseException | None = None) -> None:
        """Ends the wait of the caller; called in its loop."""
        if error is not None and not self.done.done():
            self.done.set_exception(error)
        elif not self.done.done():
            self.done.set_result(result)


class Lane:
    """Connections that are used in turn: by threads that take work from one queue, which the first work starts, and by
    synchronous code and short work, which are done where they are asked for."""

    def __init__(self, database: Database, file: _OpenFile, begin: str, threads: int, lock_wait: LockWait) -> None:
        self._database, self._file = database, file
        self._path = database.path
        self._begin = begin
        self._threads = threads
        self._lock_wait = lock_wait
        self._closed = False
        self._starting = threading.Lock()
        self._set_up()

    def _set_up(self) -> None:
        self._process = os.getpid()
        self._running = 0
        self._jobs: queue.SimpleQueue[_WriteJob | None] = queue.SimpleQueue()
        self._room = threading.Lock() if self._threads == 1 else threading.Semaphore(self._threads)
        self._idle: list[sqlite3.Connection] = []
        self._handed: set[_WriteJob] = set()  # to the threads, and not done yet: short writes do not overtake them
        self._wrote: float | None = None  # when something was written that may not be synced yet
        self._folds = True  # whether the writer's connection folds a long log as it commits
        self._burst = 0  # short writes since the last sync

    async def do(
        self,
        work: Work[Any] | None,
        *,
        whole: bool = True,
        under_way: bool = False,
        last: bool = False,
        short: bool = False,
    ) -> Any:
        """The result of the work, once it is done; a thread does it even if the caller is cancelled meanwhile.

        short: Work that takes no longer than handing it to a thread. Where it need not wait, for another work, a
        lock or the disk, it is done at once. The first write after a sync waits for the disk, as SQLite begins the log
        anew.
        """
        if self._closed and not last:
            raise StoreError(f"{self._path} was closed: open the store again.")
        if self._process != os.getpid():  # a forked process has neither the threads nor the right to the connections
            self._set_up()
        if blocking.get():
            return self._done_here(work, whole, under_way)
        reads = self._begin == "BEGIN"
        if short and self._idle and (reads or (self._wrote is not None and not self._handed)):
            with suppress(MustWait):
                result = self._done_here(work, whole, under_way, waits=False)
                self._burst += not reads
                if self._burst == BURST:
                    self._jobs.put(None)
                await asyncio.sleep(0)  # others have their turn, and a cancellation comes through, as after any wait
                return result
        self._start()
        loop = asyncio.get_running_loop()
        job = _WriteJob(work, whole, under_way, last, loop, loop.create_future())
        self._handed.add(job)
        self._jobs.put(job)
        return await job.done

    async def close(self) -> None:
        self._closed = True
        if self._process == os.getpid():
            await asyncio.gather(*(self.do(None, last=True) for _ in range(self._running)))
            self._running = 0
            self._close_idle()

    def _close_idle(self) -> None:
        with self._room:
            while self._idle:
                self._idle.pop().close()

    def _start(self) -> None:
        if self._running < self._threads:
            with self._starting:
                while self._running < self._threads:
                    threading.Thread(target=self._run, name="mulligan-store", daemon=True).start()
                    self._running += 1

    def _done_here(self, work: Work[Any] | None, whole: bool, under_way: bool, waits: bool = True) -> Any:
        try:
            return self._do(work, whole, under_way, waits)
        except (sqlite3.Error, UnicodeError) as error:
            raise _failure(error, self._path) from error

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=None if self._wrote is None else IDLE)
            except queue.Empty:
                self._sync()
                continue
            if job is None:
                self._sync()
                continue
            result, failed = None, None
            try:
                result = self._do(job.work, job.whole, job.under_way)
                if job.last:
                    self._close_idle()
            except BaseException as error:  # goes to the caller: this thread serves others, too
                failed = _failure(error, self._path)
            self._handed.discard(job)
            with suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits any more
                job.loop.call_soon_threadsafe(job.settle, result, failed)
            if job.last:
                return
            del job, result, failed  # the caller's alone now

    def _sync(self) -> None:
        """Syncs the log, and copies it into the file as far as readers allow, if nothing was written for a while, or
        very often."""
        with self._room:
            since = 0.0 if self._wrote is None else time.monotonic() - self._wrote
            if self._idle and (since >= IDLE or self._burst >= BURST):
                self._wrote, self._burst = None, 0
                with suppress(sqlite3.Error):
                    self._idle[-1].execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _do(self, work: Work[Any] | None, whole: bool, under_way: bool, waits: bool = True) -> Any:
        """The result of the work. Raises `MustWait` where that would take a wait that is not wanted."""
        if not self._room.acquire(blocking=waits):
            raise MustWait
        try:
            return None if work is None else self._done_in_room(work, whole, under_way, waits)
        finally:
            self._room.release()

    def _done_in_room(self, work: Work[Any], whole: bool, under_way: bool, waits: bool) -> Any:
        try:
            db = self._connection(waits)
            try:
                return self._transact(db, work, under_way, waits) if whole else work(db)
            finally:
                if db.in_transaction:  # Ctrl-C came as it began
                    db.rollback()
                self._idle.append(db)
                if self._begin == "BEGIN IMMEDIATE":
                    if self._wrote is None:
                        self._start()
                        self._jobs.put(None)  # a thread is to sync it, once nothing more is written
                    self._wrote = time.monotonic()
        except (sqlite3.Error, NoFolder) as error:
            if self._begin != "BEGIN" or not (isinstance(error, NoFolder) or write_refused(error)):
                raise
            if not waits:  # it may copy the file
                raise MustWait from None
            with closing(self._database.snapshot()) as still:
                return self._once(still, work)

    def _connection(self, waits: bool) -> sqlite3.Connection:
        """An idle connection, or a new one. Only work that may wait folds a long log as it commits."""
        with suppress(IndexError):
            db = self._idle.pop()
            if self._folds != waits and self._begin == "BEGIN IMMEDIATE":
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
        result = self._lock_wait.through(lambda: self._once(db, work), waits=waits)
        try:
            self._file.check(db if self._begin == "BEGIN IMMEDIATE" else None)
        except RecordLost:
            if not under_way:
                raise
        return result

    def _once(self, db: sqlite3.Connection, work: Work[T]) -> T:
        db.execute(self._begin)
        with db:  # commits, or rolls back
            check_readable(db, self._path)  # another process may have brought the file up to date since
            return work(db)


class _OpenFile:
    """The file that the connections have open. It is lost once its path leads to another file or to none."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._log = f"{path}-wal"
        self._index = f"{path}-shm"
        self._known: tuple[Identity | None, Identity | None, Identity | None] | None = None
        self._lost = ""
        self._opening = threading.Lock()

    def opened(self) -> None:
        """Remembers the file when the first connection is open."""
        with self._opening:
            if self._known is None:
                self._known = (_identity(self._path), _identity(self._log), _identity(self._index))

    def check(self, wrote: sqlite3.Connection | None = None) -> None:
        """Raises `RecordLost` if the file is lost, or the log beside it after something was written; does nothing
        before the first connection."""
        if self._known is None:
            return
        now = None if self._lost else _identity(self._path)
        if self._lost or now != self._known[0]:
            self._lose(f"it was {'replaced' if now else 'deleted'} while it was in use")
        # other processes do not see what is in a log of ours that was deleted or replaced, or whose index was
        changed = wrote is not None and (_identity(self._log), _identity(self._index)) != self._known[1:]
        if wrote and changed and not (_fold_all(wrote) and self._log_free(*self._known[1:])):
            self._lose("the log next to it (-wal) was deleted or replaced while it was in use")

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        raise RecordLost(
            f"{self._path}: {self._lost}, so data stored there since this process opened it may be lost. Restore the "
            "file if you have it, and restart the programs that use it."
        )

    def _log_free(self, log: Identity | None, index: Identity | None) -> bool:
        """Whether no other process has made a log of its own meanwhile."""
        return _identity(self._log) in (None, log) and _identity(self._index) in (None, index)


def _identity(path: str | Path) -> Identity | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _fold_all(db: sqlite3.Connection) -> bool:
    """Copies the log into the file; whether all of it is there now."""
    busy, pages, folded = _checkpoint(db, "FULL", 250)
    return not busy and pages == folded


def _empty_log(db: sqlite3.Connection) -> None:
    _checkpoint(db, "TRUNCATE", 1000)


def _checkpoint(db: sqlite3.Connection, mode: str, milliseconds: int) -> tuple[int, int, int]:
    """Copies the log into the file, and waits so long for those who read or write."""
    db.execute(f"PRAGMA busy_timeout = {milliseconds}")
    try:
        return db.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        db.execute("PRAGMA busy_timeout = 0")
