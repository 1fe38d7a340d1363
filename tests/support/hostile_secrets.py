"""An agent with something to hide, and a caller of another agent that keeps every byte it is sent.

caller = Caller(server, TOKEN, "2026-07-28")
secrets = await hidden(database, bystander)         # `bystander`: a Caller of the agent BYSTANDER
answer = await caller.ask("tools/call", {...})
assert MARK not in caller.received
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol
from urllib.parse import urlsplit

from hostile_http import Answer, Socket, request
from hostile_lane import BOUND
from hostile_messages import META, MODERN, ids_in
from serving import Running

from mulligan.core.episode import Acted, Evaluated, Event, Reflected, Stopped
from mulligan.core.lesson_history import Addition, Link, Receipt
from mulligan.core.records import Attempt, Episode, Feedback, Head, Lesson, Origin, Reflection, Step, Stop, Task
from mulligan.store.sqlite import SqliteStore

Json = Any

MARK = "zqxvk"
"""In every text of the bystander, and in nothing else."""
BYSTANDER = f"{MARK}-agent"


class Calls(Protocol):
    """Who calls, over whatever transport."""

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json: ...
    async def call(self, tool: str, **arguments: Json) -> Json: ...


class Caller:
    """One client over HTTP, whose bytes are all kept. Each request that is asked is answered, or the test fails."""

    def __init__(self, server: Running, token: str, revision: str = MODERN) -> None:
        at = urlsplit(server.url)
        self.revision, self.token, self.path, self.host = revision, token, at.path, at.netloc
        self.session = ""
        self.heard: list[tuple[str, Mapping[str, Json], str]] = []
        """All that was asked and answered well-formed."""
        self._socket = Socket(int(at.port or 0), BOUND)
        self._socket.keeps = True
        self._n = 0

    @property
    def received(self) -> str:
        return self._socket.all.decode("utf-8", "replace").lower()

    async def begin(self) -> None:
        """The handshake of the older revisions."""
        if self.revision != MODERN:
            about = {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
            answer = await self.post("initialize", about)
            self.session = answer.headers["mcp-session-id"]

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        """The JSON of the answer, result or error."""
        answer = await self.post(method, params)
        assert answer.messages, f"no answer to {method} {params}: {answer}"
        said = json.loads(answer.messages[-1])
        self.heard.append((method, params, json.dumps(said, ensure_ascii=False)))
        return said

    @property
    def newest(self) -> int:
        """The id of the newest request."""
        return self._n

    async def post(self, method: str, params: Mapping[str, Json], *, id: int | None = None) -> Answer:
        self._n += 1
        if self.revision == MODERN:
            about = {"name": "x", "version": "1"}
            meta = {f"{META}protocolVersion": MODERN, f"{META}clientInfo": about, f"{META}clientCapabilities": {}}
            params = {**params, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": id or self._n, "method": method, "params": params}).encode()
        return await self._socket.exchange(request("POST", self.path, list(self.headers(method, params).items()), body))

    async def call(self, tool: str, **arguments: Json) -> Json:
        """What a tool answered well."""
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not answer["result"].get("isError"), f"{tool} {arguments}: {answer}"
        return answer["result"]["structuredContent"]

    async def raw(self, data: bytes) -> Answer:
        return await self._socket.exchange(data)

    async def listen(self) -> str:
        """Opens the stream that the server may say something on of its own; the first data, if it comes at once."""
        given = {**self.headers("", {}), "Accept": "text/event-stream"}
        await self._socket.send(request("GET", self.path, list(given.items())))
        assert b" 200 " in await self._socket.first_line(BOUND)
        return "".join(line[5:].strip() for line in await self.overheard(0.5))

    async def overheard(self, seconds: float) -> Sequence[str]:
        """The lines of data that came in that time."""
        lines: list[str] = []
        while line := await self._socket.first_line(seconds):
            lines += [line.decode()] if line.startswith(b"data:") else []
        return lines

    async def close(self) -> None:
        await self._socket.close()

    def headers(self, method: str, params: Mapping[str, Json]) -> dict[str, str]:
        from mcp.shared.inbound import encode_header_value

        headers = {
            "Host": self.host,
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self.revision == MODERN:
            name = params.get("name", params.get("uri"))
            headers |= {"Mcp-Protocol-Version": MODERN, "Mcp-Method": method}
            return headers if name is None else {**headers, "Mcp-Name": encode_header_value(str(name))}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "Mcp-Protocol-Version": self.revision}
        return headers


def said(what: str) -> str:
    return f"{MARK} {what} of the bystander"


def step(kind: str, trial: int = 1, **more: Json) -> dict[str, Json]:
    return {"stepType": kind, "trialNumber": trial, "maxTrials": 3, **more}


async def lead(caller: Calls, word: str, upto: int, **more: Json) -> Sequence[tuple[str, str]]:
    """An episode that its client leads through so many steps; the ids that it was given."""
    steps = (
        step("actor", actorInputText=f"{word} task"),
        step("evaluator", actorOutputText=f"{word} output"),
        step("self-reflection", actorOutputText=f"{word} output", evaluatorScore=f"{word} score"),
        step(
            "self-reflection",
            actorOutputText=f"{word} output",
            evaluatorScore=f"{word} score",
            reflectionText=f"{word} reflection",
        ),
        step("actor", 2, actorInputText=f"{word} task"),
        step("evaluator", 2, actorOutputText=f"{word} better output", passed=True, learn=True),
    )
    ids: list[tuple[str, str]] = []
    for one in steps[:upto]:
        known = {"episodeId": ids[0][1]} if ids else {}
        answer = await caller.call("reflexion-thinking", **one, **known, **more)
        ids += ids_in(answer)
    return ids


async def extract(caller: Calls, word: str, **more: Json) -> Sequence[tuple[str, str]]:
    """Accepted work, with whatever is said of it; the ids."""
    trajectory = [
        {"step": 1, "role": "user", "content": f"{word} said"},
        {"step": 2, "role": "assistant", "content": f"{word} done", "metadata": {"tool_name": f"{word} tool"}},
    ]
    return ids_in(await caller.call("extract_memory", trajectory=trajectory, query=f"{word} query", **more))


def lesson(word: str) -> dict[str, Json]:
    return {"title": f"{word} title", "description": f"{word} when", "content": f"{word} content", "steps": [1]}


async def lived(caller: Calls, word: str) -> Sequence[tuple[str, str]]:
    """What an agent leaves behind that uses all tools: work at every stage. The ids that it was given."""
    ids = [*ids_in(await caller.call("retrieve_memory", query=f"{word} first query"))]
    for upto in (1, 2, 3, 4, 6):
        ids += await lead(caller, f"{word} {upto}", upto)
    ids += await extract(caller, f"{word} unjudged")
    ids += await extract(caller, f"{word} waiting", success_signal=True)
    ids += await extract(caller, f"{word} known", success_signal=True, lessons=[lesson(word), lesson(f"{word} other")])
    ids += await extract(caller, f"{word} failed", success_signal=False, lessons=[lesson(f"{word} third")])
    ids += ids_in(await caller.call("retrieve_memory", query=f"{word} content", top_k=5))
    return ids


async def stored(database: Path, agent: str, word: str, tail: str) -> Sequence[tuple[str, str]]:
    """What only other faces leave: a hosted episode, lessons in every state, links, receipts, work that failed."""
    store = SqliteStore(database)
    try:
        await _episode(store, agent, word, f"hosted{tail}")
        lessons = store.memory.lessons
        for n, state in enumerate(("active", "retired", "quarantined")):
            texts: dict[str, Any] = {
                name: f"{word} {state} {name}" for name in ("title", "content", "description", "query", "kind")
            }
            kept = Lesson(
                f"{state[:4]}{tail}",
                outcome="success",
                state=state,  # pyright: ignore[reportArgumentType]
                tags=(f"{word}tag",),
                context={"key": f"{word} context"},
                origin=Origin("extracted", f"{word}episode", 1, (1,), (), f"{word}model", f"{word} reason"),
                flags=(f"{word}flag",) if state == "quarantined" else (),
                created=1_700_000_000.0 + n,
                **texts,
            )
            await lessons.add(agent, [Addition(kept, f"print {word} {state}")])
        await lessons.link(agent, [Link(f"acti{tail}", f"reti{tail}", 0.9, f"{word}embedder")])
        await lessons.recalled(Receipt(f"rece{tail}", agent, 1_700_000_000.0, f"{word} recalled", {f"acti{tail}": 0.5}))
        await _failed_work(store, agent, word)
        pending = await store.memory.queue.pending(agent)
    finally:
        await store.close()
    names = [f"hosted{tail}", f"acti{tail}", f"reti{tail}", f"quar{tail}", f"rece{tail}"]
    return [("id", id) for id in (*names, *(work.id for work in pending))]


async def _episode(store: SqliteStore, agent: str, word: str, id: str) -> None:
    task = Task(f"{word} prompt", {"input": f"{word} input"})
    head = Head(models={"actor": f"{word}model"}, settings={"set": f"{word} setting"}, prompts={"p": f"{word}hash"})
    await store.create(
        Episode(id, task, f"{word}run", agent, head=head, started=1_700_000_000.0), {"f.md": f"{word} file"}
    )
    lease = await store.acquire(id, "me", 60)
    steps = (Step(f"{word} thought", f"{word} action", f"{word} observation"),)
    events: list[Event] = [
        Acted(1, Attempt(f"{word} output", steps)),
        Evaluated(1, Feedback(False, f"{word} feedback", 0.5, f"{word}judge", (f"{word} note",))),
        Reflected(1, Reflection(f"{word} reflection")),
        Stopped(Stop("exhausted", f"{word} detail")),
    ]
    for seq, event in enumerate(events):
        await store.append(lease, seq, event)
    await store.release(lease)


async def _failed_work(store: SqliteStore, agent: str, word: str) -> None:
    queue = store.memory.queue
    id = await queue.enqueue(
        "extract", agent, {"episodes": [], "success": True, "reason": f"{word} reason"}, waiting=True
    )
    _, claim = await queue.take(agent, id, "somebody", 60)
    await queue.fail(claim, f"{word} error", retry_in=None)


def like(id: str, chance: Random) -> str:
    """An id of the same form that there is not."""
    return re.sub(r"[0-9a-f]{6,}", lambda run: "".join(chance.choice("0123456789abcdef") for _ in run[0]), id)
