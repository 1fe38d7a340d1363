"""What the store's functions need of a database: SQLite, or PostgreSQL behind `store.postgresql.dialect` (design/104).

They use SQL that both understand. The parts in `/*! … */` are comments for SQLite, and run on PostgreSQL: such as locks
of rows, which SQLite does not need because it has one writer at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from mulligan.core.lesson_history import Fault
from mulligan.recording.holders import Watch

T = TypeVar("T")


class Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...
    def close(self) -> None: ...


class Connection(Protocol):
    """Placeholders are named (`:n`) or in order (`?`)."""

    def execute(self, sql: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, sql: str, values: Iterable[Any], /) -> Cursor: ...


class Engine(Protocol):
    """Runs work, a function of a connection, in one transaction, without blocking the event loop.

    All methods raise `StoreError`. `agent` is the agent whose rows the work may touch, which PostgreSQL enforces; None:
    all agents that this store serves.
    """

    @property
    def watch(self) -> Watch: ...

    async def write(
        self,
        work: Callable[[Connection], T],
        *,
        agent: str | None = None,
        alone: str | None = None,
        under_way: bool = False,
        short: bool = False,
    ) -> T:
        """Runs and commits `work`, and returns its result. A cancelled caller still waits for the end of the work.

        Args:
            alone: Names what no other write may work on at the same time, such as one episode; "": nothing. None: all
                of the agent's rows, or without an agent, the whole store. (SQLite has one writer at a time anyway.)
            under_way: Do not raise `RecordLost`: the work is part of a longer task, which should finish although the
                record is gone. A later write without this option raises it.
            short: The work takes no longer than handing it to a thread, so SQLite may do it at once.
        """
        ...

    async def read(
        self,
        work: Callable[[Connection], T],
        *,
        agent: str | None = None,
        settled: bool = False,
        short: bool = False,
    ) -> T:
        """The result of `work`, which sees the store as of one moment.

        Args:
            settled: Wait for all writes that have begun before.
            short: See `write`.
        """
        ...

    async def remove(self, work: Callable[[Connection], T], *, agent: str | None = None) -> T:
        """Like `write`, for work that only removes rows: their text is also overwritten on the disk."""
        ...

    async def revision(self) -> str:
        """A text that changes whenever anything is recorded."""
        ...

    async def about(self) -> Mapping[str, str]:
        """Facts about the engine by name, such as its version and its size."""
        ...

    async def knows_all(self) -> bool:
        """Whether this program knows all tables and columns; a newer one may have added some."""
        ...

    async def numbered(self, table: str, column: str) -> None:
        """Makes the next row of a table get a number above those of its rows, after rows were stored with numbers."""
        ...

    async def verify(self, mend: bool) -> Sequence[Fault]:
        """The faults of the whole store."""
        ...

    async def close(self) -> None: ...
