"""Drives a server over Streamable HTTP with hostile requests among good ones, over several connections at once.

async with asyncio.timeout(...):
    lane = await HttpLane.open(server, seed=1, revision="2026-07-28", token=TOKEN)
    await lane.drive(5_000)
    print(lane.report())
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, cast
from urllib.parse import urlsplit

from hostile_http import Answer, Headers, Socket, Wrapping, request
from hostile_lane import CANARIES, Ids, Right
from hostile_ledger import Ledger, strict
from hostile_messages import MAKING, META, MODERN, Listed, Message, Messages, by_name, id_key, ids_in, judged
from serving import Running

Json = Any

BOUND = 60.0
"""Seconds that any answer may take while the machine is busy with others."""
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
KNOWN = (
    0,
    100,
    200,
    202,
    204,
    400,
    401,
    403,
    404,
    405,
    406,
    408,
    409,
    411,
    413,
    414,
    415,
    417,
    421,
    426,
    429,
    431,
    501,
    503,
    505,
)


class HttpLane:
    """Several connections, all of one client, and one of somebody whose requests are good."""

    def __init__(
        self, server: Running, seed: int, revision: str, token: str | None, ids: Ids = (), never: bytes = b""
    ) -> None:
        at = urlsplit(server.url)
        self._ids, self._never = ids, never
        self.server, self.seed, self.revision, self.token = server, seed, revision, token
        self.port, self.path = cast(int, at.port), at.path
        self.chance = Random(seed)
        self.wrapping = Wrapping(self.chance, at.netloc, at.path)
        self.sent = self.canaries = self.most = 0
        self.slowest = 0.0
        self.kinds: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self._validating = Ledger()
        self._right = Right()
        self._good, self._turn = Socket(self.port, BOUND), asyncio.Lock()
        self._making = Messages(seed, Listed(), revision=revision)
        self._session = self._other = ""
        self._slow: list[Socket] = []

    @classmethod
    async def open(
        cls,
        server: Running,
        seed: int,
        *,
        revision: str = "2025-06-18",
        token: str | None = None,
        ids: Ids = (),
        never: bytes = b"",
    ) -> HttpLane:
        """ids: of others, to be asked for beside its own. never: what no answer may hold, in lower case."""
        lane = cls(server, seed, revision, token, ids, never)
        lane._session = await lane._handshake()
        lane._other = await lane._handshake()
        lane.wrapping.sessions += [one for one in (lane._other, lane._session) if one]
        lane.wrapping.doomed = await lane._handshake() or "0" * 32
        lane._making = Messages(seed, await lane._listed(), revision=revision)
        return lane

    async def drive(self, count: int, connections: int = 6) -> None:
        """`count` requests, of which most hold a hostile message and some are no requests at all."""
        until = self.sent + count
        await self._begin_slow()
        await asyncio.gather(*(self._work(until) for _ in range(connections)))
        await self._canary()
        self.most = max(self.most, self.server.memory())

    async def close(self) -> None:
        for socket in (self._good, *self._slow):
            await socket.close()

    def report(self) -> str:
        return (
            f"seed {self.seed}, HTTP {self.revision}: {self.sent} hostile requests {dict(self.kinds)}, {self.canaries} "
            f"good ones between, slowest {self.slowest:.2f} s, memory {self.most / 2**20:.0f} MB; "
            f"{dict(sorted(self.statuses.items()))}; {dict(sorted(self._validating.codes.items()))}"
        )

    # --- hostile ones -------------------------------------------------------------------------------------------

    async def _work(self, until: int) -> None:
        socket = Socket(self.port, BOUND)
        try:
            while self.sent < until:
                self.sent += 1
                turn = self.sent
                await self._one(socket)
                if turn % 50 == 0:
                    await self._canary()
                if turn % 500 == 0:
                    async with self._turn:
                        self.wrapping.doomed = await self._handshake() or "0" * 32
                    self.most = max(self.most, self.server.memory())
        finally:
            await socket.close()

    async def _one(self, socket: Socket) -> None:
        message, kind = self._making.next(), self.chance.random()
        headers = self._headers(message, self._session)
        if kind < 0.70:
            self.kinds[message.kind] += 1
            answer = await self._exchange(socket, request("POST", self.path, headers, message.data), message)
            self._right_answer(message, answer)
        elif kind < 0.84:
            self.kinds["headers"] += 1
            data = self.wrapping.broken_headers(headers, message.data)
            self._sound(message, await self._exchange(socket, data, message))
        elif kind < 0.90:
            self.kinds["body"] += 1
            await self._and_leave(socket, self.wrapping.broken_body(headers, message.data), message)
        elif kind < 0.95:
            self.kinds["no request"] += 1
            await self._and_leave(socket, self.wrapping.no_request(), message)
        elif kind < 0.975:
            self.kinds["left"] += 1
            await socket.send(request("POST", self.path, headers, message.data)[: self.chance.randrange(20, 5_000)])
            await socket.close()
        else:
            self.kinds["pipelined"] += 1
            await self._pipelined(socket)

    async def _exchange(self, socket: Socket, data: bytes, message: Message) -> Answer:
        """The answer; a stream that does not end of itself (GET) is left after its head."""
        streams = data.split(b" ", 1)[0] not in (
            b"POST",
            b"DELETE",
            b"PUT",
            b"OPTIONS",
            b"TRACE",
            b"PATCH",
            b"BREW",
            b"get",
        )
        if streams:
            return await self._and_leave(socket, data, message)
        try:
            answer = await socket.exchange(data, head=data.startswith(b"HEAD"))
        except TimeoutError:
            raise AssertionError(self._about(message, Answer(), "no answer")) from None
        self.statuses[answer.status] += 1
        return answer

    async def _and_leave(self, socket: Socket, data: bytes, message: Message) -> Answer:
        """Sends what may never be answered, reads what there is at once, and closes the connection."""
        await socket.close()
        await socket.send(data)
        line = await socket.first_line(0.05)
        await socket.close()
        status = int(line.split(b" ")[1]) if line.startswith(b"HTTP/1.1 ") else 0
        self.statuses[status] += 1
        assert status in KNOWN, self._about(message, Answer(status), "an unknown status")
        return Answer()

    async def _pipelined(self, socket: Socket) -> None:
        """Several requests at once on one connection: as many answers, in their order."""
        several = [self._plain("tools/list", {}, f"p{self.sent}-{n}") for n in range(3)]
        await socket.close()
        await socket.send(
            b"".join(request("POST", self.path, self._headers(one, self._session), one.data) for one in several)
        )
        for one in several:
            answer = await socket.answer()
            self.statuses[answer.status] += 1
            self._right_answer(one, answer)

    async def _begin_slow(self) -> None:
        """Connections whose requests never end, for as long as the lane lasts."""
        for part in (b"POST " + self.path.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Le", b"G", b""):
            self._slow.append(slow := Socket(self.port, BOUND))
            await slow.send(part)
        head = request("POST", self.path, self._headers(self._plain("ping", {}, 1), self._session), length=False)
        self._slow.append(slow := Socket(self.port, BOUND))
        await slow.send(head.removesuffix(b"\r\n\r\n") + b"\r\nContent-Length: 5000\r\n\r\n{")

    # --- what holds of an answer --------------------------------------------------------------------------------

    def _right_answer(self, message: Message, answer: Answer) -> None:
        """Where the request itself is good, a message that is owed an answer gets one, whatever it says."""
        self._sound(message, answer)
        assert answer.status, self._about(message, answer, "no answer")
        if message.owed:
            assert answer.messages, self._about(message, answer, "no message")

    def _sound(self, message: Message, answer: Answer) -> None:
        shown = (answer.body + repr(answer.headers).encode()).lower()
        assert not self._never or self._never not in shown, self._about(message, answer, "it tells of another")
        assert answer.status in KNOWN, self._about(message, answer, "an unknown status")
        for data in answer.messages:
            said: dict[str, Json] = strict(data)
            assert isinstance(said, dict), self._about(message, answer, "no object")
            if "jsonrpc" not in said and answer.status >= 400:
                continue  # an error of HTTP alone
            assert said.get("jsonrpc") == "2.0", self._about(message, answer, "no JSON-RPC")
            if "method" in said:
                assert "id" not in said, self._about(message, answer, "the server asks something")
                continue
            if said["id"] is None:
                assert "error" in said, self._about(message, answer, "a result for nobody")
            else:
                named = (message.key, *(message.maybe if "error" in said else ()))
                assert id_key(said["id"]) in named, self._about(message, answer, "another's answer")
            try:
                self._validating.sound(said, data, message.method, _tool(message.data))
            except AssertionError as error:
                raise AssertionError(self._about(message, answer, str(error))) from None

    def _about(self, message: Message, answer: Answer, what: str) -> str:
        return (
            f"seed {self.seed}, after {self.sent}: {what}\nasked: {message.data[:1_500]!r}\nanswered: {answer.status} "
            f"{answer.body[:1_500]!r}\nstderr: {self.server.said()[-3_000:]}"
        )

    # --- good ones ----------------------------------------------------------------------------------------------

    async def _canary(self) -> None:
        async with self._turn:
            await self._sung()

    async def _sung(self) -> None:
        method, params = CANARIES[self.canaries % len(CANARIES)]
        began = time.monotonic()
        answer = await self.ask(method, params)
        self.slowest = max(self.slowest, time.monotonic() - began)
        self._right.check(method, params, answer, f"seed {self.seed}, after {self.sent}")

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        """The answer to a good request."""
        self.canaries += 1
        message = self._plain(method, params, f"canary {self.canaries}")
        answer = await self._good.exchange(
            request("POST", self.path, self._headers(message, self._other), message.data)
        )
        assert answer.messages, self._about(message, answer, "no answer to a good request")
        said = strict(answer.messages[-1])
        assert id_key(said["id"]) == message.key, self._about(message, answer, "another's answer to a good request")
        return said

    async def _handshake(self) -> str:
        """The id of a session of the older revisions; "" where there is none."""
        if self.revision == MODERN:
            return ""
        about = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        message = self._plain("initialize", about, 0)
        answer = await self._good.exchange(request("POST", self.path, self._headers(message, ""), message.data))
        assert answer.status == 200, self._about(message, answer, "no handshake")
        session = answer.headers.get("mcp-session-id", "")
        told = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()
        await self._good.exchange(request("POST", self.path, self._headers(judged(told, ""), session), told))
        return session

    async def _listed(self) -> Listed:
        tools = (await self.ask("tools/list", {}))["result"]["tools"]
        self._validating.validate({one["name"]: one["outputSchema"] for one in tools})
        found: dict[str, Sequence[Json]] = {}
        for method, key in (
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ):
            answer = await self.ask(method, {})
            found[key] = answer["result"][key] if "result" in answer else ()
        prompts = {one["name"]: [argument["name"] for argument in one.get("arguments", ())] for one in found["prompts"]}
        uris = [one["uri"] for one in found["resources"]]
        templates = [one["uriTemplate"] for one in found["resourceTemplates"]]
        schemas, ids = {one["name"]: one["inputSchema"] for one in tools}, list[tuple[str, str]]()
        for name, given in MAKING:
            if name in schemas:
                answer = await self.ask("tools/call", {"name": name, "arguments": given})
                ids += ids_in(answer["result"].get("structuredContent"))
        return Listed(schemas, prompts, uris, templates, by_name([*ids, *self._ids]))

    def _plain(self, method: str, params: Mapping[str, Json], id: Json) -> Message:
        if self.revision == MODERN:
            about = {"name": "x", "version": "1"}
            meta = {f"{META}protocolVersion": MODERN, f"{META}clientInfo": about, f"{META}clientCapabilities": {}}
            params = {**params, "_meta": meta}
        return judged(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode(), "good")

    def _headers(self, message: Message, session: str) -> Headers:
        """Those that a well-meaning client sends with this message."""
        headers = [
            ("Host", self.wrapping.host),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ]
        if self.token:
            headers.append(("Authorization", f"Bearer {self.token}"))
        if session:
            headers += [("Mcp-Session-Id", session), ("Mcp-Protocol-Version", self.revision)]
        if self.revision == MODERN:
            headers.append(("Mcp-Protocol-Version", MODERN))
            if message.method and message.method.isprintable():
                headers.append(("Mcp-Method", message.method))
            name = _named(message)
            if name is not None:
                headers.append(("Mcp-Name", name))
        return headers


def _named(message: Message) -> str | None:
    """What the newest revision wants in a header of its own."""
    from mcp.shared.inbound import encode_header_value

    key = NAMED.get(message.method)
    name = _part(message.data, key) if key else None
    try:
        return encode_header_value(name) if isinstance(name, str) else None
    except UnicodeEncodeError:
        return None


def _part(data: bytes, key: str) -> Json:
    try:
        return json.loads(data.decode("utf-8", "replace"))["params"][key]
    except (ValueError, RecursionError, KeyError, TypeError):
        return None


def _tool(data: bytes) -> str:
    name = _part(data, "name")
    return name if isinstance(name, str) else ""
