"""What ids and arguments are completed to."""

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from surfaces import NEW, OLD, code_of, refused, surface, teach

from mulligan.core.records import Episode, Task

EPISODE = types.ResourceTemplateReference(uri="mulligan://episodes/{id}")
LESSON = types.ResourceTemplateReference(uri="mulligan://lessons/{id}")
RULES, REFLEXION = types.PromptReference(name="memory-rules"), types.PromptReference(name="reflexion")


async def completed(client: Any, ref: Any, begun: str, name: str = "id") -> types.Completion:
    return (await client.complete(ref, {"name": name, "value": begun})).completion


@pytest.mark.parametrize("mode", [NEW, OLD])
async def test_ids_are_completed_newest_first(mode: str) -> None:
    async with surface(mode=mode) as (client, service):
        for id in ("ab1", "ab2", "b1"):
            await service.store.create(Episode(id, Task("p")))
            await teach(service.store, f"l{id}", "a")
        for template in ("mulligan://episodes/{id}", "mulligan://episodes/{id}.json"):
            ref = types.ResourceTemplateReference(uri=template)
            assert (await completed(client, ref, "ab")).values == ["ab2", "ab1"]
        assert (await completed(client, EPISODE, "")).values == ["b1", "ab2", "ab1"]
        assert (await completed(client, LESSON, "lb")).values == ["lb1"]
        assert (await completed(client, LESSON, "ab")).values == []


async def test_at_most_a_hundred_are_given_and_more_is_reported() -> None:
    async with surface() as (client, service):
        for n in range(100):
            await service.store.create(Episode(f"e{n}", Task("p"), agent=f"agent{n:03}"))
        assert [len((done := await completed(client, EPISODE, "e")).values), done.has_more] == [100, False]
        await service.store.create(Episode("e100", Task("p"), agent="agent100"))
        done = await completed(client, EPISODE, "e")
        assert (len(done.values), done.has_more, done.values[0]) == (100, True, "e100")
        done = await completed(client, RULES, "agent", "agent_id")
        assert (len(done.values), done.has_more) == (100, True)


async def test_agents_are_those_that_have_something() -> None:
    async with surface() as (client, service):
        for agent in ("", "claude-code", "both", "odd\nname"):
            await service.store.create(Episode(f"e{agent[:3]}", Task("p"), agent=agent))
        for agent in ("", "code-reviewer", "both"):
            await teach(service.store, f"l{agent}", agent)
        assert (await completed(client, RULES, "", "agent_id")).values == ["both", "claude-code", "code-reviewer"]
        assert (await completed(client, RULES, "c", "agent_id")).values == ["claude-code", "code-reviewer"]


async def test_the_other_arguments() -> None:
    async with surface() as (client, _):
        assert (await completed(client, REFLEXION, "1", "max_trials")).values == ["1", "10"]
        assert (await completed(client, REFLEXION, "", "task")).values == []


@pytest.mark.parametrize(
    ("ref", "name", "says"),
    [
        (types.PromptReference(name="rules"), "agent_id", "No prompt is called 'rules'"),
        (RULES, "task", "No argument of memory-rules is called 'task'. Available: agent_id."),
        (EPISODE, "agent", "No variable in this template is called 'agent'"),
        (
            types.ResourceTemplateReference(uri="mulligan://{id}"),
            "id",
            "call resources/templates/list to see the templates",
        ),
    ],
)
async def test_what_is_not_there_cannot_be_completed(ref: Any, name: str, says: str) -> None:
    async with surface() as (client, _):
        code, message = await refused(client.complete(ref, {"name": name, "value": ""}))
    assert (code, says in message) == (-32602, True), message


async def test_prompts_that_are_not_served_are_not_completed() -> None:
    async with surface(which="reflexion") as (client, _):
        assert await code_of(client.complete(RULES, {"name": "agent_id", "value": ""})) == -32602


@given(begun=st.text(max_size=20) | st.sampled_from(["%", "_", "'; --", "x" * 100_000]))
async def test_any_beginning_is_answered(begun: str) -> None:
    async with surface() as (client, _):
        for ref, name in ((EPISODE, "id"), (LESSON, "id"), (RULES, "agent_id"), (REFLEXION, "max_trials")):
            values = (await completed(client, ref, begun, name)).values
            assert all(value.startswith(begun) for value in values)
