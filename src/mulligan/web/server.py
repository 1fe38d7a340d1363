"""The uvicorn server of all HTTP faces, with its limits."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from mulligan.web.hosts import HostPolicy
from mulligan.web.proxies import BehindProxies
from mulligan.web.signals import stop_requested

MAX_CONNECTIONS = 1024
"""The most open connections; a further one is closed at once."""

REQUEST_SECONDS = 45.0
"""The time limit of a request, from the connection or its first byte to its last byte."""

UNREAD_SECONDS = 30.0
"""The time that a client may leave an answer unread that is too large to send at once."""


class Server(uvicorn.Server):
    """uvicorn's server, without its signal handlers. It calls `started` once it accepts requests.

    Args:
        proxies: addresses of reverse proxies whose X-Forwarded-Host is trusted, if `policy` allows it.
        drain: the time for open requests to finish when the server stops, in seconds.
    """

    def __init__(
        self, app: Any, policy: HostPolicy, proxies: Sequence[str], drain: float, started: Callable[[], object]
    ) -> None:
        self._tell = started
        super().__init__(
            uvicorn.Config(
                BehindProxies(app, proxies, policy),
                http=TimedProtocol,
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=30,
                timeout_graceful_shutdown=int(drain) + 5,
                h11_max_incomplete_event_size=32 * 1024,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def serve_until(
        self, stop: asyncio.Event | None, listening: socket.socket, end: Callable[[], Awaitable[object]]
    ) -> None:
        """Serve until `stop` is set or, without `stop`, until SIGTERM, SIGINT or SIGHUP.

        The server then accepts no more requests, and `end` ends those that would not end by themselves.
        """

        async def end_after(stop: asyncio.Event) -> None:
            await stop.wait()
            self.should_exit = True
            await end()

        with stop_requested() if stop is None else contextlib.nullcontext(stop) as stop:
            stopping = asyncio.create_task(end_after(stop))
            try:
                await self.serve([listening])
            finally:
                stopping.cancel()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which closes surplus connections, slow requests and answers that nobody reads.

    An answer before the end of the request, such as 413, reaches the client: the rest is read and dropped first. A
    connection that is closed with bytes unread is reset, and the client's system may drop the answer.
    """

    _slow: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _dropping = False
    _ending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(cast(asyncio.Transport, _ClosesLater(transport, self._drop_rest)))
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._slow = self.loop.call_later(REQUEST_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._slow, self._unread = _cancel(self._slow), _cancel(self._unread)
        super().connection_lost(exc)

    def _drop_rest(self) -> bool:
        """Whether the connection stays open for the rest of a request."""
        if self._ending or self._dropping or self.conn.their_state not in (h11.SEND_BODY, h11.ERROR):
            return self._dropping
        self._dropping = True
        self._slow = self._slow or self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        self.transport.write_eof()
        self.flow.resume_reading()
        return True

    def shutdown(self) -> None:
        self._ending = True
        if self._dropping:
            self.transport.abort()
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._dropping:
            return
        self._slow = self._slow or self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY) and not self._dropping:
            self._slow = _cancel(self._slow)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _cancel(self._unread)


class _ClosesLater:
    """A transport that `close` leaves open as long as `stays_open` says so."""

    def __init__(self, transport: asyncio.Transport, stays_open: Callable[[], bool]) -> None:
        self._transport, self._stays_open = transport, stays_open
        self._closed = False

    def close(self) -> None:
        self._closed = True
        if not self._transport.is_closing() and not self._stays_open():
            self._transport.close()

    def is_closing(self) -> bool:
        return self._closed or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
