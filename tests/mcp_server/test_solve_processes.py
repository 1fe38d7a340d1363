"""`solve` in a server that is a process of its own: cancelled, left alone, killed. What was done is kept."""

import asyncio
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from raw_http import RawHttp, raw_sse
from serving import by_stdio, over, piped, served
from solving import ASK, HANGS, MODEL, REFLECTED, REQUEST, goes_on, left, until_hung
from wire_client import KEY, Wire, running

CANCELLED = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": REQUEST["id"]}}


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        monkeypatch.chdir(tmp_path)
        wire.plays(*HANGS)
        yield wire


async def cancelled(server: Any, mode: str) -> None:
    """A client calls, and takes it back after the first trial; the server goes on serving."""
    reflected = asyncio.Event()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        if progress >= REFLECTED:
            reflected.set()

    async with asyncio.timeout(60), Client(server, mode=mode) as client:
        calling = asyncio.create_task(client.call_tool("solve", ASK, progress_callback=tell))
        await reflected.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await left()
        assert "solve" in [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_cancels(wire: Wire, mode: str) -> None:
    await cancelled(by_stdio(*MODEL), mode)
    await goes_on(wire, await left())


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
@pytest.mark.parametrize("transport", [pytest.param("sse", marks=pytest.mark.slow), "http"])
async def test_a_client_that_cancels_over_http(wire: Wire, transport: str, mode: str) -> None:
    with served(*MODEL, transport=transport) as server:
        await cancelled(over(server.url), mode)
        await goes_on(wire, await left())


async def test_a_cancelled_request_is_not_answered(wire: Wire) -> None:
    with piped(*MODEL) as server:
        server.handshake()
        server.send(REQUEST)
        until_hung(server.receive)
        server.send(CANCELLED)
        server.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert server.receive() == {"jsonrpc": "2.0", "id": 2, "result": {}}
        episode = await left()
    await goes_on(wire, episode)


@pytest.mark.slow
async def test_a_client_that_goes_away(wire: Wire) -> None:
    with piped(*MODEL) as server:
        server.handshake()
        server.send(REQUEST)
        until_hung(server.receive)
        server.close_input()
        assert server.ended() == 0
    await goes_on(wire, await left())


async def test_a_stream_that_is_dropped(wire: Wire) -> None:
    with served(*MODEL, transport="sse") as server:
        with raw_sse(server.url) as client:
            client.handshake("2025-06-18")
            client.send(REQUEST)
            until_hung(client.receive)
        await goes_on(wire, await left())


def session_ended(client: RawHttp) -> None:
    client.request("DELETE")


def taken_back(client: RawHttp) -> None:
    assert client.post(CANCELLED)[0] == 202


@pytest.mark.parametrize("how", [session_ended, taken_back])
async def test_a_session_that_is_ended_or_takes_it_back(wire: Wire, how: Callable[[RawHttp], None]) -> None:
    with served(*MODEL) as server:
        client = RawHttp(server.url)
        client.handshake("2025-06-18")
        with client.begun(REQUEST) as told:
            until_hung(told.__next__)
            how(client)
            episode = await left()
        await goes_on(wire, episode)


async def test_a_connection_of_a_session_that_is_dropped_has_cancelled_nothing(wire: Wire) -> None:
    """As the older revisions have it: the client may come back, and only what it cancels is cancelled."""
    wire.plays(*HANGS[:2], {"answer": "42", "held": True})
    with served(*MODEL) as server:
        client = RawHttp(server.url)
        client.handshake("2025-06-18")
        with client.begun(REQUEST) as told:
            until_hung(told.__next__)
        wire.release()
        assert (await left()).solved


async def test_a_connection_that_is_dropped_where_there_are_no_sessions(wire: Wire) -> None:
    """Nobody could come back for the answer, or cancel it in another request: the episode is interrupted."""
    with served(*MODEL, "--no-sessions") as server:
        client = RawHttp(server.url)
        client.handshake("2025-06-18")
        with client.begun(REQUEST) as told:
            until_hung(told.__next__)
        await goes_on(wire, await left())


@pytest.mark.slow
async def test_a_server_that_is_told_to_stop(wire: Wire) -> None:
    with served(*MODEL, "--drain", "0.2") as server:
        client = RawHttp(server.url)
        client.handshake("2025-06-18")
        with client.begun(REQUEST) as told:
            until_hung(told.__next__)
            server.process.send_signal(signal.SIGTERM)
            server.ended()
    await goes_on(wire, await left())


async def test_a_server_that_is_killed(wire: Wire) -> None:
    with piped(*MODEL) as server:
        server.handshake()
        server.send(REQUEST)
        until_hung(server.receive)
        server.process.kill()
    await goes_on(wire, await left(), interrupted=False)
