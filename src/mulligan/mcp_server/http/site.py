"""The HTTP application in its layers, and the uvicorn server that runs it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from mulligan.app.service import Service
from mulligan.mcp_server.client_config import PATHS
from mulligan.mcp_server.http.admission import Admission
from mulligan.mcp_server.http.guard import Guard, RateLimit, RequestLog, only_http
from mulligan.mcp_server.http.hosts import Bound, HostPolicy
from mulligan.mcp_server.http.transports import sse_site, streamable_site
from mulligan.mcp_server.lifecycle import stop_requested
from mulligan.mcp_server.tokens import Verifier

if TYPE_CHECKING:
    from mulligan.mcp_server.http import Listening

log = logging.getLogger("mulligan.serve.http")

MAX_CONNECTIONS = 1024
"""Connections that may be open; a further one is closed at once."""

REQUEST_SECONDS = 45.0
"""From the first byte (or the connection) to the last byte of a request."""

UNREAD_SECONDS = 30.0
"""How long a client may leave an answer unread that is too large to send as a whole."""

FLUSH_SECONDS = 0.2
"""How long to wait for the last answers to leave, once all calls are done."""


class Site:
    """The application and its server."""

    def __init__(self, service: Service, which: str, listening: Listening, bound: Bound) -> None:
        self._listening, self._bound = listening, bound
        self._url = f"{bound.url}{PATHS[listening.transport]}"
        self._admission = Admission(listening.concurrency)
        transport = sse_site if listening.transport == "sse" else streamable_site
        app = self._layers(transport(service, which, self._admission))
        self._guard = Guard(app, HostPolicy(bound, listening.origins))

    def _layers(self, app: Any) -> Any:
        """Innermost first: a caller without a token is counted by address before it is refused."""
        tokens = self._listening.tokens
        if tokens:
            app = only_http(RequireAuthMiddleware(app, []), app)
        app = RateLimit(app, self._listening.rate)
        if tokens:
            app = AuthenticationMiddleware(app, BearerAuthBackend(Verifier(tokens)))
        return CORSMiddleware(  # the guard refuses other origins
            app,
            allow_origin_regex=".*",
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=("Mcp-Session-Id", "Retry-After", "WWW-Authenticate"),
        )

    async def serve(self, tell: Callable[[str], object], stop: asyncio.Event | None) -> None:
        server = _Server(RequestLog(self._guard), self._listening.drain, lambda: tell(self._url))
        with stop_requested() if stop is None else contextlib.nullcontext(stop) as stop:
            stopping = asyncio.create_task(self._stop_when(stop, server))
            try:
                await server.serve([self._bound.listening])
            finally:
                stopping.cancel()

    async def _stop_when(self, stop: asyncio.Event, server: uvicorn.Server) -> None:
        """Takes no more requests, lets those in flight finish, then ends what is still open."""
        await stop.wait()
        log.info("stopping: %d requests are in flight", self._admission.calls.count)
        self._guard.closed = server.should_exit = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._listening.drain):
                await self._admission.calls.idle()
        await asyncio.sleep(FLUSH_SECONDS)
        self._admission.end()


class _Server(uvicorn.Server):
    """uvicorn's server, which leaves signals to us and says when it answers."""

    def __init__(self, app: Any, drain: float, started: Callable[[], object]) -> None:
        self._tell = started
        super().__init__(
            uvicorn.Config(
                app,
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

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()


class TimedProtocol(H11Protocol):
    """uvicorn's HTTP/1.1, which closes surplus connections, slow requests and answers that nobody reads."""

    _slow: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._slow = self.loop.call_later(REQUEST_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._slow, self._unread = _cancel(self._slow), _cancel(self._unread)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._slow = self._slow or self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        super().data_received(data)
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._slow = _cancel(self._slow)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _cancel(self._unread)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
