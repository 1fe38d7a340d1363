"""`learn`: what a client's finished episode teaches the bank of its agent, with a model and without one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from banks import lessons_of
from mcp import Client
from reflexion_clients import a_client, a_service, good, step

TASK = "Name a prime above 8."
LESSONS = lessons_of(("Divide first", "Divide by the small primes before naming one."))


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "mulligan.toml").write_text("[memory]\nembedder = 'none'\n")
    monkeypatch.chdir(tmp_path)


def scripted(folder: Path, *answers: Any) -> str:
    file = folder / "answers.json"
    file.write_text(json.dumps(list(answers)))
    return f"scripted:{file}"


async def solved(client: Client, **more: Any) -> dict[str, Any]:
    """The answer to the call that ends it."""
    id = (await good(client, step("actor", 1, 2, actorInputText=TASK, learn=True, **more)))["episodeId"]
    answer = await good(client, step("evaluator", 1, 2, actorOutputText="9", episodeId=id, learn=True))
    assert "learning" not in answer, "learn is ignored before the end"
    said = {"actorOutputText": "9", "evaluatorScore": "3 divides it.", "reflectionText": "Divide.", "learn": True}
    assert "learning" not in await good(client, step("self-reflection", 1, 2, episodeId=id, **said))
    await good(client, step("actor", 2, 2, actorInputText=TASK, episodeId=id))
    over = {"actorOutputText": "11", "passed": True, "learn": True}
    return await good(client, step("evaluator", 2, 2, episodeId=id, **over))


async def test_with_a_model_it_is_learned_in_the_background(tmp_path: Path) -> None:
    async with a_service(model=scripted(tmp_path, LESSONS)) as service, a_client(service) as client:
        answer = await solved(client, agentId="mine")
        assert list(answer)[-2:] == ["learning", "episodeId"]
        learning = answer["learning"]
        assert learning["status"] == "processing"
        assert learning["task_id"].startswith("extract_")
        bank = service.bank("mine")
        async with asyncio.timeout(60):  # the server's own worker may be at it
            while not await bank.list():
                await bank.work(10)
        (lesson,) = await bank.list()
        assert (lesson.title, lesson.origin.episode, lesson.agent_id) == ("Divide first", answer["episodeId"], "mine")
        assert await service.bank("").list() == ()


async def test_without_a_model_the_client_is_asked_to_think() -> None:
    async with a_service() as service, a_client(service) as client:
        answer = await solved(client, agentId="Jo Doe")
        learning = answer["learning"]
        assert learning["status"] == "needs_thinking"
        assert TASK in learning["prompt"]
        assert learning["schema"]["type"] == "object"
        work = learning["task_id"].removeprefix("extract_")
        assert learning["message"].endswith(f": mulligan memory --bank 'Jo Doe' pending {work} FILE")
        learned = await service.bank("Jo Doe").commit(work, LESSONS)
        assert len(learned.lessons) == 1


async def test_extract_memory_is_named_where_it_is_offered() -> None:
    async with a_service() as service, a_client(service, tools="all") as client:
        learning = (await solved(client))["learning"]
        assert "call extract_memory with this task_id" in learning["message"]


async def test_the_last_reflection_teaches_and_a_repeated_call_teaches_once() -> None:
    async with a_service() as service, a_client(service) as client:
        said = {"actorOutputText": "9", "evaluatorScore": "No.", "reflectionText": "Divide."}
        last = step("self-reflection", 1, 1, actorInputText=TASK, **said)
        assert "learning" not in await good(client, last), "only where it is asked for"
        first, again = [await good(client, {**last, "learn": True}) for _ in range(2)]
        assert first["learning"]["task_id"] == again["learning"]["task_id"]
        assert first["episodeId"] == again["episodeId"]
        assert len(await service.bank("").pending()) == 1


async def test_a_bank_that_fails_leaves_the_step_taken(tmp_path: Path) -> None:
    (tmp_path / "mulligan.toml").write_text("[memory]\nretrieval = 'no-such-strategy'\n")
    async with a_service() as service, a_client(service) as client:
        said = {"actorOutputText": "11", "evaluatorScore": 1, "passed": True, "learn": True}
        answer = await good(client, step("self-reflection", 1, 1, actorInputText=TASK, **said))
        assert answer["learning"]["status"] == "error"
        assert "no-such-strategy" in answer["learning"]["message"]
        assert answer["next_trial_needed"] is False
