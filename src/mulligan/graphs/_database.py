"""What a database is inside the worker, and how it says that something went wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from mulligan.core.records import Json

GRACE = 0.25
"""Seconds beyond its time-out that a query may take to say that it took too long; then its process is killed."""
EXHAUSTED = 77
"""The status with which a worker ends that got no more memory."""


def address_space() -> int | None:
    """Bytes of this process's; None where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            found = re.search(r"^VmSize:\s+(\d+)", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


class Trouble(Exception):
    """Goes back as an error. kind: one of `QueryError`, or "gone": the database cannot be reached."""

    def __init__(self, message: str, kind: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line
        self.column = column


class Database(Protocol):
    """What a database has to be able to do in here. Both raise `Trouble`.

    files: whether it opens files or sockets once it is open. reserved: bytes of address space that it has taken already
    and that count as its memory, as it fills them later.
    """

    files: bool
    reserved: int

    def rows(
        self, query: str, parameters: Mapping[str, Json], seconds: float, rows: int
    ) -> tuple[Sequence[str], Iterator[Sequence[Json]]]:
        """Columns, and the values of each row, taken one by one as long as they are wanted."""
        ...

    def schema(self, seconds: float) -> Json: ...
    def settle(self) -> None:
        """Lets go of what is left of the last query, after its answer was sent; nobody waits for it long."""
        ...
