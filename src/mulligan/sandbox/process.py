"""One running job in asyncio: its pipes, its control socket, its end."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import secrets
import shutil
import socket
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from typing import Self

from mulligan.core.errors import SandboxError
from mulligan.core.protocols import Job
from mulligan.sandbox import client, policy
from mulligan.sandbox.levels import Level

# Seconds beyond a job's own that its supervisor has for killing and cleaning up.
_GRACE = 15.0


def scratch_name() -> str:
    """A path for a job's folder. The supervisor makes and removes it, so it goes even when Mulligan is killed."""
    return os.path.join(os.path.realpath(tempfile.gettempdir()), f"mulligan-{secrets.token_hex(8)}")


@dataclass(frozen=True)
class Ended:
    """How the supervisor says a job ended. `reason` is "time", "given up", a limit in words, or empty."""

    exit_code: int | None
    signal: int = 0
    reason: str = ""


class Capture(asyncio.Protocol):
    """Keeps `most` bytes of a stream, half of them from its beginning and half from its end; the rest goes by."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._seen += len(data)
        room = self._most - self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > self._most:  # not at every piece, so that many small ones stay cheap
            del self._tail[: len(self._tail) - self._half]

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    @property
    def truncated(self) -> bool:
        return self._seen > self._most

    def text(self) -> str:
        """What was kept, with a line that says how much is missing. No character is cut in two."""
        if not self.truncated:
            return (self._head + self._tail).decode("utf-8", "replace")
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        tail = self._tail[len(self._tail) - self._half :]
        inside = next((n for n, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
        return f"{head}\n[sandbox] {self._seen - self._most} bytes left out\n{tail[inside:].decode('utf-8', 'replace')}"


class Lines(asyncio.Protocol):
    """Cuts a stream into lines of at most `most` bytes, and stops reading while nobody takes them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: deque[bytes] = deque()
        self._part = bytearray()
        self._waiting = 0
        self._closed = False
        self._changed = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.ReadTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        first, *rest = data.split(b"\n")
        self._part += first[: self._most - len(self._part)]
        for piece in rest:
            self._lines.append(bytes(self._part))
            self._waiting += len(self._part) + 1
            self._part = bytearray(piece[: self._most])
        if self._waiting > self._most and self._transport:
            self._transport.pause_reading()
        self._changed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed = True
        self._transport = None
        if self._part:
            self._lines.append(bytes(self._part))
        self._changed.set()

    async def next(self) -> str | None:
        while not self._lines:
            if self._closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        line = self._lines.popleft()
        self._waiting -= len(line) + 1
        if self._waiting <= self._most and self._transport:
            self._transport.resume_reading()
        return line.decode("utf-8", "replace")


