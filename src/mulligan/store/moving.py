"""Copies a store to another of any kind, row by row, and compares them: both keep the same tables (design/106)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mulligan.core.errors import InvalidInput, StoreError
from mulligan.core.protocols import Store
from mulligan.store.sqlite.engine import Connection, Engine
from mulligan.store.sqlite.schema import expected
from mulligan.store.sqlite.store import SqliteStore

BATCH = 500
"""Rows that one transaction copies."""

TABLES = {
    **dict.fromkeys(("agents", "embedders", "episodes"), ("n",)),
    "events": ("episode", "seq"),
    "leases": ("episode",),
    "steps": ("n",),
    "results": ("step",),
    "texts": ("sha256",),
    "files": ("episode", "name"),
    "images": ("sha256",),
    "shown": ("episode", "sha256"),
    "lessons": ("n",),
    "log": ("seq",),
    **dict.fromkeys(("uses", "vectors", "query_vectors"), ("n",)),
    "links": ("a", "b", "embedder"),
    "keys": ("key", "lesson"),
    **dict.fromkeys(("receipts", "work", "payloads"), ("n",)),
    "outcomes": ("receipt", "work"),
    **dict.fromkeys(("accounts", "found_kinds"), ("n",)),
    "worth": ("lesson", "agent"),
    **dict.fromkeys(("arms", "bench_runs"), ("n",)),
    "bench_cases": ("run", "position"),
    "bench_leases": ("run",),
}
"""Each table with the columns that tell its rows apart. A table stands behind those that it refers to."""

_TRUTHS = frozenset({"success", "fact", "pair", "borrowed", "told"})
"""Columns that are numbers in SQLite, and true or false in PostgreSQL."""


@dataclass(frozen=True)
class Moved:
    """What became of a table. copied: rows that were new there. compared: all, which are equal now."""

    table: str
    copied: int
    compared: int


async def move(source: Store, target: Store, done: Callable[[Moved], None] = lambda moved: None) -> Sequence[Moved]:
    """Copies all rows under their numbers, then compares each. A copy that was cut off goes on where it was.

    Nothing may write to either store meanwhile. Vectors, history, receipts, the queue and leases come along.

    Raises:
        InvalidInput: The target holds something that the source does not, or a newer program has added to one of them.
        StoreError: A row could not be stored, or differs afterwards.
    """
    here, there = _engine(source), _engine(target)
    if not (await here.knows_all() and await there.knows_all()):
        raise InvalidInput(
            "A newer Mulligan has extended one of these stores, and this version would not copy all of it: use "
            "the newer one."
        )
    for table in TABLES:
        await _refuse_strangers(here, there, table)
    copied = {table: await _copy(here, there, table) for table in TABLES}
    (generation,) = await here.read(lambda db: db.execute("SELECT generation FROM bank").fetchone())
    await there.write(lambda db: db.execute("UPDATE bank SET generation = ?", (generation,)).rowcount)
    found: list[Moved] = []
    for table in TABLES:
        found.append(Moved(table, copied[table], await _compare(here, there, table)))
        done(found[-1])
    return found


def _engine(store: Store) -> Engine:
    if not isinstance(store, SqliteStore):
        raise InvalidInput(f"A {type(store).__name__} has no tables to copy.")
    return store.memory.database


def _columns(table: str) -> list[str]:
    return [column.name for column in expected()[table].columns]


async def _refuse_strangers(here: Engine, there: Engine, table: str) -> None:
    """Raises `InvalidInput` unless the last row of the target is one of the source."""
    last = await _last(there, table)
    if last is not None and (await _batch(there, table, last, at=True)) != (await _batch(here, table, last, at=True)):
        raise InvalidInput(
            f"The store to copy to already has rows (table {table}): name an empty one, or one with an interrupted "
            "copy of this store."
        )


async def _last(engine: Engine, table: str) -> tuple[Any, ...] | None:
    keys = ", ".join(f"{key} DESC" for key in TABLES[table])
    query = f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY {keys} LIMIT 1"
    return await engine.read(lambda db: db.execute(query).fetchone())


async def _batch(engine: Engine, table: str, after: tuple[Any, ...] | None, *, at: bool = False) -> list[Any]:
    """The next rows behind this key, in order; at: the row of this key alone."""
    keys = ", ".join(TABLES[table])
    places = ", ".join("?" * len(TABLES[table]))
    where = "" if after is None else f" WHERE ({keys}) {'=' if at else '>'} ({places})"
    query = f"SELECT {', '.join(_columns(table))} FROM {table}{where} ORDER BY {keys} LIMIT {BATCH}"
    return await engine.read(lambda db: db.execute(query, after or ()).fetchall())


async def _rows(engine: Engine, table: str, after: tuple[Any, ...] | None = None) -> AsyncIterator[list[Any]]:
    places = [_columns(table).index(key) for key in TABLES[table]]
    while rows := await _batch(engine, table, after):
        yield rows
        after = tuple(rows[-1][place] for place in places)


async def _copy(here: Engine, there: Engine, table: str) -> int:
    names = _columns(table)
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT DO NOTHING"
    truths = [place for place, name in enumerate(names) if name in _TRUTHS]
    copied = 0

    def put(rows: list[Any]) -> Callable[[Connection], int]:
        values = [
            tuple(bool(value) if place in truths and value is not None else value for place, value in enumerate(row))
            for row in rows
        ]
        return lambda db: db.executemany(insert, values).rowcount

    async for rows in _rows(here, table, await _last(there, table)):
        await there.write(put(rows))
        copied += len(rows)
    if copied and TABLES[table][0] in ("n", "seq") and len(TABLES[table]) == 1:
        await there.numbered(table, TABLES[table][0])
    return copied


async def _compare(here: Engine, there: Engine, table: str) -> int:
    compared, theirs, none = 0, _rows(there, table), list[Any]()
    async for rows in _rows(here, table):
        found = await anext(theirs, none)
        wrong = next((n for n, row in enumerate(rows) if n >= len(found) or tuple(found[n]) != tuple(row)), None)
        if wrong is not None or len(found) > len(rows):
            key = dict(zip(_columns(table), rows[wrong or 0], strict=True))
            which = ", ".join(f"{name} {key[name]}" for name in TABLES[table])
            raise StoreError(
                f"The row of {table} with {which} differs after copying. Did another process write to a store?"
            )
        compared += len(rows)
    if await anext(theirs, none):
        raise StoreError(
            f"The copy has rows of {table} that the source does not have. Did another process write to a store?"
        )
    return compared
