"""HTTP as bytes over a socket: requests that may be broken, and answers read strictly.

async with Socket(port) as socket:
    answer = await socket.exchange(posted(b"{...}", {"Accept": "..."}))
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from hostile import Values

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Answer:
    """status 0: the connection was closed without one. messages: of JSON-RPC, from JSON or from a stream of events."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def messages(self) -> Sequence[bytes]:
        kind = self.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            events = self.body.replace(b"\r\n", b"\n").split(b"\n\n")
            return [data for event in events if (data := _data(event))]
        return [self.body] if kind.startswith("application/json") and self.body else []


def _data(event: bytes) -> bytes:
    return b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))


class Socket:
    """One connection. It opens when it is first needed, and again after the server has closed it."""

    def __init__(self, port: int, bound: float) -> None:
        self._port, self._bound = port, bound
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.all = bytearray()
        """All that was ever received, if `keeps`."""
        self.keeps = False

    async def __aenter__(self) -> Socket:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
        self._reader = self._writer = None

    async def send(self, data: bytes) -> None:
        if self._writer is None or self._writer.is_closing():
            opened = asyncio.open_connection("127.0.0.1", self._port, limit=1 << 26)
            self._reader, self._writer = await asyncio.wait_for(opened, self._bound)
        with suppress(OSError):
            self._writer.write(data)
            async with asyncio.timeout(self._bound):
                await self._writer.drain()

    async def exchange(self, data: bytes, *, head: bool = False) -> Answer:
        """The answer to what may be a request; a connection that the server closed is opened again with the next."""
        stale = self._writer is not None
        await self.send(data)
        answer = await self.answer(head=head)
        if not answer.status and stale:  # closed by the server after the answer before
            await self.send(data)
            answer = await self.answer(head=head)
        return answer

    async def answer(self, *, head: bool = False) -> Answer:
        """The next answer. Raises `TimeoutError`."""
        assert self._reader is not None
        try:
            async with asyncio.timeout(self._bound):
                return await self._answer(self._reader, head)
        except (asyncio.IncompleteReadError, OSError):
            await self.close()
            return Answer()

    async def first_line(self, seconds: float) -> bytes:
        """What comes first, if anything comes so soon."""
        assert self._reader is not None
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._reader.readuntil(b"\r\n")
        return b""

    async def _answer(self, reader: asyncio.StreamReader, head: bool) -> Answer:
        first = (await reader.readuntil(b"\r\n")).decode("latin-1")
        status, headers = int(first.split(" ", 2)[1]), dict[str, str]()
        while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        if status == 100:
            return await self._answer(reader, head)
        body = b"" if head or status in (204, 304) else await _body(reader, headers)
        if self.keeps:
            self.all += first.encode() + repr(headers).encode() + body
        if headers.get("connection", "").lower() == "close":
            await self.close()
        return Answer(status, headers, body)


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        whole = b""
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            whole += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return whole
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()


def request(method: str, path: str, headers: Headers, body: bytes = b"", *, length: bool = True) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if length and method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def chunked(head: bytes, body: bytes, sizes: int) -> bytes:
    """The same request with its body in chunks. `head` without a length."""
    parts = [body[at : at + sizes] for at in range(0, len(body), sizes)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Wrapping:
    """Requests around a message, broken in every way that HTTP has. `sessions`: ids that there are, also of others."""

    def __init__(self, chance: Random, host: str, path: str) -> None:
        self.chance, self.values = chance, Values(chance)
        self.host, self.path = host, path
        self.sessions: list[str] = []
        self.doomed = "0" * 32
        """A session that may be ended."""

    def broken_headers(self, headers: Headers, body: bytes) -> bytes:
        pick, given = self.chance.choice, dict(headers)
        name = pick(
            [*given, "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Origin", "Last-Event-Id"]
        )
        kind = self.chance.randrange(8)
        if kind == 0:
            given.pop(name, None)
        elif kind == 1:
            given[name] = _one_line(self.values.text()) or "\x00"
        elif kind == 2 and self.sessions:
            given["Mcp-Session-Id"] = pick(self.sessions)
        elif kind == 3:
            return request("POST", self.path, [*given.items(), (name, _one_line(self.values.text()))], body)
        elif kind == 4:
            given[pick(("Origin", "Host"))] = pick(
                ("http://evil.example", "null", "evil.example", "127.0.0.1:1", "", "[::1")
            )
        elif kind == 5:
            given[pick(("Mcp-Param-Query", "Mcp-Param-agent_id", "X-Forwarded-For", "Cookie"))] = "=?base64?%%%?="
        elif kind == 6:
            given[name] = "x" * pick((9_000, 70_000))
        else:
            method = pick(("GET", "DELETE", "PUT", "OPTIONS", "TRACE", "PATCH", "BREW", "get", "POST"))
            if method == "DELETE":
                given["Mcp-Session-Id"] = self.doomed
            paths = (self.path, "/", "/mcp/", "/..%2f", "/%00", "//x", "*", "/" + "a" * 3_000)
            return request(method, pick(paths), list(given.items()), body)
        return request("POST", self.path, list(given.items()), body)

    def broken_body(self, headers: Headers, body: bytes) -> bytes:
        """A length or chunks that are not what comes."""
        head, pick = request("POST", self.path, headers, length=False), self.chance.choice
        bare, kind = head.removesuffix(b"\r\n\r\n"), self.chance.randrange(6)
        if kind == 0:
            size = pick((b"-1", b"+5", b"0x10", b"1e3", b"9" * 30, b"", b"5, 6", b"999999999999"))
            return bare + b"\r\nContent-Length: " + size + b"\r\n\r\n" + body
        if kind == 1:
            return bare + b"\r\nContent-Length: %d\r\n\r\n" % max(0, len(body) - 5) + body
        chunks = bare + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        if kind == 2:
            return chunked(chunks, body, pick((1, 7, 5_000)) if len(body) < 2_000 else 5_000)
        if kind == 3:
            return chunks + pick(
                (b"zz\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"5\r\nab", b"\r\n\r\n", b"1;" + b"x" * 20_000)
            )
        if kind == 4:
            both = b"\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
            return chunked(bare + both, body, 4_000)
        return bare + b"\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def no_request(self) -> bytes:
        pick = self.chance.choice
        return pick(
            (
                self.chance.randbytes(self.chance.randrange(1, 200)) + b"\r\n\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                b"GET " + self.path.encode() + b"\r\n\r\n",
                b"GET " + self.path.encode() + b" HTTP/9.9\r\n\r\n",
                b"POST\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 5_000 + b"\r\n",
                b"GET / HTTP/1.1\r\n : b\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                b"POST /" + b"%" * 70_000 + b" HTTP/1.1\r\n\r\n",
                b"\r\n" * 50,
                b"\x00" * 100,
            )
        )


def _one_line(text: str) -> str:
    return text.replace("\r", "").replace("\n", "")[:9_000]
