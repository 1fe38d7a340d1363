"""The protocol of a database inside the worker process, and the error that it raises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from mulligan.core.records import Json

GRACE = 0.25
"""The seconds after its time limit in which a query may still report that it was too slow; then it is killed."""
EXHAUSTED = 77
"""The exit status of a worker that ran out of memory."""
LONGEST = 2_000
"""The characters of an error message that are kept."""


def address_space() -> int | None:
    """The bytes of address space that this process uses; None if the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            found = re.search(r"^VmSize:\s+(\d+)", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


class Trouble(Exception):
    """An error to send to the parent. kind: one of `QueryError`'s, or "gone": the database cannot be reached."""

    def __init__(self, message: str, kind: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line
        self.column = column

    @classmethod
    def clipped(cls, message: str, kind: str, line: int | None, column: int | None) -> Trouble:
        """An error whose long message is cut short."""
        return cls(message if len(message) <= LONGEST else message[:LONGEST] + " ...", kind, line, column)


class Database(Protocol):
    """An open database. `rows` and `schema` raise `Trouble`.

    Attributes:
        files: Whether it opens files or sockets after it is open.
        reserved: The bytes of address space that it has reserved and fills later; they count as its memory.
    """

    files: bool
    reserved: int

    def rows(
        self, query: str, parameters: Mapping[str, Json], seconds: float, rows: int
    ) -> tuple[Sequence[str], Iterator[Sequence[Json]]]:
        """Run a query; return the columns and an iterator over the rows' values."""
        ...

    def schema(self, seconds: float) -> Json:
        """Return the schema as the JSON of a `GraphSchema`."""
        ...

    def settle(self) -> None:
        """Release the last query after its answer was sent. It must not take long."""
        ...
