"""All that a client is shown when it connects: explained, in order, and small enough for a model's context."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from surfaces import NEW, OLD, surface

SHOWN, WHOLE = 9_000, 18_000
"""Bytes of what clients put into each request to their model (names, descriptions, what is taken), and of tools/list."""


@pytest.fixture(params=[NEW, OLD])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


async def test_everything_has_a_title_a_description_and_a_name_of_its_own(mode: str) -> None:
    async with surface(mode=mode, model="scripted:none") as (client, _):
        shown: list[list[Any]] = [
            list((await client.list_tools()).tools),
            list((await client.list_prompts()).prompts),
            list((await client.list_resource_templates()).resource_templates),
        ]
    assert [len(kind) for kind in shown] == [5, 2, 3]
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
    async with surface(model="scripted:none") as (client, _):
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
    async with surface(model="scripted:none") as (client, _):
        tools = (await client.list_tools()).tools
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema or {}):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            assert set(schema.get("required", [])) <= set(schema["properties"])
        for name, field in tool.input_schema["properties"].items():
            assert field.get("description"), f"{tool.name}.{name}"
        assert list(_foreign(tool.input_schema)) == []


def _foreign(schema: Any) -> Iterator[str]:
    """Words of JSON Schema that some clients' models cannot take."""
    if isinstance(schema, dict):
        table = cast("dict[str, Any]", schema)
        yield from {"$ref", "$defs", "oneOf", "allOf", "not", "if"} & set(table)
        schema = list(table.values())
    for child in cast("list[Any]", schema) if isinstance(schema, list) else []:
        yield from _foreign(child)


async def test_the_tools_fit_into_a_context() -> None:
    async with surface(model="scripted:none") as (client, _):
        tools = (await client.list_tools()).tools
    shown = [[tool.name, tool.description, tool.input_schema] for tool in tools]
    whole = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    sizes = [len(json.dumps(what, ensure_ascii=False, separators=(",", ":")).encode()) for what in (shown, whole)]
    assert sizes[0] < SHOWN, f"a model is shown {sizes[0]:,} bytes"
    assert sizes[1] < WHOLE, f"tools/list has {sizes[1]:,} bytes"


async def test_what_is_told_at_the_start_is_short() -> None:
    async with surface(mode=OLD) as (client, _):
        assert 200 < len(client.instructions or "") < 1500
