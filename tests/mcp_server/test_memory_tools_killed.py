"""Servers that are killed while they learn, and two on one store at once: what was acknowledged is there, once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from memory_clients import EXTRACTED, LESSON, MODEL, SETTINGS, TRAJECTORY, a_service, good, settled
from serving import Piped, by_stdio, piped
from wire_client import KEY, Wire, running

from mulligan.core.lessons import Selection
from mulligan.core.records import Lesson
from mulligan.mcp_server import lifecycle
from mulligan.store import open_store

SERVE = ("--tools", "memory")
HOSTED = (*SERVE, "--model", MODEL)


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        (tmp_path / "mulligan.toml").write_text(SETTINGS)
        monkeypatch.chdir(tmp_path)
        yield wire


def query(n: int) -> str:
    return f"[task {n}] Find the earliest order"


def lesson(n: int) -> dict[str, Any]:
    return LESSON | {"title": f"Lesson {n}", "content": f"Do as task {n} did."}


def plays(wire: Wire, numbers: range, delay: float) -> None:
    """The provider draws from each task its own lesson, after so many seconds."""
    answers = ((n, EXTRACTED | {"lessons": [lesson(n)]}) for n in numbers)
    wire.plays(*({"when": f"[task {n}]", "answer": answer, "delay": delay} for n, answer in answers))


def accepted(server: Piped, n: int, agent: str) -> str:
    task = {"trajectory": TRAJECTORY, "query": query(n), "success_signal": True, "agent_id": agent}
    answer = json.loads(server.call("extract_memory", task, id=n)["content"][0]["text"])
    assert answer["status"] == "processing"
    return answer["task_id"]


def asked(wire: Wire, more: int, seconds: float = 60.0) -> None:
    """Until the provider has had so many more questions."""
    before, until = len(wire.requests), time.monotonic() + seconds
    while len(wire.requests) < before + more:
        assert time.monotonic() < until
        time.sleep(0.01)


async def kept(agent: str) -> list[Lesson]:
    memory = open_store(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db").memory
    try:
        return list(await memory.lessons.list(agent, Selection(("active", "quarantined", "retired"), limit=None)))
    finally:
        await memory.close()


async def is_sound() -> bool:
    memory = open_store(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db").memory
    try:
        return not await memory.lessons.verify() and not await memory.queue.pending(None)
    finally:
        await memory.close()


def there_once(lessons: list[Lesson], numbers: range) -> None:
    assert sorted(one.title for one in lessons) == sorted(f"Lesson {n}" for n in numbers)
    assert {one.support for one in lessons} == {1}


@pytest.mark.slow
async def test_what_a_killed_server_accepted_is_learned_once(wire: Wire) -> None:
    chance, tasks = random.Random(5), dict[int, str]()
    plays(wire, range(40), delay=0.05)
    for round in range(8):
        with piped(*HOSTED) as server:
            server.handshake()
            for n in range(round * 5, round * 5 + 5):
                tasks[n] = accepted(server, n, f"agent {n % 2}")
            asked(wire, chance.randrange(4))
            server.stop(signal.SIGKILL)
    async with Client(by_stdio(*HOSTED), mode="legacy") as client:
        await client.list_tools()
        for n, task in tasks.items():
            answer = await settled(client, task, agent_id=f"agent {n % 2}")
            assert (answer["status"], [one["title"] for one in answer["memories"]]) == ("success", [f"Lesson {n}"])
    for parity in range(2):
        there_once(await kept(f"agent {parity}"), range(parity, 40, 2))
    assert await is_sound()


@pytest.mark.slow
async def test_the_next_server_goes_on_without_being_asked(wire: Wire) -> None:
    plays(wire, range(5), delay=5)
    with piped(*HOSTED) as server:
        server.handshake()
        for n in range(5):
            accepted(server, n, "me")
        asked(wire, 1)
        server.stop(signal.SIGKILL)
    plays(wire, range(5), delay=0)
    with piped(*HOSTED) as server:
        server.handshake()
        async with asyncio.timeout(60):
            while True:
                if len(lessons := await kept("me")) == 5:
                    break
                await asyncio.sleep(0.1)
    there_once(lessons, range(5))


async def test_a_server_that_is_idle_finishes_what_another_left_behind(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SETTLE_SECONDS", "LOOK_SECONDS"):
        monkeypatch.setattr(lifecycle, name, 0.05)
    async with a_service(model=MODEL) as service, lifecycle.background_learning(service):
        plays(wire, range(1), delay=30)
        with piped(*HOSTED) as server:
            server.handshake()
            task = accepted(server, 0, "me")
            asked(wire, 1)
            server.stop(signal.SIGKILL)
        plays(wire, range(1), delay=0)
        async with asyncio.timeout(60):
            while True:
                if lessons := await kept("me"):
                    break
                await asyncio.sleep(0.05)
        assert (await service.store.memory.queue.look("me", task.removeprefix("extract_"))).attempts == 2
    there_once(lessons, range(1))


@pytest.mark.slow
async def test_two_servers_on_one_store_lose_nothing(wire: Wire) -> None:
    plays(wire, range(50), delay=0.01)
    async with Client(by_stdio(*HOSTED)) as hosted, Client(by_stdio(*SERVE)) as keyless:
        for client in (hosted, keyless):
            await client.list_tools()
        left = asyncio.Semaphore(8)

        async def one(n: int) -> str:
            async with left:
                client = hosted if n < 50 else keyless
                task = {"trajectory": TRAJECTORY, "query": query(n), "success_signal": True, "agent_id": "me"}
                answer = await good(client, "extract_memory", **task)
                if n >= 50:
                    assert answer["status"] == "needs_thinking"
                    id = answer["task_id"]
                    answer = await good(client, "extract_memory", task_id=id, lessons=[lesson(n)], agent_id="me")
                    assert [one["title"] for one in answer["memories"]] == [f"Lesson {n}"]
                other = keyless if n < 50 else hosted
                assert (await good(other, "retrieve_memory", query=query(n), agent_id="me"))["retrieval_id"]
                return answer["task_id"]

        tasks = await asyncio.gather(*(one(n) for n in range(100)))
        for n, task in enumerate(tasks):
            answer = await settled(keyless, task, agent_id="me")
            assert [one["title"] for one in answer["memories"]] == [f"Lesson {n}"]
    there_once(await kept("me"), range(100))
    assert await is_sound()
