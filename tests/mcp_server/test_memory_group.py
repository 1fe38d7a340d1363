"""`memory_group`: trajectories that a client ran are compared and learned from, without a key, with one, and after a kill."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from memory_clients import EXTRACTED, LESSON, MODEL, SETTINGS, a_service, data_of, good, refused, settled
from serving import by_stdio, over, piped, served
from wire_client import KEY, running

from mulligan.app.prompts import FilePrompts
from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Task
from mulligan.mcp_server.server import make_server, one_connection

QUERY = "Find the earliest order date of the user on the shopping website"
TOOLS = ("--tools", "memory,scaling")


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    (tmp_path / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)


@asynccontextmanager
async def a_client(service: Service, which: str = "memory,scaling", mode: str = "legacy") -> AsyncGenerator[Client]:
    async with Client(
        make_server(service, which, lambda _: one_connection(service.served.agent_id)), mode=mode
    ) as client:
        await client.list_tools()
        yield client


def steps(*said: str) -> list[dict[str, Any]]:
    return [{"step": n, "role": "assistant", "content": one} for n, one in enumerate(said, 1)]


async def opened(client: Client, query: str = QUERY, agent: str = "me") -> str:
    answer = await good(client, "memory_group", action="open", query=query, agent_id=agent)
    assert (answer["status"], answer["trajectories"]) == ("open", 0)
    return answer["group_id"]


async def submitted(client: Client, group: str, *said: str, agent: str = "me", **more: Any) -> int:
    given = {"group_id": group, "trajectory": steps(*said), "agent_id": agent, **more}
    return (await good(client, "memory_group", action="submit", **given))["trajectory"]


async def walked(client: Client, agent: str = "me", mark: str = "") -> dict[str, Any]:
    """Three trajectories, two of which are equally good, compared and learned from by the client; the last answer."""
    group = await opened(client, f"{QUERY} {mark}", agent)
    told: list[tuple[str, dict[str, Any]]] = [("Guessed", {"success_signal": False}), ("Paged", {}), ("Sorted", {})]
    for n, (one, more) in enumerate(told, 1):
        more = more or {"success_signal": True}
        assert await submitted(client, group, f"{one} {mark}", agent=agent, **more) == n
    asked = await good(client, "memory_group", action="close", group_id=group, agent_id=agent)
    assert (asked["status"], asked["wanted"]) == ("needs_thinking", "best")
    assert asked["schema"]["properties"]["best"]["enum"] == [2, 3]
    assert "Attempt 3:" in asked["prompt"]
    assert f"Guessed {mark}" not in asked["prompt"]
    closed = await good(client, "memory_group", action="close", group_id=group, best=3, agent_id=agent)
    assert (closed["status"], closed["best"], closed["success"], closed["output"]) == (
        "closed",
        3,
        True,
        f"Sorted {mark}",
    )
    learning = closed["learning"]
    assert (learning["status"], learning["wanted"]) == ("needs_thinking", "lessons")
    for n, ended in enumerate(("failed", "succeeded", "succeeded"), 1):
        assert f"Trajectory {n} ({ended}):" in learning["prompt"]
    lessons = [LESSON | {"steps": [1, 3], "title": f"Sort {mark}"}]
    done = await good(client, "extract_memory", task_id=learning["task_id"], lessons=lessons, agent_id=agent)
    assert (done["status"], done["extracted_count"]) == ("success", 1)
    again = await good(client, "memory_group", action="close", group_id=group, agent_id=agent)
    assert again["best"] == 3
    assert again["learning"] == {name: value for name, value in done.items() if name != "async_mode"}
    return again


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_compares_and_draws_the_lessons(mode: str) -> None:
    async with a_service() as service, a_client(service, mode=mode) as client:
        await walked(client)
        assert [lesson.title for lesson in await service.bank("me").list()] == ["Sort"]
        assert await service.bank("me").pending() == ()


async def test_an_outcome_that_is_best_alone_needs_no_comparison() -> None:
    async with a_service() as service, a_client(service) as client:
        outcomes: list[list[dict[str, Any]]] = [
            [{"success_signal": False}, {"success_signal": True}],
            [{"score": 0.25}, {"score": 0.5}],
        ]
        for told in outcomes:
            group = await opened(client)
            for n, outcome in enumerate(told):
                await submitted(client, group, f"Way {n}", **outcome)
            closed = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
            assert (closed["best"], closed["output"]) == (2, "Way 1")
            assert closed["message"] == "The best is trajectory 2, by its outcome."
            assert (closed["success"], closed["score"]) == (told[1].get("success_signal"), told[1].get("score"))


async def test_what_is_worse_by_its_outcome_is_never_the_best() -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        for n, outcome in enumerate((False, True, True)):
            await submitted(client, group, f"Way {n}", success_signal=outcome)
        said = await refused(client, "memory_group", action="close", group_id=group, best=1, agent_id="me")
        assert said["message"] == '"best" must be the number of an attempt (2 or 3), not 1.'
        closed = await good(client, "memory_group", action="close", group_id=group, best="2", agent_id="me")
        assert closed["best"] == 2


async def test_the_same_trajectory_counts_once_and_may_tell_its_outcome_later() -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        assert await submitted(client, group, "A") == 1
        assert await submitted(client, group, "B") == 2
        assert await submitted(client, group, "A", success_signal=True) == 1
        assert await submitted(client, group, "A") == 1
        again = {"group_id": group, "trajectory": steps("A"), "agent_id": "me", "success_signal": False}
        said = await refused(client, "memory_group", action="submit", **again)
        assert "This is trajectory 1, which was already submitted with a different outcome" in said["message"]
        closed = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
        assert (closed["best"], closed["trajectories"]) == (1, 2)
        assert await submitted(client, group, "B") == 2, "it is known after the end, too"
        late = await refused(client, "memory_group", action="submit", **again | {"trajectory": "Another"})
        assert "is closed" in late["message"]


async def test_a_text_is_a_trajectory() -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        given = {"group_id": group, "trajectory": "I sorted, and took the first.", "agent_id": "me"}
        await good(client, "memory_group", action="submit", success_signal=True, **given)
        closed = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
        assert closed["output"] == "I sorted, and took the first."
        assert closed["learning"]["wanted"] == "lessons"


async def test_trajectories_that_come_at_once_are_all_kept() -> None:
    async with a_service() as service, a_client(service) as client, a_client(service) as other:
        group = await opened(client)
        both = [client, other]
        numbers = await asyncio.gather(*(submitted(both[n % 2], group, f"Way {n}") for n in range(12)))
        assert sorted(numbers) == list(range(1, 13))


async def test_each_recall_gets_the_outcome_of_its_own_trajectory() -> None:
    async with a_service() as service, a_client(service) as client:
        await service.bank("me").add("Sort", "Sort the orders by date.", query=QUERY)
        group, receipts = await opened(client), list[str]()
        for outcome in (True, False):
            found = await good(client, "retrieve_memory", query=QUERY, agent_id="me")
            receipts.append(found["retrieval_id"])
            await submitted(client, group, f"Way {outcome}", success_signal=outcome, retrieval_id=receipts[-1])
        await good(client, "memory_group", action="close", group_id=group, agent_id="me")
        told = [await service.bank("me").outcome_of(one, success=True) for one in receipts]
        assert told == [True, False], "what was told first counts"


async def test_another_agent_and_another_project_see_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        await submitted(client, group, "A")
        nobodys = await refused(client, "memory_group", action="close", group_id="w000000000000", agent_id="me")
        for agent in ("you", None):
            said = await refused(client, "memory_group", action="close", group_id=group, agent_id=agent)
            assert said["message"] == nobodys["message"].replace("w000000000000", group)
    (tmp_path / "other" / ".git").mkdir(parents=True)
    (tmp_path / "other" / "mulligan.toml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path / "other")
    async with a_service() as service, a_client(service) as client:
        said = await refused(client, "memory_group", action="close", group_id=group, agent_id="me")
        assert said["message"] == nobodys["message"].replace("w000000000000", group)


async def test_a_group_that_expired_says_so_and_keeps_no_trajectory() -> None:
    async with a_service() as service, a_client(service) as client:
        groups = service.bank("me").groups
        group = (await groups.open(Task(QUERY), seconds=-1.0)).id
        for action in ("submit", "close"):
            given = {"trajectory": steps("A")} if action == "submit" else {}
            said = await refused(client, "memory_group", action=action, group_id=group, agent_id="me", **given)
            assert "expired at 20" in said["message"]
        left = (await groups.open(Task(QUERY), seconds=-1.0)).id
        await opened(client)  # removes what has expired
        assert [work.id == left for work in await service.bank("me").pending()] == [False]


async def test_secrets_are_masked_before_they_are_kept_or_shown() -> None:
    secret = "sk-ant-api03-" + "Zq7Xw2" * 15
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        for n in range(2):
            await submitted(client, group, f"Way {n}: export ANTHROPIC_API_KEY={secret}")
        (work,) = await service.bank("me").pending()
        asked = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
        closed = await good(client, "memory_group", action="close", group_id=group, best=1, agent_id="me")
    assert "Way 0" in closed["output"]
    assert secret not in json.dumps([work.payload, asked, closed])


async def test_what_stands_in_a_trajectory_ends_no_fence() -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        for n in range(2):
            await submitted(client, group, f"````\nAttempt 9:\n```` {n}")
        asked = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
    assert "`````\nAction 1: ````\nAttempt 9:\n```` 0\n`````\n" in asked["prompt"]


@pytest.mark.light_cases(4)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"action": "shut"}, "'action' must be open, submit, close, not 'shut'"),
        ({"action": "open"}, "'query' must be a string"),
        ({"action": "close"}, 'group_id is missing: pass the one that action "open" returned'),
        ({"action": "close", "group_id": "{group}"}, "has no trajectory yet"),
        ({"action": "close", "group_id": "{group}", "best": 1.5}, "'best' must be the number of a trajectory"),
        ({"action": "submit", "group_id": "{group}"}, "trajectory is missing"),
        ({"action": "submit", "group_id": "{group}", "trajectory": []}, "at least one step"),
        ({"action": "submit", "group_id": "{group}", "trajectory": "x", "score": "high"}, "'score' must be a number"),
        (
            {"action": "submit", "group_id": "{group}", "trajectory": "x", "success_signal": "so"},
            "success_signal must be",
        ),
        ({"action": "submit", "group_id": "{group}", "trajectory": "x", "retrieval_id": "r0"}, "no recall 'r0'"),
        ({"action": "submit", "group_id": "{group}", "trajectory": "x" * 2_000_001}, "at most 2,000,000"),
    ],
)
async def test_what_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        given = {name: group if value == "{group}" else value for name, value in arguments.items()}
        said = await refused(client, "memory_group", agent_id="me", **given)
        assert said["status"] == "error"
        assert message in said["message"]


@pytest.mark.slow
async def test_room_is_limited() -> None:
    async with a_service() as service, a_client(service) as client:
        group = await opened(client)
        await submitted(client, group, "a" * 1_500_000)
        await submitted(client, group, "b" * 100)
        given = {"group_id": group, "trajectory": steps("c" * 1_500_000), "agent_id": "me"}
        said = await refused(client, "memory_group", action="submit", **given)
        assert "at most 4,000,000 are accepted in total" in said["message"]
        for _ in range(49):
            await opened(client)
        said = await refused(client, "memory_group", action="open", query=QUERY, agent_id="me")
        assert said["message"].startswith("50 groups are open")
        await opened(client, agent="you")


async def test_a_group_is_no_question_of_the_command_line() -> None:
    async with a_service() as service, a_client(service) as client:
        group, bank = await opened(client), service.bank("me")
        for asked in (bank.question(group), bank.commit(group, {"best": 1})):
            with pytest.raises(InvalidInput, match="is a group of trajectories: close it"):
                await asked


async def test_without_extract_memory_the_lessons_are_kept_by_a_command() -> None:
    async with a_service() as service, a_client(service, "scaling") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["memory_group"]
        group = await opened(client)
        await submitted(client, group, "A", success_signal=True)
        closed = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
        assert "mulligan memory --bank me pending" in closed["learning"]["message"]
        unknown = data_of(await client.call_tool("memory_groups", {}))
        assert unknown == {"status": "error", "message": "Unknown tool: memory_groups"}


@pytest.mark.slow
async def test_a_model_of_the_server_compares_and_learns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        compared = {"when": "tells the attempts apart", "answer": {"reasoning": "It sorts.", "best": 2}}
        wire.plays({"when": "nothing_because", "answer": EXTRACTED | {"lessons": [LESSON | {"steps": [1]}]}}, compared)
        async with a_service(model=MODEL) as service, a_client(service) as client:
            group = await opened(client)
            for n in range(2):
                await submitted(client, group, f"Way {n}", success_signal=True)
            closed = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
            assert (closed["best"], closed["learning"]["status"]) == (2, "processing")
            done = await settled(client, closed["learning"]["task_id"], agent_id="me")
            assert [one["title"] for one in done["memories"]] == ["Whole history"]
            again = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
            assert (again["best"], again["learning"]["memories"]) == (2, done["memories"])
        assert len(wire.requests) == 2


async def test_with_the_preset_of_the_paper_the_contrast_is_asked_as_there() -> None:
    async with a_service(preset="paper") as service, a_client(service) as client:
        group = await opened(client)
        for n in range(2):
            await submitted(client, group, f"Way {n}", success_signal=n == 0)
        closed = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
    contrast = FilePrompts().get("extraction.paper.contrast").render(task="", reason="", trajectory="")[0].text
    assert closed["learning"]["prompt"].startswith(contrast)
    assert closed["learning"]["schema"]["properties"]["lessons"]["maxItems"] == 5


async def test_where_the_model_cannot_compare_the_client_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        wire.plays({"when": "tells the attempts apart", "answer": {"reasoning": "", "best": 7}})
        async with a_service(model=MODEL) as service, a_client(service) as client:
            group = await opened(client)
            for n in range(2):
                await submitted(client, group, f"Way {n}", success_signal=True)
            asked = await good(client, "memory_group", action="close", group_id=group, agent_id="me")
            assert (asked["status"], asked["wanted"]) == ("needs_thinking", "best")
            assert asked["message"].startswith("The server's model could not compare them: ")
            closed = await good(client, "memory_group", action="close", group_id=group, best=1, agent_id="me")
            assert (closed["best"], closed["learning"]["status"]) == (1, "processing")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_two_agents_groups_at_once_never_mix(transport: str, mode: str) -> None:
    async def walks(one: Any, other: Any) -> None:
        async with Client(one, mode=mode) as first, Client(other, mode=mode) as second:
            for client in (first, second):
                await client.list_tools()
            await asyncio.gather(walked(first, "one", "[one]"), walked(second, "two", "[two]"))

    if transport == "stdio":
        await walks(by_stdio(*TOOLS), by_stdio(*TOOLS))
    else:
        with served(*TOOLS) as server:
            await walks(over(server.url), over(server.url))
    async with a_service() as service:
        for agent in ("one", "two"):
            lessons = await service.bank(agent).list()
            assert [(one.title, one.query) for one in lessons] == [(f"Sort [{agent}]", f"{QUERY} [{agent}]")]


@pytest.mark.slow
async def test_a_group_outlives_servers_that_are_killed() -> None:
    """Killed after each call that was answered: the next server has all of it, and the end is the same again."""
    answers = list[Any]()

    def called(**arguments: Any) -> Any:
        with piped(*TOOLS) as server:
            server.handshake()
            result = server.call("memory_group", {"agent_id": "me", **arguments})
            server.stop(signal.SIGKILL)
        answers.append(json.loads(result["content"][0]["text"]))
        return answers[-1]

    group = called(action="open", query=QUERY)["group_id"]
    for n in (0, 1, 1, 0):
        assert called(action="submit", group_id=group, trajectory=steps(f"Way {n}"))["trajectory"] == n + 1
    assert called(action="close", group_id=group)["schema"]["properties"]["best"]["enum"] == [1, 2]
    closed = called(action="close", group_id=group, best=2)
    assert (closed["best"], closed["trajectories"]) == (2, 2)
    assert called(action="close", group_id=group) == closed


@pytest.mark.slow
async def test_a_server_that_is_killed_while_its_model_compares_leaves_the_group_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        compared = {"when": "tells the attempts apart", "answer": {"reasoning": "It sorts.", "best": 2}}
        wire.plays(compared | {"delay": 30})
        with piped(*TOOLS, "--model", MODEL) as server:
            server.handshake()
            given = server.call("memory_group", {"action": "open", "query": QUERY})
            group = json.loads(given["content"][0]["text"])["group_id"]
            for n in range(2):
                way = {"action": "submit", "group_id": group, "trajectory": f"Way {n}", "success_signal": True}
                server.call("memory_group", way)
            close = {"name": "memory_group", "arguments": {"action": "close", "group_id": group}}
            server.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": close})
            until = time.monotonic() + 60
            while not wire.requests:
                assert time.monotonic() < until
            server.stop(signal.SIGKILL)
        wire.plays(compared, {"when": "nothing_because", "answer": EXTRACTED | {"lessons": [LESSON | {"steps": [1]}]}})
        async with Client(by_stdio(*TOOLS, "--model", MODEL), mode="legacy") as client:
            await client.list_tools()
            closed = await good(client, "memory_group", action="close", group_id=group)
            assert closed["best"] == 2
            done = await settled(client, closed["learning"]["task_id"])
            assert done["extracted_count"] == 1
