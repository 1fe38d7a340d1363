"""`solve` in a server that is a process of its own: cancelled, left alone, killed. What was done is kept."""

import asyncio
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from raw_stdio import RawStdio, raw_stdio
from wire_client import KEY, Wire, running

from mulligan.app.solve import resume
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

ASK = {"task": "What is six times seven?", "expected": "42", "agentId": "me"}
COMMAND = (sys.executable, "-m", "mulligan", "serve", "--model", "openai:gpt-4o")
HANGS = ("41", "Count again.", {"hang": True})


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.chdir(tmp_path)
        wire.plays(*HANGS)
        yield wire


async def asked(client: RawStdio) -> int:
    """Begins to solve, and comes back once the first trial is behind; the id of the request."""
    await client.hello("2025-06-18")
    id = await client.begin("tools/call", name="solve", arguments=ASK, _meta={"progressToken": "p"})
    while (told := await client.receive())["params"]["progress"] < 1:
        assert told["params"]["progressToken"] == "p"
    return id


async def stopped() -> Episode:
    """The only episode of the store once nobody drives it any more."""
    store = SqliteStore(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db")
    try:
        async with asyncio.timeout(20):
            while True:
                (episode,) = await store.list()
                if episode.stop or not await store.holder(episode.id):
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

    server = StdioServerParameters(command=COMMAND[0], args=list(COMMAND[1:]), env=dict(os.environ))
    async with asyncio.timeout(60), Client(server, mode=mode) as client:
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
    async with raw_stdio(COMMAND, os.environ) as client:
        id = await asked(client)
        await client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        assert (await client.ask("ping"))["result"] == {}
        assert not any(message.get("id") == id for message in client.told)
        episode = await stopped()
        assert episode.stop is not None
        assert episode.stop.reason == "interrupted"
        assert await client.goodbye() == 0
    await goes_on(wire, episode)


async def test_a_client_that_goes_away(wire: Wire) -> None:
    async with raw_stdio(COMMAND, os.environ) as client:
        await asked(client)
        assert await client.goodbye() == 0
        episode = await stopped()
    assert episode.stop is not None
    assert episode.stop.reason == "interrupted"
    await goes_on(wire, episode)


async def test_a_server_that_is_killed(wire: Wire) -> None:
    async with raw_stdio(COMMAND, os.environ) as client:
        await asked(client)
        client.process.kill()
        await client.process.wait()
    store = SqliteStore(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db")
    (episode,) = await store.list()
    await store.close()
    await goes_on(wire, episode)
