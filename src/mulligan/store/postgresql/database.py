"""Runs transactions on PostgreSQL for async code: some threads, each with a connection of its own.

Work is a function of a connection, as for SQLite (`store.sqlite.engine`), and runs in a thread, so the event loop never
waits. Each transaction names its agent here and nowhere else; the policies of the database hold it to that
(design/105). What must not happen at the same time, such as two writes to one bank, waits for a lock of the
transaction. A transaction that was lost with its connection, or gave way to another, runs again; once it was about to
be committed, nobody knows what became of it, and it raises.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.lessons import Fault
from mulligan.recording.bridge import blocking
from mulligan.recording.holders import Watch
from mulligan.store.postgresql.dialect import PostgresConnection
from mulligan.store.postgresql.schema import NEWEST, SCHEMA, setup_command
from mulligan.store.postgresql.verify import verify
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.schema import described, newer

T = TypeVar("T")

CONNECTIONS = 8
"""Of one process: as many transactions run at once, and others wait in line."""

SECONDS = 30.0
"""How long a statement may take, a lock be waited for, and a lost connection be tried again."""

_ALL = 0x4D554C4C
"""The lock that every write shares, and that a write has alone which concerns more than one agent or episode."""

_SESSION = f"-c search_path={SCHEMA} -c statement_timeout={SECONDS:.0f}s -c idle_in_transaction_session_timeout=60s"
_NAMED = "SELECT set_config('mulligan.agent', %s, TRUE), (SELECT readable_from FROM version)"
_VERSION = "SELECT number, coalesce(CAST(to_jsonb(v) ->> 'readable_from' AS integer), number) FROM version v"
"""Stores of before version 3 have no column of this name."""
_SHARED = f", pg_advisory_xact_lock_shared({_ALL})"
_LOCKED = f"{_SHARED}, pg_advisory_xact_lock(hashtextextended(%s, {_ALL}))"
_ALONE = f", pg_advisory_xact_lock({_ALL})"

_ABOUT = (
    "SELECT current_user, current_setting('server_version'), pg_database_size(current_database()),"
    " (SELECT number FROM version), (SELECT readable_from FROM version)"
)
_MINE = "FROM pg_stat_activity WHERE usename = current_user AND datname = current_database()"
_SLOW = (
    f"SELECT extract(epoch FROM now() - query_start), left(query, 80) {_MINE} AND state = 'active'"
    " AND now() - query_start > '1 s' ORDER BY query_start LIMIT 3"
)
"""What this role has been asking for longer than a second."""

_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)
_TOO_LONG = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)


@dataclass(frozen=True)
class _Begin:
    """How a transaction begins."""

    sql: str
    values: tuple[str, ...]
    reads: bool = False


class PostgresDatabase:
    """The `Engine` over one PostgreSQL database. Nothing is opened until it is used.

    Args:
        address: Of the database: `postgresql://role@host/name`, with what else libpq takes.
        clock: Counts the seconds for which another's heartbeat stands still.

    Raises:
        InvalidInput: The address is not one.
        StoreError: PostgreSQL cannot be reached, refuses the role, or failed; the message says what to do.
    """

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            given = conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise InvalidInput(f"The address of the store cannot be read: {str(error).strip()}") from error
        self.name = f"postgresql://{given.get('host') or 'localhost'}/{given.get('dbname') or ''}"
        """The address as messages name it, without the password."""
        options = " ".join(filter(None, (str(given.get("options") or ""), _SESSION)))
        more: dict[str, Any] = {"connect_timeout": 10, "application_name": "mulligan", **given, "options": options}
        self._conninfo = make_conninfo("", **more)
        self.watch = Watch(clock)
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="mulligan-store")
        self._own = threading.local()
        self._open: set[psycopg.Connection[Any]] = set()
        self._opening = threading.Lock()
        self._every = "*"  # once a connection is open: what a transaction asks for that names no agent
        self._reached = False
        self._closed = False

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        agent: str | None = None,
        alone: str | None = None,
        under_way: bool = False,
        short: bool = False,
    ) -> T:
        """See `Engine.write`."""
        lock = f"agent {agent}" if alone is None and agent is not None else alone
        if lock is None:
            begin = _Begin(_NAMED + _ALONE, ())
        else:
            begin = _Begin(_NAMED + _LOCKED, (lock,)) if lock else _Begin(_NAMED + _SHARED, ())
        return await self._do(begin, work, agent)

    async def read(
        self,
        work: Callable[[Connection], T],
        *,
        agent: str | None = None,
        settled: bool = False,
        short: bool = False,
    ) -> T:
        """See `Engine.read`. The writes of one agent are committed in order; those of all only if they are held up."""
        alone = settled and agent is None
        return await self._do(_Begin(_NAMED + _ALONE, ()) if alone else _Begin(_NAMED, (), reads=True), work, agent)

    async def remove(self, work: Callable[[Connection], T], *, agent: str | None = None) -> T:
        """As `write`. PostgreSQL overwrites what was removed when it vacuums, and its log when that comes round."""
        return await self.write(work, agent=agent)

    async def revision(self) -> str:
        """That of everything in the database: numbers that were given are not seen in order."""
        return await self.read(lambda db: db.execute("SELECT CAST(pg_current_snapshot() AS text)").fetchone()[0])

    async def about(self) -> Mapping[str, str]:
        def work(db: Connection) -> Mapping[str, str]:
            role, server, size, *version = db.execute(_ABOUT).fetchone()
            said = {"store": self.name, "version": described(*version), "server": f"PostgreSQL {server}"}
            serves = "all agents" if self._every == "*" else f"the agent {self._every[1:]!r}"
            said |= {"role": f"{role}, for {serves}", "size": f"{size / 1e6:.1f} MB"}
            said["connections"] = str(db.execute(f"SELECT count(*) {_MINE}").fetchone()[0])
            slow = db.execute(_SLOW).fetchall()
            return {**said, **{f"slow now {n}": f"{ms:.0f} s, {text}" for n, (ms, text) in enumerate(slow, 1)}}

        return await self.read(work)

    async def knows_all(self) -> bool:
        return await self.read(lambda db: db.execute("SELECT number FROM version").fetchone()[0] <= NEWEST)

    async def numbered(self, table: str, column: str) -> None:
        """The table and the column are ours, never a user's."""
        top = f"(SELECT coalesce(max({column}), 1) FROM {table})"
        query = f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {top})"
        await self.write(lambda db: db.execute(query).fetchone())

    async def verify(self, mend: bool) -> Sequence[Fault]:
        return await self.read(verify)

    async def close(self) -> None:
        """Finishes earlier work first."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        for db in self._open:
            db.close()
        self._open.clear()

    async def _do(self, begin: _Begin, work: Callable[[Connection], T], agent: str | None) -> T:
        if self._closed:
            raise StoreError(f"{self.name} was closed: open the store again.")
        if blocking.get():
            return self._threads.submit(self._run, begin, work, agent).result()
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._run, begin, work, agent)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # nobody is told of it any more
            raise

    # --- in a thread --------------------------------------------------------------------------------------------

    def _run(self, begin: _Begin, work: Callable[[Connection], T], agent: str | None) -> T:
        until, pause = time.monotonic() + SECONDS, 0.05
        while True:
            committing = False
            try:
                db = self._connection()
                result = self._begun(db, begin, work, agent)
                committing = True
                db.execute("COMMIT")
                return result
            except (psycopg.Error, UnicodeError) as error:
                self._end()
                lost = isinstance(error, _LOST) and not isinstance(error, _TOO_LONG) and not self._usable()
                if committing and lost and not begin.reads:
                    raise StoreError(
                        f"{self.name}: the connection was lost while a write was being committed: {_first(error)}. It "
                        "may or may not be stored: check before you try again."
                    ) from error
                if not ((lost and self._reached) or isinstance(error, _AGAIN)) or time.monotonic() > until:
                    raise explained(error, self.name) from error
                time.sleep(pause)
                pause = min(pause * 2, 1.0)
            except BaseException:
                self._end()
                raise

    def _begun(self, db: psycopg.Connection[Any], begin: _Begin, work: Callable[[Connection], T], agent: str | None):
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if begin.reads else "BEGIN")
        values = self._every if agent is None else f"={agent}", *begin.values
        begun = db.execute(begin.sql.encode(), values).fetchone()
        if begun and begun[1] > NEWEST:  # the tables were brought up to date since this connection was opened
            every(db, self.name)
        return work(PostgresConnection(db))

    def _connection(self) -> psycopg.Connection[Any]:
        db: psycopg.Connection[Any] | None = getattr(self._own, "db", None)
        if db is None:
            db = psycopg.connect(self._conninfo, autocommit=True)
            try:
                self._every = every(db, self.name)
            except BaseException:
                db.close()
                raise
            with self._opening:
                self._open.add(db)
            self._own.db = db
            self._reached = True
        return db

    def _usable(self) -> bool:
        return getattr(self._own, "db", None) is not None

    def _end(self) -> None:
        """Rolls back; a connection that cannot do that is given up."""
        db: psycopg.Connection[Any] | None = getattr(self._own, "db", None)
        if db is None:
            return
        try:
            db.execute("ROLLBACK")
        except psycopg.Error:
            db.close()
            with self._opening:
                self._open.discard(db)
            self._own.db = None


_ROLE = (
    "SELECT current_user, r.rolsuper, r.rolbypassrls, to_regnamespace(%(schema)s) IS NOT NULL,"
    " EXISTS (SELECT 1 FROM"
    " (SELECT n.nspowner UNION SELECT c.relowner FROM pg_class c WHERE c.relnamespace = n.oid) o (owner)"
    " WHERE owner IS NOT NULL AND pg_has_role(current_user, owner, 'MEMBER'))"
    " FROM pg_roles r LEFT JOIN pg_namespace n ON n.nspname = %(schema)s WHERE r.rolname = current_user"
)


def every(db: psycopg.Connection[Any], name: str) -> str:
    """What a transaction of this role asks for that names no agent: all, or the agent that the role is bound to.

    Raises `StoreError` unless this is a plain role that may serve, and the tables are of this version.
    """
    found = db.execute(_ROLE, {"schema": SCHEMA}).fetchone()
    assert found is not None
    role, superuser, bypasses, there, owns = found
    if superuser or bypasses or owns:
        what = "is a superuser" if superuser else "bypasses row-level security" if bypasses else "owns the tables"
        raise StoreError(
            f"{name}: the role {role} {what}, so agents would not be isolated from each other. Serve with an "
            f"ordinary role. To create one: {setup_command('mulligan_server')}"
        )
    if not there:
        raise StoreError(f"{name} has no Mulligan store. To create one: {setup_command(role)}")
    try:
        version = db.execute(_VERSION.encode()).fetchone()
        bound = db.execute("SELECT agent FROM servers").fetchone()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        version = bound = None
    if version is None or bound is None:
        raise StoreError(f"{name}: the role {role} may not serve this store. To let it: {setup_command(role)}")
    number, readable = version
    if number < NEWEST:
        raise StoreError(
            f"{name} has version {number}, and this Mulligan needs version {NEWEST}. To upgrade it: {setup_command()}"
        )
    if readable > NEWEST:
        raise newer(name, number, readable, NEWEST)
    return "*" if bound[0] is None else f"={bound[0]}"


def _first(error: Exception) -> str:
    """The first line of the message of a driver, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def explained(error: Exception, name: str) -> StoreError:
    """An error of the driver as one that says what happened and what to do."""
    said = _first(error)
    if isinstance(error, psycopg.errors.InsufficientPrivilege) and "row-level security" in said:
        return StoreError(f"{name}: the role of this server may not write for this agent: {said}.")
    if isinstance(error, (psycopg.DataError, UnicodeError)):
        return StoreError(f"{name} cannot store this: {said}.")
    if isinstance(error, _TOO_LONG):
        return StoreError(f"{name} took longer than {SECONDS:g} s: {said}. Try again; see: mulligan store status")
    if isinstance(error, psycopg.OperationalError):
        return StoreError(f"{name} cannot be reached: {said}. Check that PostgreSQL is running, and the address.")
    return StoreError(f"{name}: {said}.")
