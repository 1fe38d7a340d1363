"""Two servers on one store behind a balancer that remembers nobody: whichever is asked, the answer is the same."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import postgres_server
import pytest
import reflexion_clients
from balancing import Balancer
from mcp import Client
from memory_clients import EXTRACTED, LESSON, MODEL, QUERY, SETTINGS, TRAJECTORY, good, refused, settled
from reflexion_clients import step
from serving import served
from wire_client import KEY, Wire, running

from mulligan.core.lessons import Selection
from mulligan.store import open_store

ANN, BEN = "ann:token-of-ann-0123456789", "ben:token-of-ben-0123456789"
KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


@pytest.fixture(params=KINDS)
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the store that the servers share. On one machine that can be a file; each client is then told to have no
    session, which a server says by itself where its store is a database."""
    found = postgres_server.address(tmp_path) if request.param == "postgresql" else f"sqlite:///{tmp_path}/m.db"
    monkeypatch.setenv("MULLIGAN_STORE", found)
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    return found


def options(address: str) -> tuple[str, ...]:
    return () if address.startswith("postgresql") else ("--no-sessions",)


@pytest.fixture
def balancer(address: str) -> Generator[Balancer]:
    with both(address) as balancer:
        yield balancer


class both(ExitStack):
    """Two servers for the time of a block, and the balancer over them."""

    def __init__(self, address: str, *more: str, **env: str) -> None:
        super().__init__()
        self._start = ("--tools", "all,scaling", "--rate", "0", *options(address), *more), env

    def __enter__(self) -> Any:
        super().__enter__()
        words, env = self._start
        return Balancer([self.enter_context(served(*words, env=env)).url for _ in range(2)])


@pytest.mark.light_cases(1)
@MODES
async def test_an_episode_goes_on_at_the_other_server(balancer: Balancer, mode: str) -> None:
    async with Client(balancer.over(), mode=mode) as client:
        await client.list_tools()
        begun = await reflexion_clients.good(client, step("actor", 1, 2, actorInputText="Name a prime above 8."))
        episode = {"episodeId": begun["episodeId"]}
        before = list(balancer.asked)
        for trial, output in ((1, "9"), (2, "11")):
            judged: dict[str, Any] = {"actorOutputText": output, **episode}
            if trial == 2:
                acted = step("actor", 2, 2, actorInputText="Name a prime above 8.", **episode)
                assert (await reflexion_clients.good(client, acted))["current_memory"] == ["3 divides it."]
                done = step("evaluator", 2, 2, passed=True, **judged)
                assert (await reflexion_clients.good(client, done))["trialCompleted"] == 2
                break
            await reflexion_clients.good(client, step("evaluator", 1, 2, **judged))
            scored = step("self-reflection", 1, 2, evaluatorScore="not a prime", **judged)
            await reflexion_clients.good(client, scored)
            await reflexion_clients.good(client, {**scored, "reflectionText": "3 divides it."})
        assert min(now - then for now, then in zip(balancer.asked, before, strict=True)) >= 2
        left_out = await reflexion_clients.refused(client, step("evaluator", 1, 2, actorOutputText="9"))
        assert "remembers nothing between calls: pass the episodeId" in left_out


async def test_a_session_that_a_request_names_holds_nothing(balancer: Balancer) -> None:
    """Its id is not a way into what another caller with the same one did."""
    async with Client(balancer.over(mcp_session_id="made-up"), mode="legacy") as client:
        await client.list_tools()
        for _ in range(2):
            await reflexion_clients.good(client, step("actor", 1, 2, actorInputText="Name a prime above 8."))
        said = await reflexion_clients.refused(client, step("evaluator", 1, 2, actorOutputText="9"))
        assert "remembers nothing between calls" in said


