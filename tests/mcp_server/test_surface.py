"""All that a client is shown when it connects: explained, in order, and small enough for a model's context."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from surfaces import NEW, OLD, surface

from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.tools import select_tools

KEYLESS, WHOLE = 5_550, 18_000
"""Bytes of tools/list, which clients put into each request to their model: as it comes without a model and with no
options (1,300 tokens), and with all that can be asked for.
"""


@pytest.fixture(params=[NEW, OLD])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_everything_has_a_title_a_description_and_a_name_of_its_own(mode: str) -> None:
    async with surface(which="all,scaling", mode=mode, model="scripted:none") as (client, _):
        shown: list[list[Any]] = [
            list((await client.list_tools()).tools),
            list((await client.list_prompts()).prompts),
            list((await client.list_resource_templates()).resource_templates),
        ]
    assert [len(kind) for kind in shown] == [6, 2, 3]
    for kind in shown:
        names = [one.name for one in kind]
        assert len(set(names)) == len(names)
        assert len({one.title for one in kind}) == len(names)
        for one in kind:
            assert one.title, one.name
            assert 20 < len(one.description or "") < 2000, one.name
    for prompt in shown[1]:
        assert all(argument.description for argument in prompt.arguments)
    assert all(template.mime_type for template in shown[2])


async def test_every_tool_says_what_calling_it_does() -> None:
    async with surface(which="all,scaling", model="scripted:none") as (client, _):
        tools = (await client.list_tools()).tools
    hints = {
        tool.name: [
            tool.annotations.read_only_hint,
            tool.annotations.destructive_hint,
            tool.annotations.idempotent_hint,
            tool.annotations.open_world_hint,
        ]
        for tool in tools
        if tool.annotations
    }
    assert set(hints) == {tool.name for tool in tools}
    assert all(isinstance(hint, bool) for said in hints.values() for hint in said)
    assert not any(destructive for _, destructive, *_ in hints.values()), "nothing here loses what is kept"


async def test_schemas_are_json_schemas_of_objects_whose_fields_are_explained() -> None:
    async with surface(which="all,scaling", model="scripted:none") as (client, _):
        tools = (await client.list_tools()).tools
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema or {}):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert set(schema.get("required", [])) <= set(schema["properties"])
        for name, field in tool.input_schema["properties"].items():
            assert {**field, **field.get("anyOf", [{}])[0]}.get("description"), f"{tool.name}.{name}"
        assert list(_foreign(tool.input_schema)) == []


async def test_strict_conversion_finds_no_object_that_is_open() -> None:
    """OpenAI's strict mode closes objects, and those without fields could then hold nothing: openai-agents refuses."""
    async with surface(which="all,scaling", model="scripted:none") as (client, _):
        tools = (await client.list_tools()).tools
    for tool in tools:
        objects = list(_objects(tool.input_schema))
        assert objects, tool.name
        for one in objects:
            assert one.get("properties"), (tool.name, one)
            assert one.get("additionalProperties", False) is False, (tool.name, one)


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        table = cast("dict[str, Any]", schema)
        if table.get("type") == "object":
            yield table
        schema = list(table.values())
    for child in cast("list[Any]", schema) if isinstance(schema, list) else []:
        yield from _objects(child)


def _foreign(schema: Any) -> Iterator[str]:
    """Words of JSON Schema that some clients' models cannot take."""
    if isinstance(schema, dict):
        table = cast("dict[str, Any]", schema)
        yield from {"$ref", "$defs", "oneOf", "allOf", "not", "if"} & set(table)
        schema = list(table.values())
    for child in cast("list[Any]", schema) if isinstance(schema, list) else []:
        yield from _foreign(child)


def weight(tools: list[Any]) -> int:
    whole = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    return len(json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode())


async def test_the_tools_fit_into_a_context() -> None:
    async with surface(output_schemas=False) as (client, _):
        tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == ["reflexion-thinking", "retrieve_memory", "extract_memory"]
    assert not any(tool.output_schema for tool in tools)
    assert weight(tools) < KEYLESS
    async with surface(model="scripted:none", output_schemas=True) as (client, _):
        tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools if tool.output_schema} > {"solve", "memory_task"}
    assert weight(tools) < WHOLE


