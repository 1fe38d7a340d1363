"""Serves one client over standard input and output, with a message in each line.

It does not use the SDK's stdio transport, for the reasons in design/013.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.mcp_server import messages
from mulligan.mcp_server.inflight import InFlight, PendingRequests, Slot, id_in_use
from mulligan.mcp_server.lifecycle import background_learning
from mulligan.mcp_server.logs import log_requests
from mulligan.mcp_server.server import make_server, one_connection
from mulligan.web.signals import stop_requested

log = logging.getLogger("mulligan.serve")

MAX_REQUESTS = 256
"""Requests that the client may have in flight."""

DRAIN_SECONDS = 5.0
"""How long calls in flight may take after the client has left or a signal has come."""

FLUSH_SECONDS = 1.0
"""How long to wait for the client to read the last answers."""

END_BYTES = messages.HEAD
"""How much is kept of each end of a line that is too long."""

ATOMIC_WRITE = getattr(select, "PIPE_BUF", 512)
"""Bytes that a pipe reported as writable takes without blocking."""

_REFUSAL = ServerMessageMetadata()
"""Marks an error response to a message that never reached the server."""


async def serve_stdio(service: Service, which: str) -> None:
    """Serves until the client closes the input or SIGTERM, SIGINT or SIGHUP comes; then lets calls in flight finish.

    Args:
        service: what the tools work on; closed at the end.
        which: the tools to serve, as in `select_tools`.
    """
    server = make_server(service, which, lambda _: one_connection(service.served.agent_id))
    server.middleware.append(log_requests)
    try:
        with separated_stdio() as (incoming, outgoing):
            async with background_learning(service), Wire(incoming, outgoing).streams() as (requests, answers):
                await server.run(requests, answers, server.create_initialization_options())
    finally:
        await service.close()


class Wire:
    """Carries messages between two file descriptors and the SDK's streams.

    It answers an invalid line with an error and continues. It does not read while the client does not read its answers,
    so that nothing piles up.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._in_flight, self._streams = InFlight(MAX_REQUESTS), InFlight(MAX_REQUESTS)
        self._pending = PendingRequests()
        self._gone, self._written = asyncio.Event(), asyncio.Event()
        self._to_server, self._requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._answers, self._to_client = anyio.create_memory_object_stream[SessionMessage](0)
        self._refusals = self._answers.clone()

    @asynccontextmanager
    async def streams(
        self,
    ) -> AsyncGenerator[
        tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
    ]:
        """The two streams for `Server.run`, which returns when the client has left or a signal came."""
        with stop_requested() as stop:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_until, stop)
                tasks.start_soon(self._write)
                yield self._requests, self._answers
                with anyio.move_on_after(FLUSH_SECONDS):
                    await self._written.wait()
                tasks.cancel_scope.cancel()

    async def _read_until(self, stop: asyncio.Event) -> None:
        """Reads until the client leaves or `stop` is set, lets calls in flight finish, then closes the streams."""
        async with self._to_server, self._refusals:
            async with anyio.create_task_group() as tasks:
                for end in (stop, self._gone):
                    tasks.start_soon(_cancel_after, end, tasks)
                await self._read()
                tasks.cancel_scope.cancel()
            if stop.is_set():
                log.info("stopping: %d requests are in flight", self._in_flight.count)
            with anyio.move_on_after(DRAIN_SECONDS):
                await self._in_flight.idle()

    async def _read(self) -> None:
        lines = LineSplitter(messages.MAX_BYTES)
        while chunk := await read_some(self._incoming):
            for line in lines.feed(chunk):
                await self._take(line)
        for line in lines.end():
            await self._take(line)

    async def _take(self, line: bytes | TooLong) -> None:
        """Passes one line to the server, or answers it with an error."""
        if isinstance(line, bytes) and not line.strip():
            return
        try:
            if isinstance(line, TooLong):
                raise messages.too_long(line.head, line.tail)
            admitted = self._admit(messages.parse(line))
        except messages.Refused as refusal:
            if refusal.error is not None:
                log.info("a message was refused: %s", refusal)
                await self._refusals.send(SessionMessage(refusal.error, _REFUSAL))
            return
        try:
            await self._to_server.send(admitted)
        except BaseException:
            self._pending.end(getattr(admitted.message, "id", None))
            raise

    def _admit(self, message: messages.Message) -> SessionMessage:
        """The message for the server. Raises `Refused` for a request whose id is in use, or if there are too many."""
        content = message.content
        if not isinstance(content, types.JSONRPCRequest):
            return SessionMessage(content)
        if content.id in self._pending:
            raise messages.refused(types.INVALID_REQUEST, id_in_use(content.id), content.id)
        requests = self._streams if content.method == messages.LISTEN else self._in_flight
        if requests.full(message.weight):
            text = f"{requests.count} requests are in flight already: wait for an answer, then ask again."
            raise messages.refused(messages.BUSY, text, content.id)
        self._pending.begin(content.id, Slot(requests, message.weight))
        cancelled = partial(self._pending.cancelled, content.id)
        return SessionMessage(content, ServerMessageMetadata(on_request_unanswered=cancelled))

    async def _write(self) -> None:
        """The only writer: finishes each line before it starts another."""
        async with self._to_client:
            async for answer in self._to_client:
                if not self._gone.is_set():
                    await self._put(answer.message)
                if answer.metadata is not _REFUSAL:
                    self._pending.sent(answer.message)
        self._written.set()

    async def _put(self, message: types.JSONRPCMessage) -> None:
        try:
            await write_all(self._outgoing, messages.serialize(message) + b"\n")
        except OSError:
            log.info("the client no longer reads")
            self._gone.set()


