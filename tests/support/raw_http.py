"""MCP over HTTP as nobody's SDK speaks it: requests and streams by hand, standard library only."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 30.0
"""Seconds for one answer; a server that takes longer hangs."""

Message = dict[str, Any]


class RawHttp:
    """Streamable HTTP of the older revisions: `session` is the Mcp-Session-Id that the handshake brought, if it did."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url, self._headers = urlsplit(url), dict(headers or {})
        self.session: str | None = None
        self._id = 0

    def handshake(self, revision: str) -> Message:
        """What the server answered."""
        about = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.ask("initialize", about)
        if revision >= "2025-06-18":  # from then on each request says what was agreed on
            self._headers["MCP-Protocol-Version"] = answer["result"]["protocolVersion"]
        status, _ = self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert status == 202
        return answer

    def ask(self, method: str, params: Any = None) -> Message:
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, **({} if params is None else {"params": params})}
        status, answers = self.post(message)
        assert status == 200, (status, answers)
        (answer,) = [one for one in answers if one.get("id") == self._id and "method" not in one]
        return answer

    def call(self, tool: str, arguments: Any) -> Any:
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def post(self, message: Any) -> tuple[int, list[Message]]:
        """The status, and all messages of the answer, whether it is JSON or a stream."""
        return self.request("POST", json.dumps(message).encode())

    def request(self, method: str, body: bytes | None = None) -> tuple[int, list[Message]]:
        with self._asked(method, body) as response:
            self.session = response.getheader("Mcp-Session-Id") or self.session
            if (response.getheader("Content-Type") or "").startswith("text/event-stream"):
                return response.status, [json.loads(data) for _, data in events(response) if data]
            text = response.read()
            return response.status, [json.loads(text)] if text.startswith(b"{") else []

    @contextmanager
    def begun(self, message: Any) -> Generator[Iterator[Message]]:
        """The messages of the answer as they come; the connection is dropped when the block ends."""
        with self._asked("POST", json.dumps(message).encode()) as response:
            assert response.status == 200, response.status
            yield (json.loads(data) for _, data in events(response) if data)

    @contextmanager
    def _asked(self, method: str, body: bytes | None) -> Generator[HTTPResponse]:
        headers = {"Accept": "application/json, text/event-stream", **self._headers}
        headers |= {"Content-Type": "application/json"} if body is not None else {}
        headers |= {"Mcp-Session-Id": self.session} if self.session else {}
        with _connection(self._url.hostname, self._url.port) as connection:
            connection.request(method, self._url.path, body, headers)
            yield connection.getresponse()


class RawSse:
    """HTTP with server-sent events, of 2024-11-05: one stream to read from, and an address to post to."""

    def __init__(self, response: HTTPResponse, url: str) -> None:
        self._events, self._url, self._id = events(response), urlsplit(url), 0
        kind, self._address = next(self._events)
        assert kind == "endpoint", kind

    def handshake(self, revision: str) -> Message:
        about = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.ask("initialize", about)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def ask(self, method: str, params: Any = None) -> Message:
        self._id += 1
        self.send(
            {"jsonrpc": "2.0", "id": self._id, "method": method, **({} if params is None else {"params": params})}
        )
        while (message := self.receive()).get("id") != self._id:
            assert "method" in message, f"an answer that nobody asked for: {message}"
        return message

    def call(self, tool: str, arguments: Any) -> Any:
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def send(self, message: Any) -> None:
        with _connection(self._url.hostname, self._url.port) as connection:
            connection.request(
                "POST", self._address, json.dumps(message).encode(), {"Content-Type": "application/json"}
            )
            assert connection.getresponse().status == 202

    def receive(self) -> Message:
        kind, data = next(self._events)
        assert kind == "message", (kind, data)
        return json.loads(data)


@contextmanager
def raw_sse(url: str) -> Generator[RawSse]:
    """The stream at this address, closed when the block ends."""
    parts = urlsplit(url)
    with _connection(parts.hostname, parts.port) as connection:
        connection.request("GET", parts.path, headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        assert response.status == 200, response.status
        yield RawSse(response, url)


def events(response: HTTPResponse) -> Iterator[tuple[str, str]]:
    """Server-sent events by kind and data; comments are passed over."""
    kind, data = "message", list[str]()
    while line := response.readline():
        text = line.decode().rstrip("\r\n")
        name, _, value = text.partition(":")
        if not text:
            if data:
                yield kind, "\n".join(data)
            kind, data = "message", []
        elif name == "event":
            kind = value.strip()
        elif name == "data":
            data.append(value.removeprefix(" "))


@contextmanager
def _connection(host: str | None, port: int | None) -> Generator[HTTPConnection]:
    connection = HTTPConnection(host or "", port, timeout=PATIENCE)
    try:
        yield connection
    finally:
        connection.close()
