"""The base class of the graph databases: check a query, then run it in a worker process, one at a time.

Engines and servers do not reliably keep time limits or memory limits. A query that exceeds them is ended together with
its process, and the next query gets a new process (design/014). `Worker` knows nothing about any database.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from mulligan.graphs._database import EXHAUSTED, GRACE
from mulligan.graphs._guard import locate_error, read_only
from mulligan.graphs.protocol import ROWS, SECONDS, GraphSchema, Rows, check_limits
from mulligan.plugins import GraphError, Json, QueryError

OPENING = 60.0
"""The seconds that opening a database may take."""
ANSWER = 4_000_000
"""The size limit of an answer in bytes of JSON. Rows beyond it are left out, and the answer is marked as truncated."""
SETTLING = 0.2
"""The seconds that a worker may take to release the previous query once the next one arrives; then it is replaced."""
_STDERR_SHOWN = 2_000


class Worker:
    """A worker process, started by the first request and again after it was killed. For one thread at a time.

    Args:
        name: The name of the database in error messages.
        setup: How to open the database. It goes over a pipe, so that no list of processes shows a password.
        memory: The megabytes that the worker may use beyond what it has once the database is open.

    Attributes:
        spent: True when the process was killed and `refresh` should start another.
    """

    def __init__(self, name: str, setup: Mapping[str, Json], memory: int) -> None:
        self._name = name
        self._setup = {**setup, "memory": memory << 20, "answer": ANSWER}
        self._memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self.spent = False
        self._ready = False
        self._settled = True
        self._was_open = False
        self._buffer = b""
        self._finalizer: weakref.finalize[..., Any] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None when there is none."""
        return self._process.pid if self._process else None

    def ask(self, request: Mapping[str, Json], seconds: float, abandoned: threading.Event) -> dict[str, Json]:
        """Send a request and return the worker's answer.

        Args:
            seconds: The time limit. Opening the database for the first time does not count.
            abandoned: Set before `interrupt` when the caller no longer waits for the answer.

        Raises:
            QueryError: The query failed, was too slow or too large.
            GraphError: The database failed.
        """
        if not self._was_open:
            self._open(None)
        deadline = time.monotonic() + seconds + GRACE
        self.refresh()
        if not self._settled and not self._receive(time.monotonic() + SETTLING):
            self.stop()
        self._open(deadline)
        if abandoned.is_set():
            raise QueryError("The query was cancelled before it ran.", "failed")
        left = max(0.05, min(seconds, deadline - GRACE - time.monotonic()))
        self._send({**request, "seconds": left})
        answer = self._receive(deadline)
        if answer is None:
            self._spend()
            raise QueryError(_slow(seconds), "slow")
        if not answer:
            raise self._crash(seconds)
        self._settled = False
        return self._checked(answer, seconds)

    def interrupt(self) -> None:
        """Kill the process from another thread. The caller that waits for an answer gets an error."""
        if process := self._process:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def refresh(self) -> None:
        """Replace a killed process, so that the new one opens the database while nobody waits for it."""
        if self.spent:
            self._start()

    def stop(self) -> None:
        """End the process. Call it from the thread that sends requests, or when there is none any more."""
        if self._finalizer:
            self._finalizer()
        self._process, self._ready, self._settled, self._buffer, self._finalizer = None, False, True, b"", None
        self.spent = False

    def _spend(self) -> None:
        """Kill the process without waiting for its end: a caller waits for an answer."""
        self.interrupt()
        self.spent = True

    def _checked(self, answer: dict[str, Json], seconds: float) -> dict[str, Json]:
        """Return the answer, or raise the error that it reports."""
        error = answer.get("error")
        if error is None:
            return answer
        if error["kind"] == "gone":
            self.stop()
            raise GraphError(error["message"])
        if error["kind"] == "large":
            self._spend()  # it may not have freed all of its memory
        message = error["message"] or (_slow(seconds) if error["kind"] == "slow" else _large(self._memory))
        raise QueryError(message, error["kind"], error["line"], error["column"])

    def _start(self) -> None:
        """Start a new process in place of the old one. It begins to open the database at once."""
        self.stop()
        command = [sys.executable, "-P", "-m", "mulligan.graphs._worker"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(os.path.abspath(path) for path in sys.path if path),
            "MALLOC_ARENA_MAX": "2",  # an arena per core would count as used memory
        }
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, cwd="/", env=environment, start_new_session=True
            )
        except OSError as error:
            raise GraphError(f"Cannot start a process that queries {self._name}: {error.strerror}.") from None
        self._process = process
        self._finalizer = weakref.finalize(self, _kill, process)
        self._send(self._setup)

    def _open(self, deadline: float | None) -> None:
        """Make sure that a worker has the database open. Without a deadline, it may take up to `OPENING` seconds."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        if self._ready:
            return
        answer = self._receive(deadline or time.monotonic() + OPENING)
        if answer is None:
            if deadline is None:
                self.stop()
                raise GraphError(f"{self._name} could not be opened within {OPENING:.0f} s.")
            raise GraphError(f"{self._name} is being opened again after a query was stopped. Try again.")
        if not answer:
            raise GraphError(str(self._crash(0, opening=True)))
        self._checked(answer, 0)
        self._ready = self._was_open = True

    def _send(self, message: Mapping[str, Json]) -> None:
        """Write a message. Raises `QueryError` if it is not JSON. `_receive` notices a worker that has died."""
        try:
            line = json.dumps(message, allow_nan=False).encode() + b"\n"
        except (TypeError, ValueError) as error:
            raise QueryError(f"The parameters of a query must be JSON: {error}.", "failed") from None
        process = self._process
        with contextlib.suppress(OSError):
            if process and process.stdin:
                process.stdin.write(line)
                process.stdin.flush()

    def _receive(self, deadline: float) -> dict[str, Json] | None:
        """Return the next message; {} when the worker has died, None when the deadline has passed."""
        process = self._process
        if process is None or process.stdout is None:
            return {}
        descriptor = process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        parts, size = [self._buffer], len(self._buffer)
        while b"\n" not in parts[-1]:
            wait = deadline - time.monotonic()
            if wait <= 0 or not poll.poll(wait * 1000):
                self._buffer = b"".join(parts)
                return None
            parts.append(os.read(descriptor, 1 << 20))
            size += len(parts[-1])
            if not parts[-1] or size > 4 * ANSWER:
                return {}
        line, _, self._buffer = b"".join(parts).partition(b"\n")
        return json.loads(line)

    def _crash(self, seconds: float, *, opening: bool = False) -> QueryError:
        """Return the error for a worker that died without being killed by `_spend`."""
        process = self._process
        if process is None:
            return QueryError("The query was cancelled.", "failed")
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1)
        output, code = _error_output(process), process.returncode
        if opening:
            self.stop()
        else:
            self._spend()
        if code == -signal.SIGALRM:
            return QueryError(_slow(seconds), "slow")
        if code == EXHAUSTED:
            return QueryError(_large(self._memory), "large")
        how = signal.Signals(-code).name if code is not None and code < 0 else f"status {code}"
        when = "while it opened the database" if opening else "during this query, which may be too deep or too large"
        return QueryError(f"The process that queries {self._name} ended ({how}) {when}.{output}", "failed")


def _slow(seconds: float) -> str:
    return (
        f"The query was stopped after {seconds:g} s. Make it smaller: start from few nodes, bound the paths, connect "
        "every part of the pattern, add a LIMIT."
    )


def _large(memory: int) -> str:
    return (
        f"The query needs more than the {memory} MB that it may use. Make it smaller: return fewer rows and shorter "
        "values, add a LIMIT before collecting or sorting."
    )


def _error_output(process: subprocess.Popen[bytes]) -> str:
    """Return the end of the process's stderr as a sentence."""
    if process.stderr is None or not select.select([process.stderr], [], [], 0)[0]:
        return ""
    text = os.read(process.stderr.fileno(), 1 << 16).decode("utf-8", "replace").strip()
    return f" It printed: {text[-_STDERR_SHOWN:]}" if text else ""


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            if pipe:
                pipe.close()


SCHEMA_SECONDS = 30.0
MEMORY = 1024
"""The megabytes that the worker process may use for one query."""


class GuardedGraph:
    """A graph database behind a check of the query and a worker process.

    It belongs to no event loop: any loop may call it, and queries run in the order in which they arrive.

    Args:
        changed: Tells whether the database has changed, so that it must be opened again before the next query.
        procedures: Procedures and functions that only read, beside those that the guard knows.
    """

    def __init__(
        self,
        name: str,
        worker: Worker,
        changed: Callable[[], bool] | None = None,
        *,
        procedures: Collection[str] = (),
    ) -> None:
        self.name = name
        self._procedures = frozenset(one.lower() for one in procedures)
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
        self, query: str, parameters: Mapping[str, Json] | None = None, *, seconds: float = SECONDS, rows: int = ROWS
    ) -> Rows:
        """Run a query; see `Graph.run`."""
        check_limits(seconds, rows)
        values = dict(parameters or {})
        text = read_only(query, values, self._procedures)
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
