"""Copies a store to another of any kind, row by row, and compares them: both keep the same tables (design/106)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
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
"""Each table and its key columns. A table comes after those that it refers to."""

_BOOLEAN_COLUMNS = frozenset({"success", "fact", "pair", "borrowed", "told"})
"""Columns that are numbers in SQLite, and booleans in PostgreSQL."""


@dataclass(frozen=True)
class Moved:
    """The result for one table.

    Attributes:
        copied: rows that the target did not have.
        compared: all rows, which are equal now.
    """

    table: str
    copied: int
    compared: int


async def move(source: Store, target: Store, done: Callable[[Moved], None] = lambda moved: None) -> Sequence[Moved]:
    """Copies all rows with their numbers, then compares each. Continues a copy that was cut off.

    Nothing may write to either store in the meantime. Vectors, history, receipts, the queue and leases are copied, too.

    Args:
        done: called for each table once it is compared.

    Raises:
        InvalidInput: The target has rows that the source does not have, or a newer program has extended one of them.
        StoreError: A row could not be stored, or differs afterwards.
    """
    here, there = _engine(source), _engine(target)
    if not (await here.knows_all() and await there.knows_all()):
        raise InvalidInput(
            "A newer version of Mulligan has extended one of these stores, so this version cannot copy it "
            "completely: use the newer version."
        )
    for table in TABLES:
        await _refuse_strangers(here, there, table)
    copied = {table: await _copy(here, there, table) for table in TABLES}
    (generation,) = await here.read(lambda db: db.execute("SELECT generation FROM bank").fetchone())
    await there.write(lambda db: db.execute("UPDATE bank SET generation = ?", (generation,)).rowcount)
    results: list[Moved] = []
    for table in TABLES:
        results.append(Moved(table, copied[table], await _compare(here, there, table)))
        done(results[-1])
    return results


def _engine(store: Store) -> Engine:
    if not isinstance(store, SqliteStore):
        raise InvalidInput(f"A {type(store).__name__} has no tables to copy.")
    return store.memory.database


def _columns(table: str) -> list[str]:
    return [column.name for column in expected()[table].columns]


async def _refuse_strangers(here: Engine, there: Engine, table: str) -> None:
    """Raises `InvalidInput` unless the last row of the target is one of the source."""
    last = await _last_key(there, table)
    if last is not None and await _select(there, table, "=", last) != await _select(here, table, "=", last):
        raise InvalidInput(
            f"The target store already has rows (table {table}): specify an empty store, or one with an "
            "interrupted copy of this store."
        )


async def _last_key(engine: Engine, table: str) -> tuple[Any, ...] | None:
    keys = ", ".join(f"{key} DESC" for key in TABLES[table])
    query = f"SELECT {', '.join(TABLES[table])} FROM {table} ORDER BY {keys} LIMIT 1"
    return await engine.read(lambda db: db.execute(query).fetchone())


async def _select(engine: Engine, table: str, operator: str, key: tuple[Any, ...] | None) -> list[Any]:
    """The first rows, in order, whose key compares so with this one."""
    keys = ", ".join(TABLES[table])
    placeholders = ", ".join("?" * len(TABLES[table]))
    where = "" if key is None else f" WHERE ({keys}) {operator} ({placeholders})"
    query = f"SELECT {', '.join(_columns(table))} FROM {table}{where} ORDER BY {keys} LIMIT {BATCH}"
    return await engine.read(lambda db: db.execute(query, key or ()).fetchall())


async def _batches(engine: Engine, table: str, after: tuple[Any, ...] | None = None) -> AsyncIterator[list[Any]]:
    """All rows after this key, in batches."""
    positions = [_columns(table).index(key) for key in TABLES[table]]
    while rows := await _select(engine, table, ">", after):
        yield rows
        after = tuple(rows[-1][position] for position in positions)


async def _copy(here: Engine, there: Engine, table: str) -> int:
    """Copies the rows that the target does not have yet. Returns their number."""
    names = _columns(table)
    insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) ON CONFLICT DO NOTHING"
    copied = 0

    def converted(name: str, value: Any) -> Any:
        return bool(value) if name in _BOOLEAN_COLUMNS and value is not None else value

    def put(rows: list[Any]) -> Callable[[Connection], int]:
        values = [tuple(map(converted, names, row)) for row in rows]
        return lambda db: db.executemany(insert, values).rowcount

    async for rows in _batches(here, table, await _last_key(there, table)):
        await there.write(put(rows))
        copied += len(rows)
    if copied and TABLES[table][0] in ("n", "seq") and len(TABLES[table]) == 1:
        await there.numbered(table, TABLES[table][0])
    return copied


async def _compare(here: Engine, there: Engine, table: str) -> int:
    """Raises `StoreError` unless the table has the same rows in both stores. Returns their number."""
    compared = 0
    copies = _batches(there, table)
    no_rows = list[Any]()
    async for rows in _batches(here, table):
        copied_rows = await anext(copies, no_rows)
        for row, copied_row in zip_longest(rows, copied_rows):
            if row is None or copied_row is None or tuple(row) != tuple(copied_row):
                either: Any = row or copied_row
                values = dict(zip(_columns(table), either, strict=True))
                key = ", ".join(f"{name} {values[name]}" for name in TABLES[table])
                raise StoreError(
                    f"The row of {table} with {key} differs after copying. Did another process write to one of the "
                    "stores?"
                )
        compared += len(rows)
    if await anext(copies, no_rows):
        raise StoreError(
            f"The copy has rows of {table} that the source does not have. Did another process write to one of the "
            "stores?"
        )
    return compared