async def test_a_task_can_be_looked_up_where_it_is_not_listed() -> None:
    async with surface() as (client, _):
        asked = {"trajectory": [{"step": 1, "role": "assistant", "content": "x"}], "query": "q"}
        answer: Any = (await client.call_tool("extract_memory", asked)).structured_content
        task = answer["task_id"]
        assert not (await client.call_tool("memory_task", {"task_id": task})).is_error


@pytest.mark.parametrize(
    ("which", "names"),
    [
        ("retrieve_memory", ["retrieve_memory"]),
        ("extract_memory,retrieve_memory", ["retrieve_memory", "extract_memory"]),
        (" reflexion , retrieve_memory", ["reflexion-thinking", "retrieve_memory"]),
        ("all", ["reflexion-thinking", "retrieve_memory", "extract_memory"]),
        ("scaling,memory", ["retrieve_memory", "extract_memory", "memory_group"]),
    ],
)
async def test_tools_are_chosen_by_set_or_by_name(which: str, names: list[str]) -> None:
    async with surface(which=which) as (client, _):
        assert [tool.name for tool in (await client.list_tools()).tools] == names
        said = client.instructions or ""
        assert ("reflexion-thinking" in said) == ("reflexion-thinking" in names)
        assert ("extract_memory" in said) == ({"retrieve_memory", "extract_memory"} <= set(names))


@pytest.mark.parametrize("which", ["", ",", "nothing", "memory,retrieve"])
def test_a_tool_that_is_not_there_is_named_with_those_that_are(which: str) -> None:
    with pytest.raises(InvalidInput, match="Use one or more of: reflexion, memory, scaling, hooks, goals, all"):
        select_tools(which)


async def test_who_is_held_to_one_agent_is_offered_no_other() -> None:
    for bound in (None, "a"):
        async with surface(bound=bound) as (client, _):
            tools = (await client.list_tools()).tools
            offering = [tool.name for tool in tools if {"agent_id", "agentId"} & set(tool.input_schema["properties"])]
            assert len(offering) == (0 if bound else len(tools))
            assert not (await client.call_tool("retrieve_memory", {"query": "x", "agent_id": "a"})).is_error
            other = await client.call_tool("retrieve_memory", {"query": "x", "agent_id": "b"})
            assert bool(other.is_error) == bool(bound)


async def test_a_lesson_is_told_once_in_the_text() -> None:
    async with surface() as (client, service):
        content = "Open the full history,\n  not the first page: 3 > 2."
        await service.bank("c").add("Whole history", content, description="When an order is old.")
        found = await client.call_tool("retrieve_memory", {"query": "order history", "agent_id": "c"})
    said = json.loads(cast(Any, found.content[0]).text)
    whole: Any = found.structured_content
    memory = whole["memories"][0]
    assert (memory["content"], memory["description"]) == (content, "When an order is old.")
    assert json.dumps(said).count("not the first page") == 1
    assert json.dumps(said).count("When an order is old.") == 1
    assert said["memories"][0]["memory_id"] == memory["memory_id"]


@pytest.mark.slow
async def test_what_the_prompt_has_no_room_for_is_told_in_the_list() -> None:
    async with surface() as (client, service):
        for n in range(3):
            await service.bank("c").add(f"History {n}", f"Open history {n}: " + f"word{n} " * 3000)
        found = await client.call_tool(
            "retrieve_memory", {"query": "history 0, history 1, history 2", "agent_id": "c", "top_k": 3}
        )
    said = json.loads(cast(Any, found.content[0]).text)
    assert "did not fit here" in said["formatted_prompt"]
    assert all(f"word{n} word{n}" in json.dumps(said) for n in range(3))


async def test_what_is_told_at_the_start_is_short() -> None:
    async with surface(mode=OLD) as (client, _):
        assert 200 < len(client.instructions or "") < 1500
