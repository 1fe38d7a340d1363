"""A server of the older event streams, spoken to as if it were a line: what is sent is posted, what comes is a line each.

with served(transport="sse") as server, streamed(server) as line:
    lane = StdioLane(line, seed=1)
"""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, cast
from urllib.parse import urlsplit

from serving import Piped, Running

POSTED = (202, 400, 413)
TYPE = {"Content-Type": "application/json"}


class SseLine:
    """What `Piped` is to a lane. An error that a post is answered with counts as a line."""

    def __init__(self, server: Running) -> None:
        at = urlsplit(server.url)
        self._server, self._host, self._path = server, at.netloc, at.path
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._stream = http.client.HTTPConnection(self._host, timeout=120)
        self._posting = http.client.HTTPConnection(self._host, timeout=120)
        self._stream.request("GET", self._path, headers={"Accept": "text/event-stream"})
        self._socket = self._stream.sock
        self._events = self._stream.getresponse()
        assert self._events.status == 200
        self._endpoint = self._event().decode()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, data: Any) -> None:
        body = data.rstrip(b"\n") if isinstance(data, bytes) else json.dumps(data).encode()
        self._posting.request("POST", self._endpoint, body, TYPE)
        answer = self._posting.getresponse()
        said = answer.read()
        assert answer.status in POSTED, f"{answer.status}: {said[:500]!r} to {body[:500]!r}"
        if answer.status != 202 and b'"jsonrpc"' in said:
            self._lines.put(said)

    def line(self, seconds: float) -> bytes:
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no event in {seconds} s; stderr: {self._server.said()[-3_000:]}") from None

    def handshake(self, revision: str) -> Any:
        about = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about})
        answer = json.loads(self.line(60))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def memory(self) -> int:
        return self._server.memory()

    def said(self) -> str:
        return self._server.said()

    def close(self) -> None:
        self._posting.close()
        with suppress(OSError):  # a thread reads, and would keep it open
            cast(socket.socket, self._socket).shutdown(socket.SHUT_RDWR)
        self._stream.close()
        self._events.close()

    def _read(self) -> None:
        try:
            while event := self._event():
                self._lines.put(event)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):  # closed under us
            pass
        self._lines.put(b"")

    def _event(self) -> bytes:
        """The data of the next event; b"" at the end."""
        data = list[bytes]()
        while line := self._events.readline():
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif data and not line.strip():
                return b"\n".join(data)
        return b""


@contextmanager
def streamed(server: Running) -> Generator[Piped]:
    line = SseLine(server)
    try:
        yield cast(Piped, line)
    finally:
        line.close()
