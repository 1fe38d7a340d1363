"""Requests over HTTP as no SDK would send them: `Poster` for whole ones with any header, `connected` for bytes."""

from __future__ import annotations

import json
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from raw_http import events

PATIENCE = 30.0
MODERN = "2026-07-28"
OLDER = "2025-11-25"

Answer = tuple[int, Mapping[str, str], bytes]


def ping(id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


class Poster:
    """Requests to one URL, each over a connection of its own, with these headers beside the usual ones."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self._url, self.headers = urlsplit(url), dict(headers or {})

    def post(self, body: Any, headers: Mapping[str, str] | None = None, path: str = "") -> Answer:
        """Bytes go as they are, anything else as JSON. The status, the headers (by lower-case names), the body."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", data, {"Content-Type": "application/json", **(headers or {})}, path)

    def request(
        self, method: str, body: bytes | None = None, headers: Mapping[str, str] | None = None, path: str = ""
    ) -> Answer:
        connection = HTTPConnection(self._url.hostname or "", self._url.port, timeout=PATIENCE)
        try:
            sent = {"Accept": "application/json, text/event-stream", **self.headers, **(headers or {})}
            connection.putrequest(method, path or self._url.path, skip_host="Host" in sent)
            for name, value in {**sent, **({} if body is None else {"Content-Length": str(len(body))})}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def status(self, body: Any, headers: Mapping[str, str] | None = None) -> int:
        return self.post(body, headers)[0]

    def session(self) -> str:
        """A session of an older revision, past its handshake."""
        about = {"protocolVersion": OLDER, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        _, headers, _ = self.post({**ping(), "method": "initialize", "params": about})
        session = headers["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {"Mcp-Session-Id": session})
        return session


def modern(method: str, params: Mapping[str, Any] | None = None, id: Any = 1) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of the newest revision, and the headers that go with it."""
    about = {"name": "raw", "version": "1"}
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": MODERN, f"{prefix}clientInfo": about, f"{prefix}clientCapabilities": {}}
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if params and "name" in params:
        headers["Mcp-Name"] = params["name"]
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": meta}}, headers


@contextmanager
def connected(url: str) -> Generator[socket.socket]:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
        yield connection


def head(url: str, *lines: str) -> bytes:
    """The beginning of a POST, without the line that ends it."""
    parts = urlsplit(url)
    usual = ("Content-Type: application/json", "Accept: application/json, text/event-stream")
    return "\r\n".join([f"POST {parts.path} HTTP/1.1", f"Host: {parts.netloc}", *usual, *lines, ""]).encode()


class Stream:
    """An open event stream: `path` is where to post to, for SSE; `next` gives the next event's data as JSON."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        self._connection.request("GET", parts.path, headers={"Accept": "text/event-stream", **(headers or {})})
        self.response = self._connection.getresponse()
        assert self.response.status == 200, (self.response.status, self.response.read())
        self._events = events(self.response)
        self.path = next(self._events)[1] if parts.path == "/sse" else ""

    def next(self) -> Any:
        return json.loads(next(self._events)[1])

    def ended(self) -> bool:
        """Whether the server ends it in good form; waits for it."""
        return next(self._events, None) is None

    def close(self) -> None:
        self._connection.close()