@pytest.mark.light_cases(1)
@MODES
async def test_a_group_is_filled_and_closed_wherever_it_is_asked_for(balancer: Balancer, mode: str) -> None:
    async with Client(balancer.over(), mode=mode) as client:
        await client.list_tools()
        group = (await good(client, "memory_group", action="open", query=QUERY, agent_id="me"))["group_id"]
        of = {"group_id": group, "agent_id": "me"}
        for n in range(1, 5):
            said = [{"step": 1, "role": "assistant", "content": f"Way {n}"}]
            given = await good(client, "memory_group", action="submit", trajectory=said, success_signal=n > 2, **of)
            assert given["trajectory"] == n
        asked = await good(client, "memory_group", action="close", **of)
        assert asked["schema"]["properties"]["best"]["enum"] == [3, 4]
        closed = await good(client, "memory_group", action="close", best=4, **of)
        lessons = [LESSON | {"steps": [1]}]
        task = closed["learning"]["task_id"]
        done = await good(client, "extract_memory", task_id=task, lessons=lessons, agent_id="me")
        assert done["extracted_count"] == 1
        for _ in range(2):
            again = await good(client, "memory_group", action="close", **of)
            assert again["learning"]["memories"] == done["memories"]
            found = await good(client, "retrieve_memory", query=QUERY, agent_id="me")
            assert [one["title"] for one in found["memories"]] == [LESSON["title"]]
    assert min(balancer.asked) >= 5


@pytest.mark.slow
@pytest.mark.light_cases(1)
@MODES
async def test_the_walls_hold_at_both(address: str, mode: str) -> None:
    with both(address, MULLIGAN_TOKEN=f"{ANN} {BEN}") as balancer:
        ann, ben = (one.partition(":")[2] for one in (ANN, BEN))
        async with Client(balancer.over(ann), mode=mode) as hers, Client(balancer.over(ben), mode=mode) as his:
            for client in (hers, his):
                await client.list_tools()
            asked = await good(hers, "extract_memory", trajectory=TRAJECTORY, query=QUERY, success_signal=True)
            lessons = {"task_id": asked["task_id"], "lessons": [LESSON]}
            first = await reflexion_clients.good(hers, step("actor", 1, 2, actorInputText="Hers."))
            for _ in range(2):
                assert "There is no task" in (await refused(his, "extract_memory", **lessons))["message"]
            for _ in range(2):
                other = step("evaluator", 1, 2, actorOutputText="x", episodeId=first["episodeId"])
                assert "There is no episode" in await reflexion_clients.refused(his, other)
            assert (await good(hers, "extract_memory", **lessons))["extracted_count"] == 1
            for _ in range(2):
                assert len((await good(hers, "retrieve_memory", query=QUERY))["memories"]) == 1
                assert (await good(his, "retrieve_memory", query=QUERY))["memories"] == []
                said = await refused(his, "retrieve_memory", query=QUERY, agent_id="ann")
                assert "serves only 'ben'" in said["message"]


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        yield wire


@pytest.mark.slow
@pytest.mark.light_cases(1)
@MODES
async def test_what_one_accepted_is_learned_once_by_either(address: str, wire: Wire, mode: str) -> None:
    wire.plays(
        *(
            {"when": f"[task {n}]", "answer": EXTRACTED | {"lessons": [LESSON | {"title": f"{n}", "content": f"{n}."}]}}
            for n in range(12)
        )
    )
    with both(address, "--model", MODEL) as balancer:
        async with Client(balancer.over(), mode=mode) as client:
            await client.list_tools()

            async def learned(n: int) -> str:
                task = {"trajectory": TRAJECTORY, "query": f"[task {n}] {QUERY}", "success_signal": True}
                answer = await good(client, "extract_memory", agent_id=f"agent {n % 2}", **task)
                assert answer["status"] == "processing"
                done = await settled(client, answer["task_id"], agent_id=f"agent {n % 2}")
                assert done["status"] == "success"
                return done["memories"][0]["title"]

            assert await asyncio.gather(*map(learned, range(12))) == [str(n) for n in range(12)]
    asked = [re.findall(r"\[task (\d+)\]", str(body)) for body in wire.bodies]
    assert sorted(int(numbers[0]) for numbers in asked) == list(range(12)), "each is asked for once"
    assert min(balancer.asked) >= 12
    async with open_store(os.environ["MULLIGAN_STORE"]) as store:
        kept = await store.memory.lessons.list(None, Selection(limit=None))
        assert sorted(int(one.title) for one in kept) == list(range(12))
        assert await store.memory.queue.pending(None) == ()