class Feed(asyncio.Protocol):
    """The writing end of the job's standard input. What a job that has gone does not read is dropped."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.gone = False

    def pause_writing(self) -> None:
        self._open.clear()

    def resume_writing(self) -> None:
        self._open.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._open.set()

    async def room(self) -> None:
        await self._open.wait()


class Process:
    """A started job. `end` must be called, whatever happened: it kills what is left and waits until it is gone."""

    def __init__(self, control: socket.socket, scratch: str, job: Job, level: str) -> None:
        self._control = control
        self.scratch = scratch
        self._job = job
        self.level = level
        self._reading: list[asyncio.ReadTransport] = []
        self._stdin: asyncio.WriteTransport | None = None
        self._deadline = time.monotonic() + job.seconds + _GRACE

    @classmethod
    async def start(cls, job: Job, level: Level, *, lines: bool) -> Self:
        """Raises `InvalidInput` or `SandboxError`. With `lines` it is a `Channel`; else call `finish`."""
        scratch = scratch_name()
        pipes: list[int] = []
        try:
            spec = policy.specify(job, level, scratch)
            for _ in range(2 if lines else 3):
                pipes += os.pipe()
            errors = os.open(os.devnull, os.O_WRONLY) if lines else pipes[5]
            control, first = client.submit(spec, pipes[0], pipes[3], errors)
        except BaseException:
            for fd in pipes:
                os.close(fd)
            raise
        for fd in (pipes[0], pipes[3], errors):
            os.close(fd)
        process = cls(control, scratch, job, level.name)
        try:
            await process._connect(pipes[1], pipes[2], None if lines else pipes[4])
            control.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(control, first)
        except BaseException:
            await process.end()
            raise
        return process

    @classmethod
    async def adopt(cls, begun: client.Begun, job: Job, level: str) -> Self:
        """A process that was started before there was a loop; call `finish`."""
        process = cls(begun.control, begun.scratch, job, level)
        begun.control.setblocking(False)
        await process._read(begun.stdout, begun.stderr)
        return process

    async def _connect(self, stdin: int, stdout: int, stderr: int | None) -> None:
        loop = asyncio.get_running_loop()
        most = self._job.output
        self._stdin, self._feed = await loop.connect_write_pipe(Feed, os.fdopen(stdin, "wb", 0))
        if stderr is None:
            transport, self._lines = await loop.connect_read_pipe(lambda: Lines(most), os.fdopen(stdout, "rb", 0))
            self._reading.append(transport)
            return
        await self._read(stdout, stderr)

    async def _read(self, stdout: int, stderr: int) -> None:
        loop, most = asyncio.get_running_loop(), self._job.output
        transport, self._out = await loop.connect_read_pipe(lambda: Capture(most), os.fdopen(stdout, "rb", 0))
        self._reading.append(transport)
        transport, self._err = await loop.connect_read_pipe(lambda: Capture(most), os.fdopen(stderr, "rb", 0))
        self._reading.append(transport)

    async def send(self, line: str) -> None:
        assert self._stdin is not None
        if not self._feed.gone:
            self._stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")
            await self._feed.room()

    async def receive(self) -> str | None:
        return await self._lines.next()

    async def finish(self, stdin: str) -> tuple[Capture, Capture, Ended]:
        """Feed the job, and wait for its end and that of its output. Raises `SandboxError` if it never began."""
        if self._stdin is not None:
            self._stdin.write(stdin.encode("utf-8", "surrogatepass"))
            self._stdin.write_eof()
        ended = _ended(await self._verdict())
        await asyncio.wait([self._out.closed, self._err.closed], timeout=_GRACE)
        return self._out, self._err, ended

    async def _verdict(self) -> str:
        loop = asyncio.get_running_loop()
        said = b""
        try:
            async with asyncio.timeout(max(1.0, self._deadline - time.monotonic())):
                while data := await loop.sock_recv(self._control, 65536):
                    said += data
        except TimeoutError:
            raise SandboxError("The sandbox's supervisor did not report how the job ended.") from None
        except ConnectionResetError:
            pass
        return said.decode("utf-8", "replace")

    async def end(self) -> None:
        """Give the job up if it still runs, and wait until it and all it started is gone. May be called twice."""
        if self._stdin and not self._stdin.is_closing():  # which a job that has just died makes it before it is gone
            self._stdin.abort()  # close() would wait for a job that does not read
        for transport in self._reading:
            transport.close()
        if self._control.fileno() < 0:
            return
        try:
            with contextlib.suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
            with contextlib.suppress(SandboxError):
                self._deadline = time.monotonic() + _GRACE
                await self._verdict()
        finally:
            self._control.close()
            shutil.rmtree(self.scratch, ignore_errors=True)


def _ended(verdict: str) -> Ended:
    word, _, rest = verdict.partition(" ")
    if word == "exited":
        return Ended(int(rest))
    if word == "killed":
        number, _, reason = rest.partition(" ")
        return Ended(None, int(number), reason)
    raise SandboxError(f"The job could not be started: {rest or 'the supervisor ended without a message'}")
