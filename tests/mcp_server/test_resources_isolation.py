"""A caller that is bound to the agent a learns nothing of b: not by a list, an answer, an error or a completion."""

import base64
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from surfaces import NEW, OLD, listed, play, surface, teach, text_of

from mulligan.app.service import Service
from mulligan.core.lesson_history import Link
from mulligan.core.records import Origin


@pytest.fixture(params=[NEW, OLD])
async def bound(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with surface("a", mode=request.param) as (client, service):
        await fill(service)
        yield client


async def fill(service: Service) -> None:
    """Episodes and lessons of a and of b; one of a's lessons names one of b's as a parent, as an import may."""
    for n in range(30):
        await play(service.store, f"mine{n}", "a", "x")
        await play(service.store, f"yours{n}", "b", "BETA", prompt="BETA")
        await teach(service.store, f"my{n}", "a", origin=Origin(parents=("your0",)) if n == 0 else Origin())
        await teach(service.store, f"your{n}", "b", title="BETA", content="BETA")
    await play(service.store, "nobody", "", "BETA", prompt="BETA")
    await teach(service.store, "nobodys", "", title="BETA")
    await teach(service.store, "shared", "b", title="BETA", content="BETA")
    await teach(service.store, "shared", "a", content="of a")
    await service.store.memory.lessons.link("b", [Link("your0", "your1", 0.9, "e")])


async def test_the_list_holds_a_s_alone(bound: Client) -> None:
    resources = await listed(bound)
    assert len(resources) == 61
    assert "BETA" not in str(resources)
    assert {resource.uri for resource in resources if "your" in resource.uri or "nobody" in resource.uri} == set()


async def test_another_s_id_is_like_one_that_is_not_there(bound: Client) -> None:
    for kind, theirs in (("episodes", ["yours1", "nobody"]), ("lessons", ["your1", "nobodys"])):
        unknown = await said(bound, f"mulligan://{kind}/none", "none")
        for id in theirs:
            assert await said(bound, f"mulligan://{kind}/{id}", id) == unknown
    assert await said(bound, "mulligan://episodes/yours1.json", "yours1.json") == await said(
        bound, "mulligan://episodes/none.json", "none.json"
    )


async def said(client: Client, uri: str, id: str) -> tuple[Any, ...]:
    """The error, with the id taken out."""
    with pytest.raises(MCPError) as error:
        await client.read_resource(uri)
    return error.value.code, error.value.message, str(error.value.data).replace(id, "ID")


async def test_another_s_position_is_like_no_cursor_at_all(bound: Client) -> None:
    answers = set[tuple[int, str]]()
    for positions in (["yours3", ""], ["none", ""], ["", "your3"], ["", "none"]):
        with pytest.raises(MCPError) as error:
            await bound.list_resources(cursor=base64.urlsafe_b64encode(json.dumps(positions).encode()).decode())
        answers.add((error.value.code, error.value.message))
    assert len(answers) == 1


async def test_a_cursor_holds_nothing_that_counts_others(bound: Client) -> None:
    cursor = (await bound.list_resources()).next_cursor
    assert cursor is not None
    assert json.loads(base64.urlsafe_b64decode(cursor)) == ["mine5", "my6"]


async def test_a_lesson_leads_to_no_other_agent_s(bound: Client) -> None:
    assert "BETA" not in await text_of(bound, "mulligan://lessons/my0")
    assert "of a" in await text_of(bound, "mulligan://lessons/shared")


async def test_completion_knows_a_s_alone(bound: Client) -> None:
    for template, begun, found in (
        ("mulligan://episodes/{id}", "", 30),
        ("mulligan://episodes/{id}", "your", 0),
        ("mulligan://episodes/{id}.json", "nob", 0),
        ("mulligan://lessons/{id}", "", 31),
        ("mulligan://lessons/{id}", "your", 0),
    ):
        values = await completed(bound, types.ResourceTemplateReference(uri=template), "id", begun)
        assert len(values) == found
        assert not any("your" in value or "nobod" in value for value in values)


async def completed(client: Client, ref: Any, name: str, begun: str) -> Sequence[str]:
    return (await client.complete(ref, {"name": name, "value": begun})).completion.values


async def test_no_prompt_takes_an_agent_s_name(bound: Client) -> None:
    prompts = (await bound.list_prompts()).prompts
    assert [argument.name for prompt in prompts for argument in prompt.arguments or []] == ["task", "max_trials"]
    answers = set[str]()
    for ref in (types.PromptReference(name="memory-rules"),):
        for value in ("", "b"):
            with pytest.raises(MCPError) as error:
                await bound.complete(ref, {"name": "agent_id", "value": value})
            answers.add(error.value.message)
    assert len(answers) == 1
    with pytest.raises(MCPError) as there:
        await bound.get_prompt("memory-rules", {"agent_id": "b"})
    with pytest.raises(MCPError) as not_there:
        await bound.get_prompt("memory-rules", {"agent_id": "none"})
    assert there.value.message == not_there.value.message
    assert (there.value.code, "'b'" in there.value.message) == (-32602, False)


async def test_its_own_name_stands_in_its_rules(bound: Client) -> None:
    for arguments in ({}, {"agent_id": "a"}):
        (message,) = (await bound.get_prompt("memory-rules", arguments)).messages
        assert isinstance(message.content, types.TextContent)
        assert "Your `agent_id` in it is `a`." in message.content.text


async def test_a_caller_that_is_not_bound_sees_both() -> None:
    async with surface() as (client, service):
        await fill(service)
        assert len(await listed(client)) == 124
        assert "BETA" in await text_of(client, "mulligan://episodes/yours1")
        assert await completed(client, types.PromptReference(name="memory-rules"), "agent_id", "") == ["a", "b"]
