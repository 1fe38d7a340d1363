"""Makes and updates the tables by the numbered scripts of `migrations/`, as their owner, and lets roles serve.

A migration is never changed once released: the next change is the next migration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from mulligan.core.errors import InvalidInput, StoreError
from mulligan.store.sqlite.schema import expands, readable_from

SCHEMA = "mulligan"
"""Where the tables stand in the database."""

OLDEST = 16
"""The oldest PostgreSQL whose SQL this is."""

_FILES = sorted((Path(__file__).parent / "migrations").glob("*.sql"), key=lambda file: int(file.name.partition("_")[0]))
NEWEST = len(_FILES)
EXPANDING = frozenset(number for number, file in enumerate(_FILES, 1) if expands(file))
"""The numbers of the migrations that only add: see `expands`."""


def setup_command(role: str = "") -> str:
    """The command that lets a role serve, for messages."""
    return f"mulligan store setup postgresql://OWNER@HOST/DATABASE{f' --role {role}' if role else ''}"


def setup(address: str, role: str = "", *, agent: str | None = None) -> int:
    """Makes the tables or brings them up to date; the number of migrations that ran. Nothing that is done is repeated.

    Args:
        address: With the role of the owner of the tables, such as that of the database.
        role: One that may serve from now on; made if there is none of this name, without a password.
        agent: The one agent that this role serves; None: any, each transaction by its name.

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
            for (one,) in db.execute("SELECT role FROM servers").fetchall():
                _grant(db, one)
            return ran
    except psycopg.Error as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise StoreError(f"The store cannot be set up: {said}.") from error


def _check_server(db: psycopg.Connection[Any]) -> None:
    if db.info.server_version < OLDEST * 10_000:
        raise StoreError(f"This is PostgreSQL {db.info.server_version // 10_000}: the store needs {OLDEST} or newer.")


def _migrate(db: psycopg.Connection[Any]) -> int:
    db.execute("CREATE SCHEMA IF NOT EXISTS mulligan")
    db.execute("SET LOCAL search_path = mulligan")
    there = db.execute("SELECT to_regclass('mulligan.version')").fetchone()
    version = db.execute("SELECT number FROM version").fetchone() if there and there[0] else None
    done = version[0] if version else 0
    if done > NEWEST:
        raise StoreError(f"The store has version {done}, and this Mulligan needs version {NEWEST}: upgrade Mulligan.")
    for file in _FILES[done:]:
        db.execute(file.read_bytes())
    if not version:
        db.execute("INSERT INTO version (number) VALUES (0)")
    db.execute("UPDATE version SET number = %s, readable_from = %s", (NEWEST, readable_from(NEWEST, EXPANDING)))
    return NEWEST - done


def _let_serve(db: psycopg.Connection[Any], role: str, agent: str | None) -> None:
    found = db.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    if found is None:
        db.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
    elif found[0]:
        raise InvalidInput(f"The role {role} is a superuser or bypasses row-level security: name an ordinary role.")
    owner = db.execute(
        "SELECT pg_has_role(%s, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'mulligan'", (role,)
    )
    if (owns := owner.fetchone()) and owns[0]:
        raise InvalidInput(
            f"The role {role} owns the tables, so agents would not be isolated from each other: name an ordinary role."
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
