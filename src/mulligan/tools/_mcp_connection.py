"""Holds one connection to an MCP server, from start to end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

from mulligan.core.errors import ToolError
from mulligan.models.providers import check_proxies

if TYPE_CHECKING:
    import httpx2
    from mcp import Client
    from mcp.client._transport import TransportStreams

ENDING = 10.0
"""Seconds that a server may take to end. The client kills it after about 4 seconds."""
MAX_TAIL = 2_000
"""Bytes of a server's standard error that are kept, from its end."""

_SILENT = logging.NullHandler()


class Connection:
    """A connection held by its own task, because the client must be closed in the task that opened it.

    seconds: the limit of each request. Create it in a running loop; it begins to connect at once.
    """

    def __init__(self, transport: AbstractAsyncContextManager[TransportStreams], seconds: float) -> None:
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # Reading the exception keeps asyncio from complaining about one that nobody waits for.
        self._ready.add_done_callback(lambda future: future.exception())
        self._task = asyncio.create_task(self._hold(transport, seconds))
        self._task.add_done_callback(self._ended)

    async def client(self) -> Client:
        """The client, once it is connected. Raises the error that prevented the connection."""
        return await asyncio.shield(self._ready)

    async def close(self) -> None:
        """Ends the connection, and the server if it was started here."""
        self._stop.set()
        if not self._ready.done():
            self._task.cancel()
        _, unfinished = await asyncio.wait({self._task}, timeout=ENDING)
        for task in unfinished:
            task.cancel()  # without waiting again: this has taken its time already

    async def _hold(self, transport: Any, seconds: float) -> None:
        from mcp import Client

        logging.getLogger("mcp").addHandler(_SILENT)  # else its tracebacks appear on the user's terminal
        async with Client(transport, read_timeout_seconds=seconds) as client:
            self._ready.set_result(client)
            await self._stop.wait()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Tells those who wait for the client why there will be none. Later errors show in the client's requests.

        As a callback this also runs for a task that is cancelled before its first step, which no `finally` would.
        """
        error = None if task.cancelled() else task.exception()
        if not self._ready.done():
            self._ready.set_exception(error or ToolError("it was closed while connecting"))


class Tail:
    """Why a server may have failed: the end of its standard error, or the HTTP error of its last response."""

    def __init__(self) -> None:
        self._bytes = b""

    @property
    def lines(self) -> list[str]:
        return [line for line in self._bytes.decode("utf-8", "replace").splitlines() if line.strip()]

    async def note_status(self, response: httpx2.Response) -> None:
        """Keeps the status of an HTTP error, which the client does not report, until the next response."""
        status = f"HTTP {response.status_code} {response.reason_phrase}"
        self._bytes = status.encode() if response.is_error else b""

    @asynccontextmanager
    async def reading(self) -> AsyncGenerator[Any]:
        """A file that another process can write to."""
        read, write = os.pipe()
        task = asyncio.create_task(self._read(read))
        try:
            with os.fdopen(write, "w") as file:
                yield file
        finally:
            # A process that the server started may keep its end of the pipe open for longer.
            await asyncio.wait({task}, timeout=0.5)
            task.cancel()
            await asyncio.wait({task})

    async def _read(self, read: int) -> None:
        reader = asyncio.StreamReader()
        file = os.fdopen(read, "rb", 0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), file
        )
        try:
            while data := await reader.read(65_536):
                self._bytes = (self._bytes + data)[-MAX_TAIL:]
        finally:
            transport.close()


@asynccontextmanager
async def over_stdio(
    command: Sequence[str], env: Mapping[str, str], cwd: str | None, said: Tail
) -> AsyncGenerator[TransportStreams]:
    """Starts a server and yields the streams to it. `said` gets its standard error."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=command[0], args=list(command[1:]), env=dict(env), cwd=cwd, encoding_error_handler="replace"
    )
    async with said.reading() as errors, stdio_client(server, errors) as streams:
        yield streams


@asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], seconds: float, said: Tail
) -> AsyncGenerator[TransportStreams]:
    """Yields the streams to a running server. `said` gets the HTTP error of its last response."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    check_proxies()
    async with (
        httpx2.AsyncClient(
            headers=dict(headers), timeout=httpx2.Timeout(seconds), event_hooks={"response": [said.note_status]}
        ) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
