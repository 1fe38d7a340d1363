"""Arguments that mean one thing alone are taken for it, whatever kind they come as: by the schemas of the tools alone."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from memory_clients import LESSON, QUERY, TRAJECTORY
from surfaces import surface

from mulligan.app.service import ServerOptions, Service
from mulligan.core.records import Json
from mulligan.mcp_server.server import tools_of
from mulligan.mcp_server.tool import coerce

SCHEMAS: dict[str, Any] = {
    tool.name: tool.input_schema for tool in tools_of(Service(ServerOptions(model="scripted:x")), "all")
}

WORDS = st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda text: text.strip()[:1] not in ("[", "{"))
ANYTHING: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def values(schema: Any) -> st.SearchStrategy[Any]:
    """What fits the schema, in the kinds that JSON has."""
    if "anyOf" in schema:
        return st.one_of([values(one) for one in schema["anyOf"]])
    match schema.get("type"):
        case "object":
            needed = {name: values(schema["properties"][name]) for name in schema.get("required", ())}
            free = {name: values(one) for name, one in schema["properties"].items() if name not in needed}
            return st.fixed_dictionaries(needed, optional=free)
        case "array":
            return st.lists(values(schema["items"]), max_size=3)
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(-1000, 1000)
        case "number":
            return st.integers(-1000, 1000) | st.sampled_from([0.5, -2.25, 10.0])
        case _:
            return st.sampled_from(schema["enum"]) if "enum" in schema else WORDS


def as_text(given: Any, schema: Any, sure: Any) -> Any:
    """The same, with some of it as text where the schema knows no text."""
    value: Any = given
    kinds = [one.get("type") for one in schema.get("anyOf", [schema])]
    if isinstance(value, dict) and "properties" in schema:
        table = cast(dict[str, Any], value)
        value = {name: as_text(one, schema["properties"][name], sure) for name, one in table.items()}
    elif isinstance(value, list) and "items" in schema:
        value = [as_text(one, schema["items"], sure) for one in cast(list[Any], value)]
    stays = "string" in kinds or isinstance(value, str) or not sure()
    return cast(Any, value if stays else json.dumps(value))


@pytest.mark.parametrize("tool", SCHEMAS)
def test_what_fits_is_left_as_it_is(tool: str) -> None:
    @given(values(SCHEMAS[tool]))
    def check(arguments: Any) -> None:
        assert coerce(arguments, SCHEMAS[tool]) == arguments

    check()


@pytest.mark.parametrize("tool", SCHEMAS)
def test_what_comes_as_text_is_what_it_says(tool: str) -> None:
    schema = SCHEMAS[tool]

    @given(values(schema), st.data())
    def check(arguments: Any, data: Any) -> None:
        sent = {
            name: as_text(one, schema["properties"][name], lambda: data.draw(st.booleans()))
            for name, one in arguments.items()
        }
        assert coerce(sent, schema) == arguments, sent

    check()


@pytest.mark.parametrize("tool", SCHEMAS)
def test_null_is_left_out_where_it_may_be(tool: str) -> None:
    schema = SCHEMAS[tool]
    needed = set(schema.get("required", ()))
    assert coerce(dict.fromkeys(schema["properties"]), schema) == dict.fromkeys(needed)


@pytest.mark.parametrize("tool", SCHEMAS)
def test_whatever_comes_is_fitted_once_and_for_all(tool: str) -> None:
    @given(st.dictionaries(st.sampled_from(sorted(SCHEMAS[tool]["properties"])), ANYTHING))
    def check(arguments: Any) -> None:
        once = coerce(arguments, SCHEMAS[tool])
        assert coerce(once, SCHEMAS[tool]) == once

    check()


@each_row(
    ("value", "kind", "wanted"),
    [
        ("1", "integer", 1),
        (" -3.0 ", "integer", -3),
        ("3", "number", 3),
        ("0.5", "number", 0.5),
        ("TRUE", "boolean", True),
        ('["a"]', "array", ["a"]),
        ('{"a": 1}', "object", {"a": 1}),
        *((text, "integer", text) for text in ("", "one", "1.5", "1e3", "0x1", "007", "1_000", "٣", "9" * 40, "true")),
        *((text, "number", text) for text in ("", "NaN", "inf", "1,5", "1e400", ".5")),
        *((text, "boolean", text) for text in ("", "yes", "1", "0", "null")),
        *(
            (text, "array", text)
            for text in ("", "a, b", '"a"', "{}", "[1", "[NaN]", "[" * 1000 + "]" * 1000, "[\ud800]")
        ),
        *((text, "object", text) for text in ("", "[]", "a: 1")),
        (1, "boolean", 1),
        (True, "integer", True),
        (False, "number", False),
        (7, "string", 7),
        (2.0, "integer", 2.0),
        ("5", "string", "5"),
        ("a", "array", "a"),
    ],
)
def test_what_is_plain_is_taken_and_what_is_not_is_left(value: Any, kind: str, wanted: Any) -> None:
    made = coerce(value, {"type": kind})
    assert (made, type(made)) == (wanted, type(wanted))


def test_a_text_that_holds_too_many_values_is_not_read() -> None:
    text = "[" + "0," * 300_000 + "0]"
    assert coerce(text, {"type": "array"}) is text


async def test_calls_as_models_make_them_are_answered() -> None:
    async with surface(which="all") as (client, _):
        act = {
            "stepType": "actor",
            "trialNumber": "1",
            "maxTrials": "3",
            "actorInputText": "Name a prime.",
            "reset": "false",
        }
        begun = await client.call_tool("reflexion-thinking", {**act, "episodeId": None, "memoryOverride": "[]"})
        answer: Any = begun.structured_content
        id = answer["episodeId"]
        judged = {
            "stepType": "evaluator",
            "trialNumber": "1",
            "maxTrials": "3",
            "actorOutputText": "7",
            "passed": "true",
        }
        done = await client.call_tool("reflexion-thinking", {**judged, "episodeId": id})
        assert (done.structured_content or {})["next_trial_needed"] is False
        found = await client.call_tool("retrieve_memory", {"query": "x", "top_k": "3", "agent_id": None})
        assert not found.is_error
        steps = json.dumps([json.dumps({**step, "step": str(step["step"])}) for step in TRAJECTORY])
        kept = await client.call_tool(
            "extract_memory",
            {"trajectory": steps, "query": QUERY, "success_signal": "True", "lessons": json.dumps([LESSON])},
        )
        assert (kept.structured_content or {})["extracted_count"] == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("retrieve_memory", {"query": "x", "top_k": "three"}, "an integer from 1 to 100, not"),
        ("extract_memory", {"query": "x", "success_signal": "yes"}, "must be true, false, or omitted"),
        ("extract_memory", {"query": "x", "trajectory": "I did this."}, "role and content, not str"),
        (
            "reflexion-thinking",
            {"stepType": "evaluator", "trialNumber": 1, "maxTrials": 1, "actorOutputText": "x", "passed": "yes"},
            "must be true or false",
        ),
    ],
)
async def test_what_is_not_plain_is_refused_with_what_to_send(tool: str, arguments: Any, says: str) -> None:
    async with surface(which="all") as (client, _):
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert says in str(result.content)
