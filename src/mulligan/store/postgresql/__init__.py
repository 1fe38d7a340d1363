"""Everything in one PostgreSQL database, for many processes and machines: `postgresql://role@host/name`."""

from mulligan.core.extras import require
from mulligan.store.sqlite.store import SqliteStore


def open_address(rest: str) -> SqliteStore:
    """The store in the database that `//role@host/name` names: the SQLite store's code on another engine.

    Raises:
        InvalidInput: The address cannot be read, or the extra `postgres` is not installed.
    """
    require("A store in PostgreSQL needs psycopg", "psycopg", "postgres")
    from mulligan.store.postgresql.database import PostgresDatabase

    return SqliteStore(PostgresDatabase(f"postgresql:{rest}"))
