"""Arguments that no schema allows, to each tool in this process: an answer always, and one that fits what is declared."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from repetition import repeats

from mulligan.app.service import ServerOptions, Service
from mulligan.mcp_server.server import run_tool, tools_of
from mulligan.mcp_server.tool import Call, ConnectionState, Reply, Tool
from mulligan.text.plain import encodable

Json = Any

TEXT = st.text(st.characters(exclude_categories=()), max_size=30) | st.sampled_from(
    ["", " ", "\x00", "\ud800", "hostile"]
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.just(10**4000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.large_base_example, HealthCheck.data_too_large]
IDS = ("episodeId", "task_id", "retrieval_id", "group_id")


def like(schema: Mapping[str, Json], ids: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """What this schema takes, mostly."""
    if "anyOf" in schema:
        return st.one_of([like(one, ids) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(cast(Sequence[Json], schema["enum"]))
    kinds: Json = schema.get("type", "string")
    each = cast(list[str], kinds) if isinstance(kinds, list) else [kinds]
    simple: Mapping[str, st.SearchStrategy[Json]] = {
        "string": TEXT,
        "integer": st.integers(0, 5),
        "number": st.floats() | st.integers(),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    several = [simple[kind] for kind in each if kind in simple]
    if several:
        return st.one_of(several)
    if kinds == "array":
        return st.lists(like(schema.get("items", {}), ids), max_size=3)
    return objects(schema, ids) if "properties" in schema else st.dictionaries(TEXT, ANY, max_size=3)


def objects(schema: Mapping[str, Json], ids: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    optional = {
        name: (ids if name in IDS else like(one, ids)) | ANY for name, one in schema.get("properties", {}).items()
    }
    needed = {name: optional.pop(name) for name in schema.get("required", ())}
    return st.fixed_dictionaries(needed, optional=optional)


def check(tool: Tool, reply: Reply) -> None:
    """It is JSON that every reader takes, it is no failure of ours, and what is no error fits its schema."""

    def never(name: str) -> Json:
        raise AssertionError(f"{name} is no JSON")

    said = json.loads(encodable(reply.text), parse_constant=never)
    assert "The server failed" not in reply.text
    if not reply.error:
        validator: Any = Draft202012Validator(dict(tool.output_schema))
        assert [error.message for error in validator.iter_errors(said)] == []


def fuzzed(tool: Tool, service: Service, runner: asyncio.Runner, examples: int) -> None:
    known = ["nobody's"]  # and those that answers give out
    ids = st.integers(0, 1000).map(lambda n: known[n % len(known)])

    @settings(max_examples=examples, derandomize=True, database=None, suppress_health_check=SLOW)
    @given(objects(tool.input_schema, ids) | st.dictionaries(TEXT, ANY, max_size=5))
    def one(arguments: dict[str, Json]) -> None:
        call = Call(service, None, ConnectionState() if len(arguments) % 2 else None)
        reply = runner.run(run_tool(tool, arguments, call))
        check(tool, reply)
        given_out = [value for name, value in reply.data.items() if name in IDS and isinstance(value, str)]
        known.extend(id for id in given_out if id not in known and len(known) < 100)

    one()


NAMES = ("reflexion-thinking", "retrieve_memory", "extract_memory", "memory_task", "memory_group")


@pytest.mark.light_cases(2)
@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_tool_is_given_it_answers(name: str, caplog: pytest.LogCaptureFixture) -> None:
    fuzz(name, 40)
    assert [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_tool_is_given_often(name: str) -> None:
    fuzz(name, repeats(750))


def fuzz(name: str, examples: int) -> None:
    with asyncio.Runner() as runner:
        service = Service(ServerOptions(embedder="none"))
        try:
            (tool,) = (one for one in tools_of(service, "all,scaling") if one.name == name)
            fuzzed(tool, service, runner, examples)
        finally:
            runner.run(service.close())
