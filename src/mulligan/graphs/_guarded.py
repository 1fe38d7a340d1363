"""The base class of the graph databases: check a query, then run it in the worker process, one at a time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from mulligan.core.errors import GraphError, QueryError
from mulligan.core.records import Json
from mulligan.graphs._guard import locate_error, read_only
from mulligan.graphs._process import Worker
from mulligan.graphs.protocol import ROWS, SECONDS, GraphSchema, Rows, check_limits

SCHEMA_SECONDS = 30.0
MEMORY = 1024
"""The megabytes that the worker process may use for one query."""


class GuardedGraph:
    """A graph database behind a check of the query and a worker process.

    It belongs to no event loop: any loop may call it, and queries run in the order in which they arrive.

    Args:
        changed: Tells whether the database has changed, so that it must be opened again before the next query.
    """

    def __init__(self, name: str, worker: Worker, changed: Callable[[], bool] | None = None) -> None:
        self.name = name
        self._worker = worker
        self._changed = changed
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mulligan-graph")
        self._running: set[threading.Event] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The id of the worker process; None before the first query."""
        return self._worker.pid

    async def run(
        self,
        query: str,
        parameters: Mapping[str, Json] | None = None,
        *,
        seconds: float = SECONDS,
        rows: int = ROWS,
    ) -> Rows:
        """Run a query; see `Graph.run`."""
        check_limits(seconds, rows)
        values = dict(parameters or {})
        text = read_only(query, values)
        request = {"do": "rows", "query": text, "parameters": values, "rows": rows}
        try:
            answer = await self._ask(request, seconds)
        except QueryError as error:
            raise locate_error(error, text) from None
        columns = tuple(answer["columns"])
        return Rows(columns, tuple(dict(zip(columns, row, strict=True)) for row in answer["rows"]), answer["truncated"])

    async def schema(self) -> GraphSchema:
        answer = await self._ask({"do": "schema"}, SCHEMA_SECONDS)
        return GraphSchema.from_json(answer["schema"])

    async def close(self) -> None:
        """Stop the running query and the worker. Closing twice does no harm."""
        self._closed = True
        for abandoned in self._running:
            abandoned.set()
        self._worker.interrupt()
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._worker.stop()

    async def _ask(self, request: Mapping[str, Json], seconds: float) -> dict[str, Json]:
        if self._closed:
            raise GraphError(f"{self.name} is closed. Open it again.")
        abandoned = threading.Event()
        running: Future[dict[str, Json]] = self._thread.submit(self._in_worker, request, seconds, abandoned)
        self._running.add(abandoned)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            abandoned.set()
            if running.running():
                self._worker.interrupt()
            raise
        finally:
            self._running.discard(abandoned)

    def _in_worker(self, request: Mapping[str, Json], seconds: float, abandoned: threading.Event) -> dict[str, Json]:
        if self._changed is not None and self._changed():
            self._worker.stop()
        try:
            return self._worker.ask(request, seconds, abandoned)
        finally:
            if self._worker.spent and not self._closed:
                with suppress(RuntimeError):  # it was closed in the meantime
                    self._thread.submit(self._worker.refresh)
