"""A light MCP client: lines of JSON over pipes, or POSTs over loopback, nothing validated, one thread.

The official clients validate what they send and get, which costs as much as a server does and hides its figures.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_parts.wires import Wire

Revision = Literal["2025-06-18", "2026-07-28"]
Caller = Generator[dict[str, Any], dict[str, Any]]
"""Yields the arguments of its next call, and is sent the result of the last one."""
Visitor = Generator[tuple[str, dict[str, Any]], dict[str, Any]]
"""As a caller, of several tools: yields a tool and its arguments."""

ABOUT = {"name": "mulligan-perf", "version": "1"}


@dataclass
class Visited:
    """What a visit came to.

    Attributes:
        walls: the seconds of each call that was answered, by its tool.
        errors: how often each error was answered.
        seconds: how long the visit lasted.
    """

    walls: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    errors: Counter[str] = field(default_factory=Counter[str])
    seconds: float = 0.0


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

    def visit(self, visitors: Sequence[Visitor], seconds: float) -> Visited:
        """Lets each visitor have one call under way until the time is up. An answer that is an error ends no visit:
        the visitor is sent an empty result."""
        asked, visited = dict[int, tuple[int, str, float]](), Visited()

        def call(lane: int, tool: str, arguments: dict[str, Any]) -> None:
            since = time.perf_counter()
            asked[self._send("tools/call", {"name": tool, "arguments": arguments}, lane)] = lane, tool, since

        began = time.perf_counter()
        for lane, visitor in enumerate(visitors):
            call(lane, *next(visitor))
        while asked:
            message = self._next()
            lane, tool, since = asked.pop(message["id"])
            result: dict[str, Any] = message.get("result", {})
            if "error" in message or result.get("isError"):
                visited.errors[str(message.get("error") or result["content"])[:200]] += 1
            else:
                visited.walls.setdefault(tool, []).append(time.perf_counter() - since)
            if time.perf_counter() - began < seconds:
                call(lane, *visitors[lane].send(result.get("structuredContent") or {}))
        visited.seconds = time.perf_counter() - began
        return visited

    def _send(self, method: str, params: dict[str, Any], lane: int) -> int:
        if self.revision == "2026-07-28":
            params = {**params, "_meta": ENVELOPE}
        self._number += 1
        self.wire.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}, lane)
        return self._number

    def _receive(self) -> tuple[int, dict[str, Any]]:
        message = self._next()
        if "error" in message:
            raise RuntimeError(f"answered with an error: {message['error']}")
        return message["id"], message["result"]

    def _next(self) -> dict[str, Any]:
        """The next answer; what a server says meanwhile is passed over."""
        while True:
            message: dict[str, Any] = json.loads(self.wire.receive())
            if "result" in message or "error" in message:
                return message


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": ABOUT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
