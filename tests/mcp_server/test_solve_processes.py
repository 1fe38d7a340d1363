"""`solve` in a server that is a process of its own: cancelled, left alone, killed. What was done is kept."""

import asyncio
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from mcp import Client
from serving import Piped, by_stdio, piped
from wire_client import KEY, Wire, running

from mulligan.app.solve import resume
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

ASK = {"task": "What is six times seven?", "expected": "42", "agentId": "me"}
MODEL = ("--model", "openai:gpt-4o")
HANGS = ("41", "Count again.", {"hang": True})


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.chdir(tmp_path)
        wire.plays(*HANGS)
        yield wire


def asked(server: Piped) -> None:
    """Begins to solve as request 1, and comes back once the first trial is behind."""
    server.handshake()
    params = {"name": "solve", "arguments": ASK, "_meta": {"progressToken": "p"}}
    server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    while (told := server.receive())["params"]["progress"] < 1:
        assert told["params"]["progressToken"] == "p"


async def stopped() -> Episode:
    """The only episode of the store once nobody drives it any more."""
    store = SqliteStore(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db")
    try:
        async with asyncio.timeout(20):
            while True:
                (episode,) = await store.list()
                driven = await store.holder(episode.id)
                if (episode := await store.load(episode.id)).stop or not driven:
                    return episode
                await asyncio.sleep(0.02)
    finally:
        await store.close()


async def goes_on(wire: Wire, episode: Episode) -> None:
    assert [trial.attempt.output for trial in episode.trials] == ["41"]
    assert episode.agent == "me"
    wire.plays("42")
    assert (await resume(episode.id)).solved
    assert len(wire.requests) == 1, "the first trial was not asked for again"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels(wire: Wire, mode: str) -> None:
    behind = asyncio.Event()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        if progress >= 1:
            behind.set()

    async with asyncio.timeout(60), Client(by_stdio(*MODEL), mode=mode) as client:
        calling = asyncio.create_task(client.call_tool("solve", ASK, progress_callback=tell))
        await behind.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        episode = await stopped()
        assert episode.stop is not None
        assert episode.stop.reason == "interrupted"
        assert "solve" in [tool.name for tool in (await client.list_tools()).tools], "the server goes on"
    await goes_on(wire, episode)


async def test_a_cancelled_request_is_not_answered(wire: Wire) -> None:
    with piped(*MODEL) as server:
        asked(server)
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        server.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert server.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        episode = await stopped()
    assert episode.stop is not None
    assert episode.stop.reason == "interrupted"
    await goes_on(wire, episode)


async def test_a_client_that_goes_away(wire: Wire) -> None:
    with piped(*MODEL) as server:
        asked(server)
        server.close_input()
        assert server.ended() == 0
    episode = await stopped()
    assert episode.stop is not None
    assert episode.stop.reason == "interrupted"
    await goes_on(wire, episode)


async def test_a_server_that_is_killed(wire: Wire) -> None:
    with piped(*MODEL) as server:
        asked(server)
        server.process.kill()
    await goes_on(wire, await stopped())
