"""Creates and updates the tables by the numbered scripts of `migrations/`, as their owner, and lets roles serve.

A released migration is never changed: the next change is a new migration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from mulligan.core.errors import InvalidInput, StoreError
from mulligan.store.sqlite.schema import expands, readable_from, scripts

SCHEMA = "mulligan"
"""The schema of the database that holds the tables."""

OLDEST = 16
"""The oldest version of PostgreSQL that the store works with."""

_SCRIPTS = scripts(Path(__file__).parent)
NEWEST = len(_SCRIPTS)
"""The version of a store that is up to date."""
EXPANDING = frozenset(number for number, script in enumerate(_SCRIPTS, 1) if expands(script))
"""The numbers of the migrations that only add: see `expands`."""


def setup_command(role: str = "") -> str:
    """The command that lets a role serve, for messages."""
    return f"mulligan store setup postgresql://OWNER@HOST/DATABASE{f' --role {role}' if role else ''}"


def setup(address: str, role: str = "", *, agent: str | None = None) -> int:
    """Creates the tables or brings them up to date. Returns the number of migrations that ran. It can be repeated.

    Args:
        address: The address of the database, with the role that owns the tables.
        role: A role that may serve from now on. It is created, without a password, if it does not exist.
        agent: The only agent that this role serves. None: any agent; each transaction names its own.

    Raises:
        InvalidInput: The role cannot serve.
        StoreError: PostgreSQL cannot be reached, or refused.
    """
    try:
        with psycopg.connect(address, connect_timeout=10) as db:  # commits at the end, or rolls back
            _check_server(db)
            db.execute("SELECT pg_advisory_xact_lock(%s)", (0x4D554C4C,))
            ran = _migrate(db)
            if role:
                _let_serve(db, role, agent)
            for (server,) in db.execute("SELECT role FROM servers").fetchall():
                _grant(db, server)
            return ran
    except psycopg.Error as error:
        raise StoreError(f"The store cannot be set up: {first_line(error)}.") from error


def first_line(error: Exception) -> str:
    """The first line of a driver's message, without its full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _check_server(db: psycopg.Connection[Any]) -> None:
    if db.info.server_version < OLDEST * 10_000:
        raise StoreError(f"This is PostgreSQL {db.info.server_version // 10_000}: the store needs {OLDEST} or newer.")


def _migrate(db: psycopg.Connection[Any]) -> int:
    db.execute("CREATE SCHEMA IF NOT EXISTS mulligan")
    db.execute("SET LOCAL search_path = mulligan")
    table = db.execute("SELECT to_regclass('mulligan.version')").fetchone()
    row = db.execute("SELECT number FROM version").fetchone() if table and table[0] else None
    version = row[0] if row else 0
    if version > NEWEST:
        raise StoreError(
            f"The store has version {version}, but this version of Mulligan needs version {NEWEST}: upgrade Mulligan."
        )
    for script in _SCRIPTS[version:]:
        db.execute(script.read_bytes())
    if not row:
        db.execute("INSERT INTO version (number) VALUES (0)")
    db.execute("UPDATE version SET number = %s, readable_from = %s", (NEWEST, readable_from(NEWEST, EXPANDING)))
    return NEWEST - version


def _let_serve(db: psycopg.Connection[Any], role: str, agent: str | None) -> None:
    existing = db.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if existing is None:
        db.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    elif existing[0]:
        raise InvalidInput(f"The role {role} is a superuser or bypasses row-level security: specify an ordinary role.")
    owner = db.execute(
        "SELECT pg_has_role(%s, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'mulligan'", (role,)
    )
    if (owns := owner.fetchone()) and owns[0]:
        raise InvalidInput(
            f"The role {role} owns the tables, so agents would not be isolated from each other: specify an "
            "ordinary role."
        )
    db.execute(
        "INSERT INTO servers (role, agent) VALUES (%s, %s) ON CONFLICT (role) DO UPDATE SET agent = excluded.agent",
        (role, agent),
    )


def _grant(db: psycopg.Connection[Any], role: str) -> None:
    name = sql.Identifier(role)
    for grant in (
        "GRANT USAGE ON SCHEMA mulligan TO {}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mulligan TO {}",
        "GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA mulligan TO {}",  # so that a copy keeps its numbers
        "REVOKE INSERT, UPDATE, DELETE ON servers, version FROM {}",
    ):
        db.execute(sql.SQL(grant).format(name))
