"""What carries messages to a server and back: the pipes of a child process, or POSTs to a port on loopback."""

from __future__ import annotations

import itertools
import json
import os
import select
import socket
import subprocess
from collections.abc import Sequence
from typing import Any, Protocol

PATIENCE = 120
"""Seconds without a byte after which a server counts as stuck."""


class Wire(Protocol):
    """`send` takes the caller's number too; `receive` gives the JSON text of the next message from the server."""

    def send(self, message: dict[str, Any], lane: int) -> None: ...
    def receive(self) -> bytes: ...
    def close(self) -> None: ...


class Pipes:
    """Standard input and output of a child: one connection, whatever the callers."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        self._read, self._lines = b"", list[bytes]()

    def send(self, message: dict[str, Any], lane: int) -> None:
        text = json.dumps(message).encode() + b"\n"
        while text:
            text = text[os.write(self._in, text) :]

    def receive(self) -> bytes:
        while not self._lines:
            if not select.select([self._out], [], [], PATIENCE)[0]:
                raise TimeoutError(f"no answer within {PATIENCE} s")
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                raise EOFError("the server closed its output")
            *lines, self._read = (self._read + chunk).split(b"\n")
            self._lines = lines[::-1]
        return self._lines.pop()

    def close(self) -> None:
        self._stdin.close()
        self._stdout.close()


class Posts:
    """Streamable HTTP to one server, or to several by turns: each request goes to the next one, whoever sends it.

    A caller has a kept-alive connection to each server. A response whose status is not 2xx is an error of its request.
    """

    def __init__(self, ports: Sequence[int], path: str, revision: str) -> None:
        self._ports, self._path, self._revision = itertools.cycle(ports), path, revision
        self._session = ""
        self._sockets = dict[tuple[int, int], socket.socket]()
        self._asked = dict[socket.socket, int]()
        self._ready = list[bytes]()

    def send(self, message: dict[str, Any], lane: int) -> None:
        body, port = json.dumps(message).encode(), next(self._ports)
        lines = [
            f"POST {self._path} HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
        ]
        if message["method"] != "initialize":
            lines.append(f"MCP-Protocol-Version: {self._revision}")
        if self._revision >= "2026":
            lines.append(f"Mcp-Method: {message['method']}")
            if "name" in message["params"]:
                lines.append(f"Mcp-Name: {message['params']['name']}")
        if self._session:
            lines.append(f"Mcp-Session-Id: {self._session}")
        connection = self._connection(lane, port)
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        if "id" in message:
            self._asked[connection] = message["id"]
        else:
            self._response(connection)

    def _connection(self, lane: int, port: int) -> socket.socket:
        """The caller's; a new one where the server has closed it, having heard nothing for a while."""
        held = self._sockets.get((lane, port))
        if held is not None and select.select([held], [], [], 0)[0]:
            held.close()
            held = None
        if held is None:
            held = self._sockets[lane, port] = socket.create_connection(("127.0.0.1", port), PATIENCE)
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return held

    def receive(self) -> bytes:
        if not self._ready:
            readable, _, _ = select.select(self._asked, [], [], PATIENCE)
            if not readable:
                raise TimeoutError(f"no answer within {PATIENCE} s")
            for one in readable:
                self._ready += self._response(one)
                self._asked.pop(one)
        return self._ready.pop()

    def _response(self, connection: socket.socket) -> list[bytes]:
        """The messages of one whole response."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += _more(connection)
        head, body = data.split(b"\r\n\r\n", 1)
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        self._session = headers.get("mcp-session-id", self._session)
        if headers.get("transfer-encoding") == "chunked":
            while not body.endswith(b"0\r\n\r\n"):
                body += _more(connection)
            body = _unchunked(body)
        else:
            while len(body) < int(headers.get("content-length", 0)):
                body += _more(connection)
        if not status.startswith("HTTP/1.1 2"):
            error = {"message": f"{status}: {body.decode(errors='replace')[:500]}"}
            return [json.dumps({"jsonrpc": "2.0", "id": self._asked[connection], "error": error}).encode()]
        if headers.get("content-type", "").startswith("text/event-stream"):
            found = [line[5:].strip() for line in body.splitlines() if line.startswith(b"data:")]
            return [line for line in found if line]
        return [body] if body else []

    def close(self) -> None:
        for one in self._sockets.values():
            one.close()


def _more(connection: socket.socket) -> bytes:
    chunk = connection.recv(1 << 16)
    if not chunk:
        raise EOFError("the server closed the connection")
    return chunk


def _unchunked(body: bytes) -> bytes:
    whole = b""
    while body:
        size, rest = body.split(b"\r\n", 1)
        length = int(size, 16)
        whole, body = whole + rest[:length], rest[length + 2 :]
        if not length:
            break
    return whole
