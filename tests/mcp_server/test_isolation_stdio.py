"""With --agent-id: what a client over stdio can ask tells nothing of another agent in the same store, at work beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile_house import CURIOUS, TAIL, chosen, nobodys, room, store_of, those
from hostile_messages import META, MODERN
from hostile_probes import Told, as_if_nobody, nothing_of_theirs, told
from hostile_secrets import BYSTANDER, MARK, lived, said, stored
from serving import Piped, piped

Json = Any


class LineCaller:
    """What `hostile_secrets.Caller` is over HTTP, over pipes."""

    def __init__(self, server: Piped, revision: str) -> None:
        self._server, self._revision, self._n = server, revision, 0
        self.received = ""
        if revision != MODERN:
            server.handshake(revision)

    async def ask(self, method: str, params: Mapping[str, Json]) -> Json:
        self._n += 1
        if self._revision == MODERN:
            about = {"name": "x", "version": "1"}
            meta = {f"{META}protocolVersion": MODERN, f"{META}clientInfo": about, f"{META}clientCapabilities": {}}
            params = {**params, "_meta": meta}
        self._server.send({"jsonrpc": "2.0", "id": self._n, "method": method, "params": params})
        line = self._server.line()
        self.received += line.decode().lower()
        answer = json.loads(line)
        assert answer["id"] == self._n, f"unasked, or another's: {line[:500]!r}"
        return answer

    async def call(self, tool: str, **arguments: Json) -> Json:
        answer = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not answer["result"].get("isError"), f"{tool} {arguments}: {answer}"
        return answer["result"]["structuredContent"]


async def asked(
    folder: Path, revision: str, most: int, names: list[str] | None
) -> tuple[Told, list[str], list[str], str]:
    """What the curious one is told; names: that are asked for, None: the bystander's own, who then is there."""
    env, ids = {"MULLIGAN_HOME": str(folder)}, list[str]()
    with (
        piped("--agent-id", CURIOUS, env=env, cwd=folder) as server,
        piped("--agent-id", BYSTANDER, env=env, cwd=folder) as theirs,
    ):
        curious, bystander = LineCaller(server, revision), LineCaller(theirs, revision)
        if names is None:
            ids += those(await lived(bystander, said("life")))
            ids += those(await stored(store_of(folder), BYSTANDER, MARK, TAIL))
            names = list(chosen(ids)[:most])
        await lived(curious, "a life of ours")
        heard = await told(curious, names)
        assert "Traceback" not in server.said()
        return heard, names, ids, curious.received


async def the_same(tmp_path: Path, revision: str, most: int) -> None:
    heard, names, ids, received = await asked(room(tmp_path, "with"), revision, most, None)
    expected, _, _, _ = await asked(room(tmp_path, "without"), revision, most, list(nobodys(names)))
    assert len(heard) > 80 * len(names)
    as_if_nobody(heard, expected)
    nothing_of_theirs(heard, names, ids)
    assert MARK not in received.replace(BYSTANDER, "")


@pytest.mark.slow
@pytest.mark.parametrize("revision", [MODERN, "2025-06-18"])
async def test_what_is_told_over_stdio_is_the_same_whether_there_is_a_bystander_or_not(
    tmp_path: Path, revision: str
) -> None:
    await the_same(tmp_path, revision, 2)


@pytest.mark.slow
@pytest.mark.parametrize("revision", [MODERN, "2025-06-18"])
async def test_what_is_told_over_stdio_is_the_same_whatever_is_asked_for(tmp_path: Path, revision: str) -> None:
    await the_same(tmp_path, revision, 100)
