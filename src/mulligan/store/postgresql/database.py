"""Runs transactions on PostgreSQL for async code, in threads that have a connection each.

Work is a function of a connection, as for SQLite (`store.sqlite.engine`), and runs in a thread, so the event loop never
waits. Only this module tells the database the agent of a transaction, and the policies of the database restrict the
transaction to it (design/105). Writes that must not run at the same time, such as two to one bank, take a lock.

A transaction that is lost with its connection, or gives way to another, runs again. If the connection is lost during
the commit, the outcome is unknown, and an error is raised.
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
from mulligan.core.lesson_history import Fault
from mulligan.recording.bridge import Portal
from mulligan.recording.holders import Watch
from mulligan.store.postgresql.dialect import PostgresConnection
from mulligan.store.postgresql.schema import NEWEST, SCHEMA, first_line, setup_command
from mulligan.store.postgresql.verify import verify
from mulligan.store.sqlite.engine import Connection
from mulligan.store.sqlite.schema import described, newer

T = TypeVar("T")

CONNECTIONS = 8
"""Connections of one process. This many transactions run at once; others wait in line."""

TIMEOUT_SECONDS = 30.0
"""The limit for a statement, for waiting for a lock, and for retrying after a lost connection."""

_STORE_LOCK = 0x4D554C4C
"""Every write shares this lock, except a write that concerns more than one agent or episode: it holds it alone."""

_SESSION = (
    f"-c search_path={SCHEMA} -c statement_timeout={TIMEOUT_SECONDS:.0f}s -c idle_in_transaction_session_timeout=60s"
)
_SET_AGENT = "SELECT set_config('mulligan.agent', %s, TRUE), (SELECT readable_from FROM version)"
_VERSION = "SELECT number, coalesce(CAST(to_jsonb(v) ->> 'readable_from' AS integer), number) FROM version v"
"""Stores before version 3 do not have the column `readable_from`."""
_LOCK_SHARED = f", pg_advisory_xact_lock_shared({_STORE_LOCK})"
_LOCK_NAME = f"{_LOCK_SHARED}, pg_advisory_xact_lock(hashtextextended(%s, {_STORE_LOCK}))"
_LOCK_ALL = f", pg_advisory_xact_lock({_STORE_LOCK})"

_ABOUT = (
    "SELECT current_user, current_setting('server_version'), pg_database_size(current_database()),"
    " (SELECT number FROM version), (SELECT readable_from FROM version)"
)
_MINE = "FROM pg_stat_activity WHERE usename = current_user AND datname = current_database()"
_SLOW = (
    f"SELECT extract(epoch FROM now() - query_start), left(query, 80) {_MINE} AND state = 'active'"
    " AND now() - query_start > '1 s' ORDER BY query_start LIMIT 3"
)
"""Queries of this role that have been running for more than a second."""

_CONFLICTS = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
_LOST_CONNECTION = (psycopg.OperationalError, psycopg.InterfaceError)
_TIMEOUTS = (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable)


@dataclass(frozen=True)
class _Begin:
    """How a transaction begins: the first statement, and its values after the agent."""

    sql: str
    values: tuple[str, ...] = ()
    reads: bool = False


class PostgresDatabase:
    """The `Engine` over one PostgreSQL database. Nothing is opened until it is used.

    Args:
        address: `postgresql://role@host/name`, with any other parameters of libpq.
        clock: Measures how long another process's heartbeat has stood still.

    Raises:
        InvalidInput: The address cannot be read.
        StoreError: PostgreSQL cannot be reached, refuses the role, or failed; the message says what to do.
    """

    def __init__(self, address: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        try:
            given = conninfo_to_dict(address)
        except psycopg.ProgrammingError as error:
            raise InvalidInput(f"The store address cannot be parsed: {str(error).strip()}") from error
        self.name = f"postgresql://{given.get('host') or 'localhost'}/{given.get('dbname') or ''}"
        """The address as messages name it, without the password."""
        options = " ".join(filter(None, (str(given.get("options") or ""), _SESSION)))
        more: dict[str, Any] = {"connect_timeout": 10, "application_name": "mulligan", **given, "options": options}
        self._conninfo = make_conninfo("", **more)
        self.watch = Watch(clock)
        self._threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="mulligan-store")
        self._thread = threading.local()  # `db` is the connection of the thread
        self._open: set[psycopg.Connection[Any]] = set()
        self._opening = threading.Lock()
        self._default_scope = "*"  # for transactions without an agent; set when a connection is opened
        self._reached = False  # whether a connection was ever opened
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
            begin = _Begin(_SET_AGENT + _LOCK_ALL)
        else:
            begin = _Begin(_SET_AGENT + _LOCK_NAME, (lock,)) if lock else _Begin(_SET_AGENT + _LOCK_SHARED)
        return await self._do(begin, work, agent)

    async def read(
        self,
        work: Callable[[Connection], T],
        *,
        agent: str | None = None,
        settled: bool = False,
        short: bool = False,
    ) -> T:
        """See `Engine.read`. Writes of one agent are committed in order; a settled read of all agents takes a lock."""
        if settled and agent is None:
            return await self._do(_Begin(_SET_AGENT + _LOCK_ALL), work, agent)
        return await self._do(_Begin(_SET_AGENT, reads=True), work, agent)

    async def remove(self, work: Callable[[Connection], T], *, agent: str | None = None) -> T:
        """Like `write`. PostgreSQL overwrites removed text when it vacuums, and its log when that is reused."""
        return await self.write(work, agent=agent)

    async def revision(self) -> str:
        """The revision of the whole database: rows do not become visible in the order of their numbers."""
        return await self.read(lambda db: db.execute("SELECT CAST(pg_current_snapshot() AS text)").fetchone()[0])

    async def about(self) -> Mapping[str, str]:
        def work(db: Connection) -> Mapping[str, str]:
            role, server, size, *version = db.execute(_ABOUT).fetchone()
            facts = {"store": self.name, "version": described(*version), "server": f"PostgreSQL {server}"}
            scope = self._default_scope
            served = "all agents" if scope == "*" else f"the agent {scope[1:]!r}"
            facts |= {"role": f"{role}, for {served}", "size": f"{size / 1e6:.1f} MB"}
            facts["connections"] = str(db.execute(f"SELECT count(*) {_MINE}").fetchone()[0])
            for number, (seconds, query) in enumerate(db.execute(_SLOW).fetchall(), 1):
                facts[f"slow now {number}"] = f"{seconds:.0f} s, {query}"
            return facts

        return await self.read(work)

    async def knows_all(self) -> bool:
        return await self.read(lambda db: db.execute("SELECT number FROM version").fetchone()[0] <= NEWEST)

    async def numbered(self, table: str, column: str) -> None:
        # the names of table and column are ours, so they can be put into SQL
        top = f"(SELECT coalesce(max({column}), 1) FROM {table})"
        query = f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {top})"
        await self.write(lambda db: db.execute(query).fetchone())

    async def verify(self, mend: bool) -> Sequence[Fault]:
        return await self.read(verify)

    async def close(self) -> None:
        """Closes the connections after earlier work is done."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        for db in self._open:
            db.close()
        self._open.clear()

    async def _do(self, begin: _Begin, work: Callable[[Connection], T], agent: str | None) -> T:
        if self._closed:
            raise StoreError(f"{self.name} was closed: open the store again.")
        if Portal.blocking.get():
            return self._threads.submit(self._run, begin, work, agent).result()
        running = asyncio.get_running_loop().run_in_executor(self._threads, self._run, begin, work, agent)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # marks it as retrieved: nobody waits for it any more
            raise

    # --- in a thread --------------------------------------------------------------------------------------------

    def _run(self, begin: _Begin, work: Callable[[Connection], T], agent: str | None) -> T:
        until, pause = time.monotonic() + TIMEOUT_SECONDS, 0.05
        while True:
            committing = False
            try:
                db = self._connection()
                result = self._begin_and_work(db, begin, work, agent)
                committing = True
                db.execute("COMMIT")
                return result
            except (psycopg.Error, UnicodeError) as error:
                self._end()
                is_connected = getattr(self._thread, "db", None) is not None
                lost = isinstance(error, _LOST_CONNECTION) and not isinstance(error, _TIMEOUTS) and not is_connected
                if committing and lost and not begin.reads:
                    raise StoreError(
                        f"{self.name}: the connection was lost while a write was being committed: {first_line(error)}. "
                        "It may or may not be stored: check before you try again."
                    ) from error
                can_retry = (lost and self._reached) or isinstance(error, _CONFLICTS)
                if not can_retry or time.monotonic() > until:
                    raise explained(error, self.name) from error
                time.sleep(pause)
                pause = min(pause * 2, 1.0)
            except BaseException:
                self._end()
                raise

    def _begin_and_work(
        self, db: psycopg.Connection[Any], begin: _Begin, work: Callable[[Connection], T], agent: str | None
    ) -> T:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if begin.reads else "BEGIN")
        scope = self._default_scope if agent is None else f"={agent}"
        row = db.execute(begin.sql.encode(), (scope, *begin.values)).fetchone()
        if row and row[1] > NEWEST:  # the store was upgraded since this connection was opened
            default_scope(db, self.name)  # raises the error for that
        return work(PostgresConnection(db))

    def _connection(self) -> psycopg.Connection[Any]:
        db: psycopg.Connection[Any] | None = getattr(self._thread, "db", None)
        if db is None:
            db = psycopg.connect(self._conninfo, autocommit=True)
            try:
                self._default_scope = default_scope(db, self.name)
            except BaseException:
                db.close()
                raise
            with self._opening:
                self._open.add(db)
            self._thread.db = db
            self._reached = True
        return db

    def _end(self) -> None:
        """Rolls back. Gives up a connection that cannot."""
        db: psycopg.Connection[Any] | None = getattr(self._thread, "db", None)
        if db is None:
            return
        try:
            db.execute("ROLLBACK")
        except psycopg.Error:
            db.close()
            with self._opening:
                self._open.discard(db)
            self._thread.db = None


