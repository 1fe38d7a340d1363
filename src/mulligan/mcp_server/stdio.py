"""The server over standard input and output: one client, one process. Why not the SDK's transport: design/013."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from mulligan.app.service import Service
from mulligan.mcp_server import messages
from mulligan.mcp_server.background import in_the_background
from mulligan.mcp_server.descriptors import kept_apart, read_some, write_all
from mulligan.mcp_server.lines import Lines, TooLong
from mulligan.mcp_server.load import Calls, Load, Ticket, taken
from mulligan.mcp_server.logs import told
from mulligan.mcp_server.serving import make_server, one_connection
from mulligan.mcp_server.signals import told_to_stop

log = logging.getLogger("mulligan.serve")

MOST = 256
"""Requests that one client may have in flight."""

GRACE = 5.0
"""Seconds that calls in flight have to end in, once the client has left or we are told to stop."""

LAST_WORDS = 1.0
"""Seconds for what is said last to be read."""

_REFUSAL = ServerMessageMetadata()
"""Marks an error that the server knows nothing of, as its request never reached it."""

Heard = MemoryObjectReceiveStream[SessionMessage | Exception]
Said = MemoryObjectSendStream[SessionMessage]


async def serve_stdio(service: Service, which: str) -> None:
    """Serves until the client closes our input, or until SIGTERM, SIGINT or SIGHUP; calls in flight have a moment."""
    server = make_server(service, which, lambda _: one_connection(service.served.agent_id))
    server.middleware.append(told)
    try:
        with kept_apart() as (incoming, outgoing):
            async with in_the_background(service), Wire(incoming, outgoing).streams() as (heard, said):
                await server.run(heard, said, server.create_initialization_options())
    finally:
        await service.close()


class Wire:
    """Messages, a line each, between two descriptors and the SDK's streams.

    What is no message is answered with an error and the next line is read. A client that does not read its answers is
    read from no more, until it does: nothing piles up here.
    """

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._load, self._calls = Load(MOST), Calls()
        self._gone, self._ended = asyncio.Event(), asyncio.Event()
        self._into, self._heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._said, self._out = anyio.create_memory_object_stream[SessionMessage](0)
        self._refusals = self._said.clone()

    @asynccontextmanager
    async def streams(self) -> AsyncGenerator[tuple[Heard, Said]]:
        """The two ends for `Server.run`, which returns when the client has left or we were told to stop."""
        with told_to_stop() as told:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read_until, told)
                tasks.start_soon(self._write)
                yield self._heard, self._said
                with anyio.move_on_after(LAST_WORDS):
                    await self._ended.wait()
                tasks.cancel_scope.cancel()

    async def _read_until(self, told: asyncio.Event) -> None:
        """Reads until the client leaves or we are told to stop; lets calls in flight end; then ends the streams."""
        async with self._into, self._refusals:
            async with anyio.create_task_group() as tasks:
                for over in (told, self._gone):
                    tasks.start_soon(_cancel_after, over, tasks)
                await self._read()
                tasks.cancel_scope.cancel()
            if told.is_set():
                log.info("told to stop: %d requests are in flight", self._load.count)
            with anyio.move_on_after(GRACE):
                await self._load.idle()

    async def _read(self) -> None:
        lines = Lines(messages.LONGEST)
        while chunk := await read_some(self._incoming):
            for line in lines.feed(chunk):
                await self._take(line)
        for line in lines.end():
            await self._take(line)

    async def _take(self, line: bytes | TooLong) -> None:
        """One line: to the server, or back with an error."""
        if isinstance(line, bytes) and not line.strip():
            return
        try:
            if isinstance(line, TooLong):
                raise messages.too_long(line.head, line.tail)
            admitted = self._admitted(messages.read(line))
        except messages.Refused as refusal:
            if refusal.error is not None:
                log.info("a message was refused: %s", refusal)
                await self._refusals.send(SessionMessage(refusal.error, _REFUSAL))
            return
        try:
            await self._into.send(admitted)
        except BaseException:
            self._calls.end(getattr(admitted.message, "id", None))
            raise

    def _admitted(self, message: messages.Message) -> SessionMessage:
        """Raises `Refused` for a request that there is no room for."""
        content = message.content
        if not isinstance(content, types.JSONRPCRequest):
            return SessionMessage(content)
        if content.id in self._calls:
            raise messages.refused(types.INVALID_REQUEST, taken(content.id), content.id)
        if self._load.full(message.weight):
            text = f"{self._load.count} requests are in flight already: wait for an answer, then ask again."
            raise messages.refused(messages.BUSY, text, content.id)
        self._calls.begin(content.id, Ticket(self._load, message.weight))
        return SessionMessage(content, ServerMessageMetadata(on_request_unanswered=partial(self._dropped, content.id)))

    async def _dropped(self, id: types.RequestId) -> None:
        """A request that was cancelled is never answered."""
        self._calls.end(id)

    async def _write(self) -> None:
        """Alone writes: a line that was begun is brought to its end before another."""
        async with self._out:
            async for one in self._out:
                if not self._gone.is_set():
                    await self._put(one.message)
                if isinstance(one.message, types.JSONRPCResponse | types.JSONRPCError) and one.metadata is not _REFUSAL:
                    self._calls.end(one.message.id)
        self._ended.set()

    async def _put(self, message: types.JSONRPCMessage) -> None:
        try:
            await write_all(self._outgoing, messages.written(message) + b"\n")
        except OSError:
            log.info("the client reads no more")
            self._gone.set()


async def _cancel_after(event: asyncio.Event, tasks: TaskGroup) -> None:
    await event.wait()
    tasks.cancel_scope.cancel()
