"""The outcome of a recall over MCP: told by itself, or in the call that ends a task that the client leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from memory_clients import SETTINGS, a_client, a_service, good, refused
from reflexion_clients import good as done
from reflexion_clients import step
from surfaces import surface

from mulligan.app.service import Service


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)


async def recalled(client: Client, service: Service) -> str:
    await service.bank("me").add("Order history", "Open the order history.")
    return (await good(client, "retrieve_memory", query="order history", agent_id="me"))["retrieval_id"]


async def counted(service: Service) -> list[tuple[int, int]]:
    """Of the bank and of its lesson: outcomes, successes."""
    return [(one.tally.known, one.tally.solved) for one in await service.bank("me").worth()]


@pytest.mark.parametrize("success", [True, False])
async def test_the_outcome_alone_is_told_and_nothing_is_learned(success: bool) -> None:
    async with a_service() as service, a_client(service) as client:
        recall = await recalled(client, service)
        told: dict[str, Any] = {"retrieval_id": recall, "agent_id": "me"}
        answer = await good(client, "extract_memory", **told, success_signal=success)
        assert (answer["status"], answer["success"], answer["memories"]) == ("success", success, [])
        assert "nothing is learned" in answer["message"]
        again = await good(client, "extract_memory", **told, success_signal=not success)
        assert again["success"] == success
        before = "success" if success else "failure"
        assert again["message"] == f"The outcome does not count: it was reported before, as a {before}."
        assert await counted(service) == [(1, success), (1, success)]
        assert await service.bank("me").pending() == ()
        for other in ({**told, "agent_id": "you"}, {"retrieval_id": recall}, {**told, "retrieval_id": "rnone"}):
            assert (
                "There is no recall"
                in (await refused(client, "extract_memory", **other, success_signal=True))["message"]
            )


async def test_what_is_withheld_is_no_empty_bank(tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text(SETTINGS + "withhold = 0.5\n")
    async with a_service() as service, a_client(service) as client:
        await recalled(client, service)
        said = [await good(client, "retrieve_memory", query="order history", agent_id="me") for _ in range(20)]
    none = [one for one in said if one["status"] == "no_memories"]
    assert 0 < len(none) < 20
    assert all("without 1 entry, withheld to measure its worth" in one["message"] for one in none)


@pytest.mark.parametrize("learn", [True, False])
async def test_the_last_call_of_a_task_that_a_client_leads_names_its_recall(learn: bool) -> None:
    async with surface() as (client, service):
        recall = await recalled(client, service)
        begun = await done(client, step("actor", 1, 2, actorInputText="Pay.", agentId="me"))
        over: dict[str, Any] = {"actorOutputText": "Paid.", "passed": True, "learn": learn, "retrievalId": recall}
        answer = await done(client, step("evaluator", 1, 2, episodeId=begun["episodeId"], **over))
        assert answer["learning"]["status"] == ("needs_thinking" if learn else "success")
        assert await counted(service) == [(1, 1), (1, 1)]
        assert [one.success for one in (await service.bank("me").receipt(recall)).outcomes] == [True]
