"""From a query to rows, whatever the database: the guard, then the worker, one query after the other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from mulligan.core.errors import GraphError, InvalidInput, QueryError
from mulligan.core.graphs import ROWS, SECONDS, EdgeKind, GraphSchema, NodeKind, Rows
from mulligan.core.records import Json
from mulligan.graphs._guard import reading
from mulligan.graphs._process import Engine
from mulligan.graphs._spots import spotted

SCHEMA_SECONDS = 30.0
MEMORY = 1024
"""MB that the process which asks a database may use for one query."""


class Asking:
    """What every graph of ours is. Belongs to no event loop: any may ask, and questions are answered in their order.

    stale: says whether the database has to be opened again before it is asked, because it was changed.
    """

    def __init__(self, name: str, engine: Engine, stale: Callable[[], bool] | None = None) -> None:
        self.name = name
        self._engine = engine
        self._stale = stale
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mulligan-graph")
        self._running: set[threading.Event] = set()
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The process that asks the database; None before the first question."""
        return self._engine.pid

    async def run(
        self,
        query: str,
        parameters: Mapping[str, Json] | None = None,
        *,
        seconds: float = SECONDS,
        rows: int = ROWS,
    ) -> Rows:
        """Raises `QueryError` for what the query's writer can mend, `GraphError` where the database failed."""
        if seconds <= 0 or rows < 1:
            raise InvalidInput(f"A query is given some seconds and a row at least, not {seconds:g} s and {rows} rows.")
        given = dict(parameters or {})
        text = reading(query, given)
        request = {"do": "rows", "query": text, "parameters": given, "rows": rows}
        try:
            answer = await self._ask(request, seconds)
        except QueryError as error:
            raise spotted(error, text) from None
        columns = tuple(answer["columns"])
        return Rows(columns, tuple(dict(zip(columns, row, strict=True)) for row in answer["rows"]), answer["truncated"])

    async def schema(self) -> GraphSchema:
        answer = (await self._ask({"do": "schema"}, SCHEMA_SECONDS))["schema"]
        return GraphSchema(
            tuple(NodeKind(node["label"], node["properties"]) for node in answer["nodes"]),
            tuple(
                EdgeKind(edge["label"], tuple((a, b) for a, b in edge["ends"]), edge["properties"])
                for edge in answer["edges"]
            ),
        )

    async def close(self) -> None:
        """Ends what is running. Closing twice does no harm."""
        self._closed = True
        for abandoned in self._running:
            abandoned.set()
        self._engine.interrupt()
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._engine.stop()

    async def _ask(self, request: Mapping[str, Json], seconds: float) -> dict[str, Json]:
        if self._closed:
            raise GraphError(f"{self.name} is closed: open it again.")
        abandoned = threading.Event()
        running: Future[dict[str, Json]] = self._thread.submit(self._asked, request, seconds, abandoned)
        self._running.add(abandoned)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            abandoned.set()
            if running.running():
                self._engine.interrupt()
            raise
        finally:
            self._running.discard(abandoned)

    def _asked(self, request: Mapping[str, Json], seconds: float, abandoned: threading.Event) -> dict[str, Json]:
        if self._stale is not None and self._stale():
            self._engine.stop()
        try:
            return self._engine.ask(request, seconds, abandoned)
        finally:
            if self._engine.spent and not self._closed:
                with suppress(RuntimeError):  # it was closed meanwhile
                    self._thread.submit(self._engine.refresh)
