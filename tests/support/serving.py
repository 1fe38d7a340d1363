"""`mulligan serve` as a process of its own, for tests: over HTTP or SSE on a free port, or over pipes.

    with served("--agent-id", "a", transport="http") as server:         # answers already; ends when the block does
        async with Client(over(server.url)) as client: ...
    with served(env={"MULLIGAN_TOKEN": TOKEN}) as server:
        async with Client(over(server.url, TOKEN)) as client: ...
    async with Client(by_stdio("--tools", "memory"), mode="legacy") as client: ...
    with piped() as server:                                             # raw lines, for what no client would say
        server.handshake()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert server.receive()["id"] == 1

The store is that of the test (MULLIGAN_HOME), unless `env` names another. What the process says on stderr is in `said()`.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from forked import forked
from mcp import StdioServerParameters

START = 60.0
"""Seconds that a server may take until it answers, on a machine that is busy."""
END = 30.0
"""Seconds that it may take to end once it was told to."""

MULLIGAN = (sys.executable, "-m", "mulligan", "serve")


class Running:
    """A server's process. `url` is where it answers, over HTTP and SSE; `stop` gives its exit status."""

    def __init__(self, command: list[str], env: Mapping[str, str], cwd: Path | None, stdin: int, stdout: int) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = forked(
            command, env={**os.environ, **env}, cwd=cwd, stdin=stdin, stdout=stdout, stderr=self._said
        )
        self.url = ""

    def said(self) -> str:
        """All that it has said on stderr so far."""
        return os.pread(self._said.fileno(), 1 << 24, 0).decode(errors="replace")

    def wait_until_said(self, pattern: str, seconds: float = START) -> re.Match[str]:
        """The first match in what it says on stderr."""
        until = time.monotonic() + seconds
        while True:
            if found := re.search(pattern, self.said()):
                return found
            assert self.process.poll() is None, f"the server ended with {self.process.returncode}: {self.said()}"
            assert time.monotonic() < until, f"it never said {pattern!r}: {self.said()}"
            time.sleep(0.02)

    def memory(self) -> int:
        """Bytes of memory that the process holds (its resident set)."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def stop(self, by: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(by)
        return self.ended()

    def ended(self, seconds: float = END) -> int:
        """Its exit status, once it has ended by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the server did not end: {self.said()}") from None

    @contextmanager
    def closing(self) -> Generator[Running]:
        try:
            yield self
        finally:
            self.clean_up()

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._said.close()


@contextmanager
def served(
    *arguments: str, transport: str = "http", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Generator[Running]:
    """A server on a free port of loopback that answers already. When the block ends it is told to end, and has to."""
    command = [*MULLIGAN, "--transport", transport, "--port", "0", *arguments]
    running = Running(command, env or {}, cwd, subprocess.DEVNULL, subprocess.DEVNULL)
    try:
        running.url = running.wait_until_said(r"Serving MCP at (http://\S+)")[1]
        yield running
        running.stop()
    finally:
        running.clean_up()


def by_stdio(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> StdioServerParameters:
    """What `mcp.Client` starts the server by, over stdio."""
    command, *first = MULLIGAN
    return StdioServerParameters(command=command, args=[*first, *arguments], env={**os.environ, **(env or {})}, cwd=cwd)


@asynccontextmanager
async def over(url: str, token: str | None = None) -> AsyncGenerator[Any]:
    """The transport that `mcp.Client` takes: Streamable HTTP or, at a URL that ends in /sse, SSE; bearing this token."""
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if url.endswith("/sse"):
        async with sse_client(url, headers=headers) as streams:
            yield streams
    else:
        async with (
            create_mcp_http_client(headers=headers) as http,
            streamable_http_client(url, http_client=http) as streams,
        ):
            yield streams


class Piped(Running):
    """A server over pipes, spoken to in raw lines."""

    def __init__(self, command: list[str], env: Mapping[str, str], cwd: Path | None) -> None:
        super().__init__(command, env, cwd, subprocess.PIPE, subprocess.PIPE)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reading: threading.Thread | None = None

    @property
    def input(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdin)

    def send(self, message: Any) -> None:
        """Bytes as they are; anything else as a line of JSON."""
        self.input.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.input.flush()

    def close_input(self) -> None:
        self.input.close()

    def receive(self, seconds: float = START) -> Any:
        """The next line of the server's, as JSON. Fails when none comes in time, or it is no JSON."""
        return json.loads(self.line(seconds))

    def line(self, seconds: float = START) -> bytes:
        """The next line of stdout, read from the first call on; b"" at its end."""
        if self._reading is None:
            self._reading = threading.Thread(target=self._read, daemon=True)
            self._reading.start()
        try:
            return self._lines.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no line in {seconds} s; stderr: {self.said()}") from None

    def answer(self, id: Any, seconds: float = START) -> Any:
        """The answer to this id; what else comes before it is passed over."""
        until = time.monotonic() + seconds
        while (message := self.receive(max(until - time.monotonic(), 0.01))).get("id") != id or "method" in message:
            pass
        return message

    def ask(self, method: str, params: Any = None, id: Any = 1) -> Any:
        self.send({"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})})
        return self.answer(id)

    def handshake(self, revision: str = "2025-06-18") -> Any:
        """What a client of the older revisions says first; the server's answer."""
        about = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        answer = self.ask("initialize", about, id="handshake")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, tool: str, arguments: Any, id: Any = 1) -> Any:
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments}, id)["result"]

    def _read(self) -> None:
        output = cast("IO[bytes]", self.process.stdout)
        try:
            while line := output.readline():
                self._lines.put(line)
        except ValueError:  # closed under us when the test is over
            pass
        self._lines.put(b"")
        self._lines.put(b"")  # for whoever asks again


@contextmanager
def piped(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Generator[Piped]:
    """A server over stdio. When the block ends its input is closed, and it has to end by itself."""
    running = Piped([*MULLIGAN, *arguments], env or {}, cwd)
    try:
        yield running
        if not running.input.closed:
            running.close_input()
        while running.line(END):
            pass
        running.ended()
    finally:
        running.clean_up()
