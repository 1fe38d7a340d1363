"""A client of an MCP server that is nobody's SDK: lines of JSON, written and read by hand. Knows nothing of Mulligan."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

PATIENCE = 30.0
"""Seconds for one answer; a server that takes longer hangs."""

Message = dict[str, Any]


class RawStdio:
    """Speaks one revision of the handshake. `told`: notifications that came in while an answer was waited for."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.told: list[Message] = []
        self._id = 0

    async def hello(self, version: str) -> Message:
        """The handshake; what the server said of itself."""
        info = {"name": "by-hand", "version": "1"}
        said = await self.ask("initialize", protocolVersion=version, capabilities={}, clientInfo=info)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return said["result"]

    async def ask(self, method: str, **params: Any) -> Message:
        """The whole answer to a request, whether result or error."""
        id = await self.begin(method, **params)
        return await self.answer(id)

    async def begin(self, method: str, **params: Any) -> int:
        """Sends a request, and gives its id."""
        self._id += 1
        await self.send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    async def call(self, tool: str, **arguments: Any) -> Message:
        """The result of a tool. Fails where the protocol itself answered with an error."""
        answer = await self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in answer, answer
        return answer["result"]

    async def answer(self, id: int) -> Message:
        while True:
            message = await self.receive()
            if message.get("id") == id:
                return message
            assert "method" in message, f"an answer that nobody asked for: {message}"
            self.told.append(message)

    async def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def receive(self) -> Message:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = await self.process.stdout.readline()
        assert line, "the server closed its output"
        return json.loads(line)

    async def goodbye(self) -> int:
        """Closes the server's input; its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()


@asynccontextmanager
async def raw_stdio(command: Sequence[str], env: Mapping[str, str], cwd: str | None = None) -> AsyncGenerator[RawStdio]:
    """The server as a process of its own, killed at the end if it is still there."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=sys.stderr,
        env=dict(env),
        cwd=cwd,
        limit=64 * 1024 * 1024,
    )
    try:
        yield RawStdio(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
