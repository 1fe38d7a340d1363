"""Runs of benchmarks and what became of their cases, in the file that the episodes are in."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import TypeVar

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.codec import SCHEMA, from_json, record_text
from mulligan.core.errors import InvalidInput, NotFound, StoreError
from mulligan.core.protocols import Lease
from mulligan.core.records import Json
from mulligan.store import leases
from mulligan.store.database import Database

T = TypeVar("T")
_LAST = chr(0x10FFFF)


class SqliteBenches:
    """A `BenchStore`. Opens and closes nothing: the database is the store's."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def begin(self, run: BenchRun) -> None:
        text = _kept(run, f"Run {run.id}")

        def work(db: sqlite3.Connection) -> None:
            row = (run.id, SCHEMA, text)
            if not db.execute("INSERT OR IGNORE INTO bench_runs (id, schema, record) VALUES (?, ?, ?)", row).rowcount:
                raise StoreError(f"There is a run {run.id!r} already: ids are given once.")

        await self._db.write(work)

    async def run(self, prefix: str) -> BenchRun:
        def work(db: sqlite3.Connection) -> BenchRun:
            columns = "SELECT id, schema, record FROM bench_runs WHERE"
            found = db.execute(f"{columns} id = ?", (prefix,)).fetchall()
            found = found or db.execute(f"{columns} id >= ? AND id < ? ORDER BY n", (prefix, prefix + _LAST)).fetchall()
            if not prefix or not found:
                raise NotFound(
                    f"No benchmark run begins with {prefix!r}. See those that there are: mulligan bench runs"
                )
            if len(found) > 1:
                ids = ", ".join(id for id, _, _ in found[:5])
                raise NotFound(f"{prefix!r} begins several benchmark runs: {ids}. Give more of the id.")
            return _read(BenchRun, *found[0])

        return await self._db.read(work)

    async def runs(self, limit: int = 50) -> Sequence[BenchRun]:
        def work(db: sqlite3.Connection) -> Sequence[BenchRun]:
            rows = db.execute("SELECT id, schema, record FROM bench_runs ORDER BY n DESC LIMIT ?", (limit,))
            return tuple(_read(BenchRun, *row) for row in rows)

        return await self._db.read(work)

    async def settle(self, run: str, result: CaseResult) -> None:
        text = _kept(result, f"The result of case {result.case} of run {run}")

        def work(db: sqlite3.Connection) -> None:
            row = (result.position, SCHEMA, text, run)
            added = db.execute(
                "INSERT OR REPLACE INTO bench_cases (run, position, schema, record)"
                " SELECT n, ?, ?, ? FROM bench_runs WHERE id = ?",
                row,
            )
            if not added.rowcount:
                raise NotFound(f"There is no benchmark run {run!r}.")

        await self._db.write(work)

    async def results(self, run: str) -> Sequence[CaseResult]:
        def work(db: sqlite3.Connection) -> Sequence[CaseResult]:
            rows = db.execute(
                "SELECT r.id, c.schema, c.record FROM bench_cases c JOIN bench_runs r ON r.n = c.run"
                " WHERE r.id = ? ORDER BY c.position",
                (run,),
            )
            return tuple(_read(CaseResult, *row) for row in rows)

        return await self._db.read(work)

    async def acquire(self, run: str, owner: str, seconds: float) -> Lease:
        return await self._db.write(lambda db: leases.acquire(db, run, owner, seconds, leases.BENCH_RUNS))

    async def renew(self, lease: Lease, seconds: float) -> None:
        await self._db.write(lambda db: leases.renew(db, lease, seconds, leases.BENCH_RUNS), under_way=True)

    async def release(self, lease: Lease) -> None:
        await self._db.write(lambda db: leases.release(db, lease, leases.BENCH_RUNS))

    async def answered(self, step: str, request_hash: str) -> tuple[Json, ...]:
        """What a model has answered to this very request (model, messages, sampling, seed) in any episode here; nothing
        where it was never asked, or `step` is no model call. The oldest answer wins, so that all runs take the same."""
        if not step.startswith("model."):
            return ()

        def work(db: sqlite3.Connection) -> tuple[Json, ...]:
            rows = db.execute(
                "SELECT result FROM steps JOIN results ON step = n"
                " WHERE request_hash = ? AND key GLOB '*/model.*' ORDER BY n LIMIT 1",
                (request_hash,),
            )
            return tuple(json.loads(result) for (result,) in rows)

        return await self._db.read(work)


def _kept(record: BenchRun | CaseResult, what: str) -> str:
    try:
        return record_text(record)
    except InvalidInput as error:
        raise StoreError(f"{what} cannot be kept: {error}") from error


def _read(cls: type[T], id: str, schema: int, text: str) -> T:
    try:
        return from_json(cls, json.loads(text), schema)
    except (InvalidInput, ValueError) as error:
        raise StoreError(f"A record of benchmark run {id} cannot be read: {error}") from error
