"""Everything in one SQLite file: `sqlite:///mulligan.db`."""

from mulligan.core.errors import InvalidInput
from mulligan.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore", "open_address"]


def open_address(rest: str) -> SqliteStore:
    """The store in the file that `///path` names. Raises `InvalidInput`."""
    if not rest.startswith("///") or not rest[3:]:
        raise InvalidInput(
            f"'sqlite:{rest}' does not specify a file: use sqlite:///mine.db, or sqlite:////tmp/mine.db."
        )
    return SqliteStore(rest[3:])
