"""Benchmark runs and the results of their cases, in the file of the episodes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.codec import SCHEMA
from mulligan.core.errors import NotFound, StoreError
from mulligan.core.protocols import Lease
from mulligan.core.records import Json
from mulligan.store.sqlite import leases
from mulligan.store.sqlite.database import Database
from mulligan.store.sqlite.rows import LAST, encoded, json_of, readable, record_of


class SqliteBenches:
    """The `BenchStore` over a database that the store opens and closes."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def begin(self, run: BenchRun) -> None:
        row = (run.id, SCHEMA, encoded(run, f"Run {run.id}"))

        def work(db: sqlite3.Connection) -> None:
            if not db.execute("INSERT OR IGNORE INTO bench_runs (id, schema, record) VALUES (?, ?, ?)", row).rowcount:
                raise StoreError(f"There is a run {run.id!r} already: ids are given once.")

        await self._db.write(work)

    async def run(self, prefix: str) -> BenchRun:
        def work(db: sqlite3.Connection) -> BenchRun:
            columns = "SELECT id, schema, record FROM bench_runs WHERE"
            found = db.execute(f"{columns} id = ?", (prefix,)).fetchall()
            found = found or db.execute(f"{columns} id >= ? AND id < ? ORDER BY n", (prefix, prefix + LAST)).fetchall()
            if not prefix or not found:
                raise NotFound(
                    f"No benchmark run begins with {prefix!r}. See those that there are: mulligan bench runs"
                )
            if len(found) > 1:
                ids = ", ".join(id for id, _, _ in found[:5])
                raise NotFound(f"{prefix!r} begins several benchmark runs: {ids}. Give more of the id.")
            return _run(found[0])

        return await self._db.read(work)

    async def runs(self, limit: int = 50) -> Sequence[BenchRun]:
        def work(db: sqlite3.Connection) -> Sequence[BenchRun]:
            rows = db.execute("SELECT id, schema, record FROM bench_runs ORDER BY n DESC LIMIT ?", (limit,))
            return tuple(readable(rows, _run))

        return await self._db.read(work)

    async def settle(self, run: str, result: CaseResult) -> None:
        row = (result.position, SCHEMA, encoded(result, f"The result of case {result.case} of run {run}"), run)

        def work(db: sqlite3.Connection) -> None:
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
                "SELECT c.position, c.schema, c.record FROM bench_cases c JOIN bench_runs r ON r.n = c.run"
                " WHERE r.id = ? ORDER BY c.position",
                (run,),
            )
            return tuple(
                record_of(CaseResult, f"The result of case {n} of benchmark run {run}", schema, text)
                for n, schema, text in rows
            )

        return await self._db.read(work)

    async def acquire(self, run: str, owner: str, seconds: float) -> Lease:
        watch = self._db.watch
        return await self._db.write(lambda db: leases.acquire(db, watch, run, owner, seconds, leases.BENCH_RUNS))

    async def renew(self, lease: Lease, seconds: float) -> None:
        await self._db.write(lambda db: leases.renew(db, lease, seconds, leases.BENCH_RUNS), under_way=True)

    async def release(self, lease: Lease) -> None:
        await self._db.write(lambda db: leases.release(db, lease, leases.BENCH_RUNS))

    async def answered(self, step: str, request_hash: str) -> tuple[Json, ...]:
        if not step.startswith("model."):
            return ()

        def work(db: sqlite3.Connection) -> tuple[Json, ...]:
            rows = db.execute(
                "SELECT result FROM steps JOIN results ON step = n"
                " WHERE request_hash = ? AND key GLOB '*/model.*' ORDER BY n LIMIT 1",
                (request_hash,),
            )
            return tuple(readable(rows, lambda row: json_of("A recorded answer of a model", row[0])))

        return await self._db.read(work)


def _run(row: tuple[str, Any, Any]) -> BenchRun:
    return record_of(BenchRun, f"Benchmark run {row[0]}", *row[1:])
