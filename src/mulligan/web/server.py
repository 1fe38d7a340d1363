"""The uvicorn server that faces run, with its limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 1024
"""Connections that may be open; a further one is closed at once."""

REQUEST_SECONDS = 45.0
"""From the first byte (or the connection) to the last byte of a request."""

UNREAD_SECONDS = 30.0
"""How long a client may leave an answer unread that is too large to send as a whole."""


class Server(uvicorn.Server):
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
