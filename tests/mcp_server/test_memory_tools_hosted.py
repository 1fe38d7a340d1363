"""Extraction by the server's model, a provider on loopback: at once and in the background, when it fails, as in the paper."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from memory_clients import (
    EXTRACTED,
    EXTRACTS,
    LESSON,
    MODEL,
    QUERY,
    SETTINGS,
    TRAJECTORY,
    a_client,
    a_service,
    good,
    hosted,
    refused,
    settled,
)
from wire_client import KEY, Wire, running

from mulligan.bank.upkeep import upkeep as worker
from mulligan.mcp_server.server import run_tool
from mulligan.mcp_server.tool import Call
from mulligan.mcp_server.tools import extract_memory

TASK: dict[str, Any] = {"trajectory": TRAJECTORY, "query": QUERY, "agent_id": "me"}


@pytest.fixture(scope="module")
def provider() -> Generator[Wire]:
    with running("--port", "0") as wire:
        yield wire


@pytest.fixture
def wire(provider: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wire:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    hosted(provider)
    return provider


def configured(settings: str) -> None:
    Path("mulligan.toml").write_text(settings)


async def test_in_the_background_it_comes_to_what_it_comes_to_at_once(wire: Wire) -> None:
    async with a_service(model=MODEL) as service, a_client(service) as client:
        accepted = await good(client, "extract_memory", **TASK)
        assert accepted["status"] == "processing"
        later = await settled(client, accepted["task_id"], agent_id="me")
        at_once = await good(client, "extract_memory", **TASK, async_mode=False)
        assert later == at_once | {"async_mode": True}
        assert [one["title"] for one in later["memories"]] == ["Whole history"]
        assert len(wire.requests) == 2  # one judged, one extracted: the same trajectory is learned from once


async def test_a_signal_spares_the_judge(wire: Wire) -> None:
    async with a_service(model=MODEL) as service, a_client(service) as client:
        done = await good(client, "extract_memory", **TASK, success_signal=False, async_mode=False)
        assert done["success"] is False
        (asked,) = wire.requests
        assert EXTRACTS in str(asked["body"])


async def test_lessons_of_the_callers_own_need_no_model(wire: Wire) -> None:
    async with a_service(model=MODEL) as service, a_client(service) as client:
        done = await good(client, "extract_memory", **TASK, success_signal=True, lessons=[LESSON])
        assert (done["status"], done["extracted_count"], wire.requests) == ("success", 1, [])


async def test_a_model_that_is_down_leaves_a_task_that_can_be_tried_again(wire: Wire) -> None:
    wire.plays({"when": EXTRACTS, "status": 503})
    task = TASK | {"success_signal": True, "async_mode": False}
    async with a_service(model=MODEL) as service, a_client(service) as client:
        said = await refused(client, "extract_memory", **task)
        assert "The task waits" in said["message"]
        waits = await good(client, "memory_task", task_id=said["task_id"])
        assert (waits["status"], waits["wanted"]) == ("needs_thinking", "lessons")
        assert "503" in waits["message"]
        hosted(wire)
        done = await good(client, "extract_memory", **task)
        assert (done["status"], done["task_id"], done["extracted_count"]) == ("success", said["task_id"], 1)


async def test_or_be_done_in_the_background_or_by_the_caller(wire: Wire) -> None:
    async with a_service(model=MODEL) as service, a_client(service) as client:
        for n, how in enumerate(({}, {"lessons": [LESSON | {"content": "By hand."}]})):
            wire.plays({"when": EXTRACTS, "status": 503})
            task = TASK | {"success_signal": True, "query": f"Task {n}"}
            said = await refused(client, "extract_memory", **task, async_mode=False)
            hosted(wire)
            await good(client, "extract_memory", task_id=said["task_id"], **how)
            assert (await settled(client, said["task_id"]))["extracted_count"] == 1


async def test_what_failed_in_the_background_is_tried_again_by_the_same_server(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "RETRY", 0.1)
    wire.plays({"status": 503})
    async with a_service(model=MODEL) as service, a_client(service) as client:
        accepted = await good(client, "extract_memory", **TASK, success_signal=True)
        while not wire.requests:
            assert (await good(client, "memory_task", task_id=accepted["task_id"]))["status"] == "processing"
        hosted(wire)
        assert (await settled(client, accepted["task_id"]))["extracted_count"] == 1


async def test_an_extraction_that_failed_for_good_is_a_new_task_when_asked_again(wire: Wire) -> None:
    hosted(wire, "I would rather not.")
    async with a_service(model=MODEL) as service, a_client(service) as client:
        first = await good(client, "extract_memory", **TASK)
        assert (await settled(client, first["task_id"]))["status"] == "error"
        hosted(wire)
        again = await good(client, "extract_memory", **TASK, async_mode=False)
        assert (again["status"], again["extracted_count"]) == ("success", 1)
        assert again["task_id"] != first["task_id"]


async def test_behind_a_verdict_of_the_callers_the_model_extracts(wire: Wire) -> None:
    async with a_service() as service, a_client(service) as client:
        asked = await good(client, "extract_memory", **TASK)
    hosted(wire, "I would rather not.")
    async with a_service(model=MODEL) as service, a_client(service) as client:
        said = await refused(client, "extract_memory", task_id=asked["task_id"], success_signal=True, async_mode=False)
        assert "gave no lessons that can be used" in said["message"]
        hosted(wire)
        done = await good(client, "extract_memory", **TASK, success_signal=True, async_mode=False)
        assert (done["status"], done["success"], done["extracted_count"]) == ("success", True, 1)
        assert (await good(client, "memory_task", task_id=asked["task_id"]))["memory_id"] == done["memory_id"]


async def test_a_server_without_a_model_hands_out_what_one_with_a_model_left(wire: Wire) -> None:
    wire.plays({"when": EXTRACTS, "hang": True})
    async with a_service(model=MODEL) as service, a_client(service) as client:
        accepted = await good(client, "extract_memory", **TASK, success_signal=True)
        await service.close(0.05)
    async with a_service() as service, a_client(service) as client:
        known = await good(client, "memory_task", task_id=accepted["task_id"])
        assert (known["status"], "this one has none" in known["message"]) == ("processing", True)
        asked = await good(client, "extract_memory", task_id=accepted["task_id"])
        assert (asked["status"], asked["wanted"]) == ("needs_thinking", "lessons")
        done = await good(client, "extract_memory", task_id=accepted["task_id"], lessons=[LESSON])
        assert done["extracted_count"] == 1


@pytest.mark.parametrize("by", ["flag", "file"])
async def test_the_paper_preset_does_it_at_once(wire: Wire, by: str) -> None:
    if by == "file":
        configured(SETTINGS + "preset = 'paper'\n")
    async with a_service(model=MODEL, preset="paper" if by == "flag" else None) as service, a_client(service) as client:
        for n in range(2):
            done = await good(client, "extract_memory", **TASK | {"query": f"{QUERY} {n}"}, async_mode=True)
            assert (done["status"], done["async_mode"], done["extracted_count"]) == ("success", False, 1)
            assert done["management"] == {
                "duplicates_skipped": 0,
                "merges_triggered": 0,
                "message": "Nothing was a duplicate.",
            }
        found = await good(client, "retrieve_memory", query=QUERY, agent_id="me", top_k=2)
        assert found["retrieval_strategy"] == "cosine"
        assert [one["title"] for one in found["memories"]] == ["Whole history", "Whole history"]


async def test_top_k_counts_experiences_in_the_paper_preset(wire: Wire) -> None:
    three = [LESSON | {"title": f"Lesson {n}", "content": f"Do {n}."} for n in range(3)]
    hosted(wire, EXTRACTED | {"lessons": three})
    async with a_service(model=MODEL, preset="paper") as service, a_client(service) as client:
        await good(client, "extract_memory", **TASK)
        found = await good(client, "retrieve_memory", query=QUERY, agent_id="me", top_k=1)
        assert len(found["memories"]) == 3
        assert found["min_score_threshold"] == 0.0


async def test_merges_are_counted_once_they_are_made(wire: Wire) -> None:
    configured("[memory]\nembedder = 'hash'\n[memory.merging]\nname = 'voting'\nsimilarity_threshold = 0.5\n")
    async with a_service(model=MODEL) as service, a_client(service) as client:
        tasks: list[str] = []
        for n in range(3):
            hosted(wire, EXTRACTED | {"lessons": [LESSON | {"content": f"{LESSON['content']} Once more: {n}."}]})
            done = await good(client, "extract_memory", **TASK | {"query": f"{QUERY} {n}"}, async_mode=False)
            tasks.append(done["task_id"])
        async with asyncio.timeout(30):
            while True:
                known = await settled(client, tasks[-1])
                if known["management"]["merges_triggered"]:
                    break
                await asyncio.sleep(0.02)
        assert (known["management"]["merges_triggered"], known["extracted_count"]) == (1, 1)


async def test_learning_left_behind_is_finished_from_the_start(wire: Wire) -> None:
    wire.plays({"when": EXTRACTS, "hang": True})
    async with a_service(model=MODEL) as service, a_client(service) as client:
        accepted = await good(client, "extract_memory", **TASK, success_signal=True)
        await service.close(0.05)
    hosted(wire)
    async with a_service(model=MODEL) as service:
        await service.finish_pending()
        while (await service.bank("me").outcome(accepted["task_id"].removeprefix("extract_"))).pending:
            await service.bank("me").work(1)
        assert [lesson.title for lesson in await service.bank("me").list()] == ["Whole history"]


async def test_finishing_makes_no_store_and_needs_a_model(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_service(model=MODEL) as service:
        await service.finish_pending()
        assert not service.config.database.exists()
    async with a_service() as service, a_client(service) as client:
        await good(client, "extract_memory", **TASK, success_signal=True)
        await service.finish_pending()
    assert wire.requests == []


async def test_finishing_in_a_file_that_is_not_a_store_says_so(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    async with a_service(model=MODEL) as service:
        service.config.database.parent.mkdir(parents=True, exist_ok=True)
        service.config.database.write_text("This is no database at all.")
        await service.finish_pending()
    assert "could not be finished" in caplog.text


async def test_a_call_that_is_cancelled_leaves_its_task_for_the_next(wire: Wire) -> None:
    task = TASK | {"success_signal": True, "async_mode": False}
    wire.plays({"when": EXTRACTS, "hang": True})
    async with a_service(model=MODEL) as service, a_client(service) as client:
        call = asyncio.create_task(run_tool(extract_memory.TOOL, task, Call(service)))
        async with asyncio.timeout(30):
            while True:
                if wire.requests:
                    break
                await asyncio.sleep(0.01)
        meanwhile = await good(client, "extract_memory", **task)
        assert (meanwhile["status"], meanwhile["async_mode"]) == ("processing", False)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        waits = await good(client, "memory_task", task_id=meanwhile["task_id"])
        assert waits["status"] == "needs_thinking"
        hosted(wire)
        done = await good(client, "extract_memory", **task)
        assert (done["task_id"], done["extracted_count"]) == (meanwhile["task_id"], 1)
