"""A light MCP client: lines of JSON over pipes, or POSTs over loopback, nothing validated, one thread.

The official clients validate what they send and get, which costs as much as a server does and hides its figures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Sequence
from typing import Any, Literal, Protocol

from mcp_parts.wires import Wire

Revision = Literal["2025-06-18", "2026-07-28"]
Caller = Generator[dict[str, Any], dict[str, Any]]
"""Yields the arguments of its next call, and is sent the result of the last one."""

ABOUT = {"name": "mulligan-perf", "version": "1"}


class Opens(Protocol):
    def __call__(self) -> Wire: ...


class Client:
    """One client of one server, over one wire. `lanes` of a wire are the callers that have a call under way."""

    def __init__(self, wire: Wire, revision: Revision) -> None:
        self.wire, self.revision = wire, revision
        self._number = 0

    def hello(self) -> list[dict[str, Any]]:
        """The handshake (or, without one, the discovery), and the list of tools."""
        if self.revision == "2025-06-18":
            self.ask("initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": ABOUT})
            self.wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, 0)
        else:
            self.ask("server/discover", {})
        return self.ask("tools/list", {})["tools"]

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = self._send(method, params, 0)
        found, result = self._receive()
        assert found == number, f"{found} is answered, {number} was asked"
        return result

    def drive(self, tool: str, callers: Sequence[Caller], calls: int) -> list[float]:
        """Makes that many calls, each caller with one under way at any time. Returns the seconds that each took.

        Raises `RuntimeError` for an answer that is an error.
        """
        asked = dict[int, tuple[int, float]]()
        walls = list[float]()

        def call(lane: int, arguments: dict[str, Any]) -> None:
            since = time.perf_counter()
            asked[self._send("tools/call", {"name": tool, "arguments": arguments}, lane)] = lane, since

        for lane, caller in enumerate(callers):
            call(lane, next(caller))
        while asked:
            number, result = self._receive()
            lane, since = asked.pop(number)
            walls.append(time.perf_counter() - since)
            if result.get("isError"):
                raise RuntimeError(f"{tool} answered an error: {result['content']}")
            if len(walls) + len(asked) < calls:
                call(lane, callers[lane].send(result["structuredContent"]))
        return walls

    def _send(self, method: str, params: dict[str, Any], lane: int) -> int:
        if self.revision == "2026-07-28":
            params = {**params, "_meta": ENVELOPE}
        self._number += 1
        self.wire.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, lane)
        return self._number

    def _receive(self) -> tuple[int, dict[str, Any]]:
        while True:
            message = json.loads(self.wire.receive())
            if "result" in message:
                return message["id"], message["result"]
            if "error" in message:
                raise RuntimeError(f"answered with an error: {message['error']}")


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": ABOUT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