_ROLE = (
    "SELECT current_user, r.rolsuper, r.rolbypassrls, to_regnamespace(%(schema)s) IS NOT NULL,"
    " EXISTS (SELECT 1 FROM"
    " (SELECT n.nspowner UNION SELECT c.relowner FROM pg_class c WHERE c.relnamespace = n.oid) o (owner)"
    " WHERE owner IS NOT NULL AND pg_has_role(current_user, owner, 'MEMBER'))"
    " FROM pg_roles r LEFT JOIN pg_namespace n ON n.nspname = %(schema)s WHERE r.rolname = current_user"
)


def default_scope(db: psycopg.Connection[Any], name: str) -> str:
    """The rows that a transaction of this role without an agent may see: "*" for all, or "=AGENT" for a bound role.

    Raises `StoreError` unless this is an ordinary role that may serve, and the store has this version.
    """
    row = db.execute(_ROLE, {"schema": SCHEMA}).fetchone()
    assert row is not None
    role, superuser, bypasses, has_schema, owns = row
    if superuser or bypasses or owns:
        problem = "is a superuser" if superuser else "bypasses row-level security" if bypasses else "owns the tables"
        raise StoreError(
            f"{name}: the role {role} {problem}, so agents would not be isolated from each other. Run the "
            f"server as an ordinary role. To create one: {setup_command('mulligan_server')}"
        )
    if not has_schema:
        raise StoreError(f"{name} has no Mulligan store. To create one: {setup_command(role)}")
    try:
        version = db.execute(_VERSION.encode()).fetchone()
        bound = db.execute("SELECT agent FROM servers").fetchone()
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable):
        version = bound = None
    if version is None or bound is None:
        raise StoreError(
            f"{name}: the role {role} is not allowed to serve this store. To allow it: {setup_command(role)}"
        )
    number, readable = version
    if number < NEWEST:
        raise StoreError(
            f"{name} has version {number}, but this version of Mulligan needs version {NEWEST}. To upgrade it: "
            f"{setup_command()}"
        )
    if readable > NEWEST:
        raise newer(name, number, readable, NEWEST)
    return "*" if bound[0] is None else f"={bound[0]}"


def explained(error: Exception, name: str) -> StoreError:
    """Converts an error of the driver to one that says what happened, and what to do."""
    message = first_line(error)
    if isinstance(error, psycopg.errors.InsufficientPrivilege) and "row-level security" in message:
        return StoreError(f"{name}: this server's role is not allowed to write for this agent: {message}.")
    if isinstance(error, (psycopg.DataError, UnicodeError)):
        return StoreError(f"{name} cannot store this: {message}.")
    if isinstance(error, _TIMEOUTS):
        return StoreError(
            f"{name} took longer than {TIMEOUT_SECONDS:g} s: {message}. Try again, or see: mulligan store status"
        )
    if isinstance(error, psycopg.OperationalError):
        return StoreError(f"{name} cannot be reached: {message}. Check the address, and that PostgreSQL is running.")
    return StoreError(f"{name}: {message}.")