async def _cancel_after(event: asyncio.Event, tasks: TaskGroup) -> None:
    await event.wait()
    tasks.cancel_scope.cancel()


@dataclass(frozen=True)
class TooLong:
    """Both ends of a line that is too long."""

    head: bytes
    tail: bytes


class LineSplitter:
    """Splits chunks of bytes into lines. It keeps only the ends of a line longer than `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit, self._kept = limit, bytearray()
        self._head: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in this chunk, without their newlines."""
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield self._line(part)
        self._keep(rest)

    def end(self) -> Iterator[bytes | TooLong]:
        """The last line, if it did not end with a newline."""
        if self._kept or self._head is not None:
            yield self._line(b"")

    def _line(self, part: bytes) -> bytes | TooLong:
        self._keep(part)
        line = bytes(self._kept) if self._head is None else TooLong(self._head, bytes(self._kept))
        self._kept, self._head = bytearray(), None
        return line

    def _keep(self, part: bytes) -> None:
        if self._head is None and len(self._kept) + len(part) > self._limit:
            self._head = bytes((self._kept + part)[:END_BYTES])
        self._kept += part
        if self._head is not None:
            self._kept = self._kept[-END_BYTES:]


@contextmanager
def separated_stdio() -> Generator[tuple[int, int]]:
    """Moves standard input and output to two new descriptors, and yields these.

    In the meantime descriptor 0 is empty and 1 is standard error. So stray prints and child processes cannot read what
    the client sends, or write between answers.

    Raises:
        InvalidInput: standard input or output is closed.
    """
    if sys.__stdin__ is None or sys.__stdout__ is None:  # None: it was closed when Python started
        raise InvalidInput(
            "The stdio transport needs standard input and output, but one of them is closed: have the client "
            "start this command, or use --transport http."
        )
    _open_stderr()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield incoming, outgoing
    finally:
        with suppress(OSError, ValueError):
            if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
                sys.stdout.flush()  # to standard error, while 1 still points there
        for moved, standard in ((incoming, 0), (outgoing, 1)):
            os.dup2(moved, standard)
            os.close(moved)


def _open_stderr() -> None:
    """Opens descriptor 2 if it is closed, so that no file opened later gets that number."""
    try:
        os.fstat(2)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != 2:
            os.dup2(nothing, 2)
            os.close(nothing)


async def read_some(descriptor: int) -> bytes:
    """Waits for input and returns it; b"" at the end."""
    loop = asyncio.get_running_loop()
    await _ready(loop.add_reader, loop.remove_reader, descriptor)
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the terminal hung up, a socket was reset
        return b""


async def write_all(descriptor: int, data: bytes) -> None:
    """Writes all data without blocking the event loop. Raises `OSError` if nobody reads."""
    loop, rest, poll = asyncio.get_running_loop(), memoryview(data), select.poll()
    poll.register(descriptor, select.POLLOUT)
    while rest:
        if not poll.poll(0):
            await _ready(loop.add_writer, loop.remove_writer, descriptor)
        rest = rest[os.write(descriptor, rest[:ATOMIC_WRITE]) :]


async def _ready(add: Callable[..., Any], remove: Callable[[int], Any], descriptor: int) -> None:
    ready = asyncio.Event()
    try:
        add(descriptor, ready.set)
    except PermissionError:  # a regular file is always ready
        await asyncio.sleep(0)
        return
    try:
        await ready.wait()
    finally:
        remove(descriptor)
