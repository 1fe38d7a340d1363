"""uvicorn's HTTP/1.1, with an end to its patience: with requests that stay unfinished, and answers that stay unread."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 1024
"""Connections that may be open; a further one is closed at once."""

REQUEST_SECONDS = 45.0
"""From the first byte (or the connection) to the last byte of a request, whatever is done with it."""

UNREAD_SECONDS = 30.0
"""For a client that reads nothing of an answer that is too large to be on its way as a whole."""


class PatientProtocol(H11Protocol):
    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            transport.abort()
            return
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._late, self._unread = _cancelled(self._late), _cancelled(self._unread)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._wait_for_request()
        super().data_received(data)
        if self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.SEND_RESPONSE and self._in_no_chunks():
            self.send_400_response("The body is not in chunks.")
        between = self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if between or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._late = _cancelled(self._late)
        if between:  # what came was the end of a request that was answered before it was here
            self._wait_for_request()

    def _in_no_chunks(self) -> bool:
        """Whether what waits is no beginning of a chunk, though only a line's end would tell h11 so."""
        waits = self.conn.trailing_data[0].lstrip(b"\r\n")
        return bool(waits) and waits[:1] not in b"0123456789abcdefABCDEF"

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _cancelled(self._unread)

    def _wait_for_request(self) -> None:
        self._late = self._late or self.loop.call_later(REQUEST_SECONDS, self.transport.abort)


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
