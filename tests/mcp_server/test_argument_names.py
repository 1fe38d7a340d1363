"""Names and fixed words of arguments: understood where it is clear what is meant, else refused by name; never ignored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.app.memory import open_bank
from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.server import run_tool, tools_of
from mulligan.mcp_server.tool import Call, Reply
from mulligan.text.arguments import matched, renamed

QUERY = "Deploy with the token"
NAMES = {tool.name: tool for tool in tools_of(Service(), "all,scaling,solve")}


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """With lessons of anna and of ben."""
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for agent in ("anna", "ben"):
        async with open_bank(agent, embedder="none") as bank:
            for n in range(3):
                await bank.add(title=f"Rule {n} of {agent}", content=f"Deploy with the token {n} of {agent}.")
    opened = Service()
    yield opened
    await opened.close()


async def called(service: Service, tool: str, /, caller: str | None = None, **arguments: Any) -> Reply:
    return await run_tool(NAMES[tool], arguments, Call(service, caller))


def owners(reply: Reply) -> set[str]:
    return {one["agent_id"] for one in reply.data["memories"]}


@pytest.mark.parametrize("name", ["agent_id", "agentId", "AgentID", "agent-id", "agent", "agentName", "bank"])
async def test_an_agent_is_understood_by_any_spelling(service: Service, name: str) -> None:
    reply = await called(service, "retrieve_memory", query=QUERY, top_k=9, **{name: "anna"})
    assert owners(reply) == {"anna"}
    assert owners(await called(service, "retrieve_memory", query=QUERY, **{name: "carl"})) == set()


@pytest.mark.parametrize("value", ["", " ", "\t"])
@pytest.mark.parametrize("tool", ["retrieve_memory", "memory_group", "memory_task"])
async def test_an_empty_agent_is_not_all_agents(service: Service, tool: str, value: str) -> None:
    arguments: dict[str, Any] = {
        "retrieve_memory": {"query": QUERY, "agent_id": value},
        "memory_group": {"action": "open", "query": QUERY, "agentId": value},
        "memory_task": {"task_id": "extract_w1", "agent": value},
    }[tool]
    reply = await called(service, tool, **arguments)
    assert reply.error
    assert "agent id is empty" in reply.text


@pytest.mark.parametrize("name", ["top_k", "topK", "TopK", "top-k", "k", "limit", "maxResults"])
async def test_a_number_of_lessons_is_understood_by_any_spelling(service: Service, name: str) -> None:
    reply = await called(service, "retrieve_memory", query=QUERY, agent="anna", **{name: "2"})
    assert len(reply.data["memories"]) == 2


@pytest.mark.parametrize("tool", NAMES)
async def test_an_unknown_argument_is_refused_by_name_with_the_nearest(service: Service, tool: str) -> None:
    first = next(iter(NAMES[tool].input_schema["properties"]))
    for name, near in (("zzz_unheard_of", ""), (f"{first}x", f"Did you mean {first!r}?")):
        unknown: dict[str, Any] = {name: 1}
        reply = await called(service, tool, **unknown)
        assert reply.error
        assert f"No argument of {tool} is called {name!r}" in reply.text.replace("\\", "")
        assert near in reply.text


async def test_a_bound_caller_is_refused_the_lessons_of_another_by_any_spelling(service: Service) -> None:
    for name in ("agentId", "agent", "agent_id"):
        reply = await called(service, "retrieve_memory", "anna", query=QUERY, **{name: "ben"})
        assert reply.error
        assert "ben" not in reply.text
    assert owners(await called(service, "retrieve_memory", "anna", query=QUERY, top_k=9, agent_id="")) == {"anna"}


@pytest.mark.parametrize(
    "arguments",
    [
        {"step_type": "actor", "trial_number": 1, "max_trials": "3", "actor_input_text": "Add."},
        {"StepType": "Actor", "trialnumber": 1, "MaxTrials": 3, "actor-input-text": "Add."},
        {"stepType": " actor ".strip().upper(), "trialNumber": 1.0, "maxTrials": 3, "actorInputText": "Add."},
    ],
)
async def test_a_step_is_understood_in_either_case(service: Service, arguments: Mapping[str, Any]) -> None:
    reply = await called(service, "reflexion-thinking", **arguments)
    assert not reply.error, reply.text
    assert reply.data["nextStep"] == "evaluator"
    then: dict[str, Any] = {
        "episode_id": reply.data["episodeId"],
        "trial_number": 1,
        "max_trials": 3,
        "actor_output_text": "x",
    }
    judged = await called(service, "reflexion-thinking", step_type="Evaluator", **then)
    assert not judged.error, judged.text
    said = await called(service, "reflexion-thinking", step_type="self_reflection", evaluator_score=0.5, **then)
    assert not said.error, said.text


async def test_fields_of_a_step_and_of_a_lesson_are_understood(service: Service) -> None:
    reply = await called(
        service, "extract_memory", query=QUERY, agentId="anna", successSignal=True, asyncMode=False,
        trajectory=[{"Step": 1, "Role": "User", "Content": QUERY}, {"step": 2, "role": "Assistant", "content": "Done."}],
        lessons=[{"Title": "Ask first", "Description": "When deploying.", "Content": "Ask for the token.", "Steps": [2]}],
    )  # fmt: skip
    assert not reply.error, reply.text
    assert [one["title"] for one in reply.data["memories"]] == ["Ask first"]


async def test_one_argument_twice_is_refused_unless_both_say_the_same(service: Service) -> None:
    both = await called(service, "retrieve_memory", query=QUERY, agent_id="anna", agentId="ben")
    assert both.error
    assert "'agent_id' and 'agentId' are the same argument" in both.text
    assert owners(await called(service, "retrieve_memory", query=QUERY, agent_id="anna", agentId="anna")) == {"anna"}


@given(st.dictionaries(st.text(max_size=12), st.integers(), max_size=6), st.lists(st.text(max_size=12), max_size=6))
def test_every_argument_is_understood_or_refused(arguments: dict[str, int], known: list[str]) -> None:
    try:
        found = renamed(arguments, known, "a tool")
    except InvalidInput:
        assert any(matched(name, known) is None for name in arguments) or len(arguments) > 1
        return
    assert set(found) <= set(known)
    assert {*found.values()} == {*arguments.values()}


def schemas(value: Any) -> list[Mapping[str, Any]]:
    """Each schema within a schema, itself too."""
    if isinstance(value, list):
        return [one for each in value for one in schemas(each)]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return []
    return [value, *(one for each in value.values() for one in schemas(each))]  # pyright: ignore


@pytest.mark.parametrize("tool", NAMES)
def test_nothing_stands_beside_any_of_in_a_schema(tool: str) -> None:
    for schema in schemas([NAMES[tool].input_schema, NAMES[tool].output_schema]):
        assert "anyOf" not in schema or len(schema) == 1
        assert not isinstance(schema.get("type"), list)
