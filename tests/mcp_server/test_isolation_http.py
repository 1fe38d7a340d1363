"""With a token for one agent: nothing that it can ask tells anything of another, over HTTP.

The same is asked of a server that knows a bystander, by the bystander's own ids, and of one that does not, by ids of
nobody. All that is answered is the same, but for what was echoed.
"""

import asyncio
import time
from pathlib import Path
from random import Random

import pytest
from hostile_house import CURIOUS, OURS, THEIRS, TOKENS, chosen, house, nobodys, room
from hostile_http import Answer, request
from hostile_messages import MODERN
from hostile_probes import as_if_nobody, nothing_of_theirs, plain, told
from hostile_secrets import BYSTANDER, MARK, Caller, like, lived, said
from serving import served
from wire_client import KEY, running

OLDER = "2025-06-18"


@pytest.mark.slow
@pytest.mark.parametrize("revision", [MODERN, OLDER])
async def test_what_is_told_is_the_same_whether_there_is_a_bystander_or_not(tmp_path: Path, revision: str) -> None:
    await the_same(tmp_path, revision, 3)


@pytest.mark.slow
@pytest.mark.parametrize("revision", [MODERN, OLDER])
async def test_what_is_told_is_the_same_whatever_is_asked_for(tmp_path: Path, revision: str) -> None:
    await the_same(tmp_path, revision, 100)


async def the_same(tmp_path: Path, revision: str, most: int) -> None:
    """most: names of the bystander's that are asked for, the first its own name."""
    async with house(room(tmp_path, "with"), revision, inhabited=True) as there:
        names = chosen(there.ids)[:most]
        heard, received = await told(there.curious, names), there.curious.received
    async with house(room(tmp_path, "without"), revision, inhabited=False) as empty:
        expected = await told(empty.curious, nobodys(names))
    assert len(heard) > 80 * len(names)
    as_if_nobody(heard, expected)
    nothing_of_theirs(heard, names, there.ids)
    assert MARK not in received.replace(BYSTANDER, "")


@pytest.mark.slow
@pytest.mark.parametrize("near_duplicates", ["link", "skip"])
async def test_learning_the_same_is_as_if_nobody_had_learned_it(tmp_path: Path, near_duplicates: str) -> None:
    """Nothing is folded with, or taken for, another agent's: lessons, work and recalls are those of a first time."""
    lives: list[list[str]] = []
    settings = f'embedder = "hash"\nnear_duplicates = "{near_duplicates}"\nauto_merge = true'
    for inhabited in (True, False):
        folder = room(tmp_path, str(inhabited), settings)
        async with house(folder, MODERN, inhabited=inhabited, own=False) as there:
            for _ in range(2):
                await lived(there.curious, said("life"))
            lives.append([plain(answer, "-" * 9, ()) for _, _, answer in there.curious.heard])
    assert lives[0] == lives[1]
    assert any(r"\"duplicates_skipped\": 0" in answer for answer in lives[0])


@pytest.mark.slow
async def test_a_session_of_another_is_like_one_that_is_not_there(tmp_path: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    async with house(room(tmp_path, "with"), OLDER, inhabited=True) as there:
        for method in ("POST", "GET", "DELETE"):
            seen = list[Answer]()
            for session in (there.bystander.session, like(there.bystander.session, Random(1))):
                headers = {**there.curious.headers("tools/list", {}), "Mcp-Session-Id": session}
                data = request(method, there.curious.path, list(headers.items()), body if method == "POST" else b"")
                seen.append(await there.curious.raw(data))
            known, unknown = ((one.status, one.body, {**one.headers, "date": ""}) for one in seen)
            assert known == unknown
            assert known[0] == 404
        assert "result" in await there.bystander.ask("tools/list", {})  # it was not ended


async def test_an_id_that_another_is_using_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bystander waits for an answer with some id; whoever knows its session learns nothing by using the same."""
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        wire.plays({"hang": True})
        folder = room(tmp_path, "with")
        async with house(folder, OLDER, inhabited=False, own=False, more=("--model", "openai:gpt-4o")) as there:
            asked = {"name": "solve", "arguments": {"task": "What is six times seven?", "expected": "42"}}
            waiting = asyncio.create_task(there.bystander.post("tools/call", asked))
            until = time.monotonic() + 30
            while not wire.requests:
                assert time.monotonic() < until
                await asyncio.wait([waiting], timeout=0.02)
            statuses = list[int]()
            for session in (there.bystander.session, like(there.bystander.session, Random(1))):
                there.curious.session = session
                statuses.append((await there.curious.post("ping", {}, id=there.bystander.newest)).status)
            waiting.cancel()
    assert statuses == [404, 404]


@pytest.mark.slow
async def test_an_event_stream_tells_nothing_of_another(tmp_path: Path) -> None:
    """The bystander lives while the curious one listens to all that its session may be told unasked."""
    async with house(room(tmp_path, "with"), OLDER, inhabited=False) as there:
        listening = Caller(there.server, OURS, OLDER)
        listening.session = there.curious.session
        await listening.listen()
        await lived(there.bystander, said("life"))
        await there.curious.ask("tools/list", {})
        assert await listening.overheard(0.5) == []
        await listening.close()


async def test_a_stream_of_another_is_like_one_that_is_not_there(tmp_path: Path) -> None:
    """Over the older event streams, where whoever knows its address could post to it."""
    folder = room(tmp_path, "sse")
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    with served("--rate", "0", transport="sse", env={**TOKENS, "MULLIGAN_HOME": str(folder)}, cwd=folder) as server:
        theirs, ours = Caller(server, THEIRS), Caller(server, OURS)
        address = await theirs.listen()
        assert "session_id=" in address
        seen = list[Answer]()
        for path in (address, like(address, Random(1))):
            headers = ours.headers("ping", {})
            seen.append(await ours.raw(request("POST", path, list(headers.items()), body)))
        known, unknown = ((one.status, one.body, {**one.headers, "date": ""}) for one in seen)
        assert known == unknown
        assert known[0] == 404
        for caller in (theirs, ours):
            await caller.close()


async def test_without_a_token_nothing_is_reported(tmp_path: Path) -> None:
    tokens = ("", THEIRS[:-1], f"{THEIRS}x", f"{BYSTANDER}:{THEIRS}", f"{CURIOUS}:{OURS}", CURIOUS, "=" * 9_000)
    async with house(room(tmp_path, "with"), MODERN, inhabited=True, own=False) as there:
        for token in tokens:
            stranger = Caller(there.server, token)
            for method in ("tools/list", "resources/list", "server/discover", "nothing/such"):
                assert (await stranger.post(method, {})).status == 401
            assert "mulligan" not in stranger.received
            assert MARK not in stranger.received
            await stranger.close()
