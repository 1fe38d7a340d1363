"""What the code of rows needs of a database: SQLite, or PostgreSQL behind `store.postgresql.dialect` (design/104).

Its SQL is what both understand. What stands in `/*! … */` is a comment for SQLite, and PostgreSQL runs it, such as the
locks of rows, where SQLite has one writer at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from mulligan.core.lessons import Fault
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
    """Values are named (`:n`) or in order (`?`)."""

    def execute(self, sql: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, sql: str, values: Iterable[Any], /) -> Cursor: ...


class Engine(Protocol):
    """Runs each work, a function of a connection, in one transaction. The event loop waits for no disk and no lock.
    Raises `StoreError`.

    agent: whose rows the work may touch, where the engine holds it to that; None: those of all that this store serves.
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
        """The result of `work`, committed. A cancelled caller still waits until it is committed or rolled back.

        Args:
            alone: Names what no other write works on meanwhile, such as one episode; "": nothing. Without it, that is
                all of the agent, or else everything. SQLite has one writer at a time anyway.
            under_way: Do not raise `RecordLost` here: the work is part of a longer task that should end in its own way
                although the record is gone, and a later write of it, without this, raises.
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
            settled: After every write begun before.
            short: See `write`.
        """
        ...

    async def remove(self, work: Callable[[Connection], T], *, agent: str | None = None) -> T:
        """As `write`, for work that only removes: the text goes from where the engine has it, too."""
        ...

    async def revision(self) -> str:
        """A text that differs from an earlier one if anything was recorded meanwhile."""
        ...

    async def about(self) -> Mapping[str, str]:
        """What only this engine knows of itself, such as its version and its size, by name."""
        ...

    async def knows_all(self) -> bool:
        """Whether this program knows all tables and columns: a newer one may have added some."""
        ...

    async def numbered(self, table: str, column: str) -> None:
        """Has the next row of a table get a number above those that rows were stored with."""
        ...

    async def verify(self, mend: bool) -> Sequence[Fault]:
        """The faults of the whole store."""
        ...

    async def close(self) -> None: ...
