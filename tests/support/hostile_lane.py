"""Drives a server with hostile messages among good ones, and looks at what is left of it and of its store.

known = await keep(database)                                # records that must be the same afterwards
with piped("--tools", "all") as server:
    lane = StdioLane(server, seed=1, revision="2025-06-18")
    lane.drive(5_000)
    print(lane.report())
await intact(database, known, server.said())
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostile_ledger import Ledger
from hostile_messages import MAKING, META, MODERN, Listed, Message, Messages, by_name, ids_in, judged
from serving import Piped

from mulligan.app.memory import open_bank
from mulligan.core.lessons import Selection
from mulligan.store import open_store

Json = Any

BOUND = 60.0
"""Seconds that any answer may take while the machine is busy with others."""
WINDOW = 32
"""Requests that may wait for their answer at a time."""
STEP: dict[str, Json] = {"stepType": "actor", "trialNumber": 1, "maxTrials": 3, "actorInputText": "Sing."}
AGENTS = ("canary", "kept")
"""Agents that no hostile message names."""
TRACES = re.compile(r"Traceback|exception was never|never awaited|ResourceWarning|Unraisable|Exception ignored", re.I)


Ids = Sequence[tuple[str, str]]

CANARIES: Sequence[tuple[str, dict[str, Json]]] = (
    ("tools/list", {}),
    ("tools/call", {"name": "retrieve_memory", "arguments": {"query": "the canary sings 3", "agent_id": "canary"}}),
    ("tools/call", {"name": "no-such-tool", "arguments": {}}),
    ("tools/call", {"name": "reflexion-thinking", "arguments": {**STEP, "agentId": "canary"}}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
)
"""Good requests, whose answers are known, or are the same each time."""


class Right:
    """What good requests were answered the first time."""

    def __init__(self) -> None:
        self._first: dict[str, Json] = {}

    def check(self, method: str, params: Mapping[str, Json], answer: Json, where: str) -> None:
        assert "result" in answer, f"{where}: {answer}"
        text, tool = json.dumps(answer["result"]), params.get("name")
        if tool == "retrieve_memory":
            assert "canary lesson 3" in text, f"{where}: {text[:1_000]}"
            assert "kept lesson" not in text, f"{where}: {text[:1_000]}"
        elif tool == "reflexion-thinking":
            assert answer["result"]["structuredContent"]["prompt_for_actor"] == STEP["actorInputText"], (
                f"{where}: {text}"
            )
        else:
            first = self._first.setdefault(json.dumps([method, tool]), text)
            assert text == first, f"{where}: {method} {tool} is another: {text[:1_000]}, not {first[:1_000]}"


async def keep(database: Path) -> Json:
    """Lessons of two agents, as they are kept from now on."""
    for agent in AGENTS:
        bank = open_bank(agent, store=open_store(database).memory, embedder="none")
        for n in range(8):
            await bank.add(
                f"{agent} lesson {n}", f"When the {agent} sings number {n}, open window {n}.", query=f"song {n}"
            )
        await bank.close()
    return await _kept(database)


async def _kept(database: Path) -> Json:
    memory = open_store(database).memory
    try:
        lessons = [one for agent in AGENTS for one in await memory.lessons.list(agent, Selection(limit=None))]
    finally:
        await memory.close()
    return sorted(
        (one.agent_id, one.id, one.title, one.content, one.state, one.support, one.created) for one in lessons
    )


async def intact(database: Path, known: Json, said: str, grown: str = "") -> None:
    """Fails for a traceback in what the server said, and for a store that is not what it was.

    grown: an agent who may have learned more meanwhile.
    """
    traced = TRACES.search(said)
    assert traced is None, f"on stderr: {said[max(0, traced.start() - 500) : traced.start() + 4_000] if traced else ''}"
    assert len(said) < 5_000_000, f"{len(said)} characters on stderr"
    with closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    memory = open_store(database).memory
    try:
        found = [finding.what for finding in await memory.lessons.verify()]
        assert found == [], f"verify: {found[:5]}"
    finally:
        await memory.close()
    now = await _kept(database)
    assert [one for one in known if one not in now] == [], "what was known is not as it was"
    more = [one for one in now if one not in known and one[0] != grown]
    assert more == [], f"there is more than was known: {more[:3]}"


class StdioLane:
    """One connection over pipes. `count` of what was sent, the most memory that was held, the slowest good answer."""

    def __init__(
        self, server: Piped, seed: int, *, revision: str = "2025-06-18", ids: Ids = (), never: bytes = b""
    ) -> None:
        """ids: of others, to be asked for beside its own. never: what no answer may hold, in lower case."""
        self.server, self.seed, self.revision = server, seed, revision
        self._ids, self._never = ids, never
        self.sent = self.canaries = self.most = 0
        self.slowest = 0.0
        if revision != MODERN:
            server.handshake(revision)
        self._ledger = Ledger()
        self._right = Right()
        listed = self._listed()
        self._making = Messages(seed, listed, revision=revision)

    def drive(self, count: int) -> None:
        for _ in range(count):
            self._send(self._making.next())
            while len(self._ledger.owing) > WINDOW:
                self._hear(BOUND)
            if self.sent % 50 == 0:
                self._canary()
            if self.sent % 500 == 0:
                self.most = max(self.most, self.server.memory())
        self._canary()
        until = time.monotonic() + BOUND
        while self._ledger.owing:
            assert time.monotonic() < until, f"seed {self.seed}: never answered: {self._waiting()}"
            self._hear(BOUND)
        self.most = max(self.most, self.server.memory())

    def big(self, data: bytes) -> None:
        """One message that is not made from the seed, with a good one behind it. It may be answered without its id."""
        self._send(replace(judged(data, "big"), owed=None))
        self._canary()
        self.most = max(self.most, self.server.memory())

    def report(self) -> str:
        codes = ", ".join(f"{code} {n}" for code, n in sorted(self._ledger.codes.items()))
        return (
            f"seed {self.seed}, {self.revision}: {self.sent} hostile messages {dict(self._ledger.kinds)}, "
            f"{self.canaries} good ones between, slowest {self.slowest:.2f} s, memory {self.most / 2**20:.0f} MB; {codes}"
        )

    # --- the line -----------------------------------------------------------------------------------------------

    def _send(self, message: Message) -> None:
        tool = ""
        if message.method == "tools/call" and message.key:
            name = _tool(message.data)
            tool = name if isinstance(name, str) else ""
        self._ledger.asked(message, tool)
        self.server.send(message.data.replace(b"\n", b" ") + b"\n")
        self.sent += 1

    def _hear(self, seconds: float) -> tuple[str, Json] | None:
        try:
            line = self.server.line(seconds)
        except AssertionError as error:
            raise AssertionError(f"seed {self.seed}, after {self.sent}: {self._waiting()}: {error}") from None
        assert not self._never or self._never not in line.lower(), f"seed {self.seed}: {line[:2_000]!r}"
        assert line, f"seed {self.seed}, after {self.sent}: the server ended: {self.server.said()[-3_000:]}"
        try:
            return self._ledger.heard(line)
        except AssertionError as error:
            asked = self._ledger.newest(line)
            where = (
                f"seed {self.seed}, after {self.sent}: {error}\nasked: {asked!r}\nstderr: {self.server.said()[-3_000:]}"
            )
            raise AssertionError(where) from None

    def _waiting(self) -> str:
        return "; ".join(repr(self._ledger.about(key).data[:500]) for key in self._ledger.owing[:3])

    # --- good ones between --------------------------------------------------------------------------------------

    def _canary(self) -> None:
        """A good request, whose answer is known."""
        method, params = CANARIES[self.canaries % len(CANARIES)]
        began = time.monotonic()
        answer = self._ask(method, params)
        self.slowest = max(self.slowest, time.monotonic() - began)
        self._right.check(method, params, answer, f"seed {self.seed}, after {self.sent}")

    def _ask(self, method: str, params: dict[str, Json]) -> Json:
        self.canaries += 1
        id, about = f"canary {self.canaries}", {"name": "canary", "version": "1"}
        if self.revision == MODERN:
            meta = {f"{META}protocolVersion": MODERN, f"{META}clientInfo": about, f"{META}clientCapabilities": {}}
            params = {**params, "_meta": meta}
        message = judged(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode(), "good")
        self._ledger.asked(message, params.get("name", "") if method == "tools/call" else "")
        self.server.send(message.data + b"\n")
        while True:
            heard = self._hear(BOUND)
            if heard is not None and heard[0] == json.dumps(id):
                return heard[1]

    def _listed(self) -> Listed:
        """What there is, asked over the line itself."""
        tools = self._ask("tools/list", {})["result"]["tools"]
        self._ledger.validate({one["name"]: one["outputSchema"] for one in tools})
        prompts = self._all("prompts/list", "prompts")
        uris = [one["uri"] for one in self._all("resources/list", "resources")]
        templates = [one["uriTemplate"] for one in self._all("resources/templates/list", "resourceTemplates")]
        named = {one["name"]: [argument["name"] for argument in one.get("arguments", ())] for one in prompts}
        schemas = {one["name"]: one["inputSchema"] for one in tools}
        made = [{"name": name, "arguments": given} for name, given in MAKING if name in schemas]
        ids = [pair for one in made for pair in ids_in(self._ask("tools/call", one)["result"].get("structuredContent"))]
        return Listed(schemas, named, uris, templates, by_name([*ids, *self._ids]))

    def _all(self, method: str, key: str) -> Sequence[Json]:
        answer = self._ask(method, {})
        return answer["result"][key] if "result" in answer else ()


def _tool(data: bytes) -> Json:
    try:
        return json.loads(data.decode("utf-8", "replace"))["params"]["name"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""
