"""How tools are put to models that have none, and how their JSON is read as calls."""

import json
from typing import Any

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from mulligan.core.questions import Message, Question, Tool, ToolCall
from mulligan.core.records import Image, Json
from mulligan.models.steps import FINISH
from mulligan.models.tool_answers import call_of, in_json, schema_of

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "n": {"type": "integer", "maximum": 9}}}
MANY = Tool(
    "search",
    "Look\n  things up.",
    {
        "type": "object",
        "title": "Search",
        "properties": {
            "words": {"type": "array", "items": {"type": "string", "pattern": "a+"}, "maxItems": 9000},
            "where": {"enum": ["here", "there"], "description": "Where to look."},
            "node": {"$ref": "#/$defs/Node"},
            "lost": {"$ref": "#/properties/node"},
            "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
            "any": True,
        },
        "required": ["words"],
        "$defs": {"Node": NODE},
    },
)


def test_the_tools_are_described_and_calls_worded() -> None:
    picture = Image("image/png", b"png")
    question = in_json(
        Question(
            (
                Message("user", "Find it.", (picture,)),
                Message("assistant", "I search.", calls=(ToolCall("search", {"words": ["ä"]}), ToolCall("x", "{"))),
                Message("tool", "found"),
                Message("tool", "[error: no x]"),
                Message("user", "Go on."),
            ),
            tools=(MANY, FINISH),
        )
    )
    assert question.tools == ()
    assert question.messages[1].images == (picture,)
    assert "\n".join(f"<{message.role}> {message.text}" for message in question.messages) == snapshot("""\
<system> You work by calling tools, one in each answer. These are all that there are:

- search(words, where?, node?, lost?, when?, any?): Look things up.
  - words (array {"items": {"type": "string", "pattern": "a+"}, "maxItems": 9000})
  - where ({"enum": ["here", "there"]}): Where to look.
  - node ({"$ref": "#/$defs/Node"})
  - lost ({"$ref": "#/properties/node"})
  - when ({"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": null})
  - #/$defs/Node: {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "n": {"type": "integer", "maximum": 9}}}
- finish(key, value): Hand in the result and end this step.
  - key: How it ended: "done", or another word that the instructions name.
  - value: The result itself, complete.

Answer with one JSON object and nothing else, such as
{"tool": "search", "arguments": {"words": ["..."]}}
The next message then says what came of it.
<user> Find it.
<assistant> I search.
{"tool": "search", "arguments": {"words": ["ä"]}}
{"tool": "x", "arguments": "{"}
<user> Result of search:
found

Result of x:
[error: no x]

Go on.\
""")


def test_a_question_without_any_tools_stays_as_it_is() -> None:
    asked = Question((Message("user", "one"), Message("user", "two")), {"type": "object"})
    assert in_json(asked) is asked
    told = in_json(Question((Message("assistant", "", calls=(ToolCall("x", {}),)), Message("tool", "y"))))
    assert told.schema is None
    assert [message.text for message in told.messages] == ['{"tool": "x", "arguments": {}}', "Result of x:\ny"]


def test_the_schema_lets_nothing_pass_but_a_call_and_is_small() -> None:
    assert schema_of([MANY, FINISH]) == snapshot(
        {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "const": "search"},
                        "arguments": {
                            "properties": {
                                "words": {"items": {"type": "string"}, "type": "array"},
                                "where": {"enum": ["here", "there"]},
                                "node": {"$ref": "#/$defs/t0_0"},
                                "lost": {"type": ["string", "number", "boolean", "null", "array", "object"]},
                                "when": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                                "any": {"type": ["string", "number", "boolean", "null", "array", "object"]},
                            },
                            "type": "object",
                            "required": ["words"],
                        },
                    },
                    "required": ["tool", "arguments"],
                    "additionalProperties": False,
                },
                {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string", "const": "finish"},
                        "arguments": {
                            "properties": {"key": {"type": "string"}, "value": {"type": "string"}},
                            "type": "object",
                            "required": ["key", "value"],
                            "additionalProperties": False,
                        },
                    },
                    "required": ["tool", "arguments"],
                    "additionalProperties": False,
                },
            ],
            "$defs": {
                "t0_0": {"properties": {"next": {"$ref": "#/$defs/t0_0"}, "n": {"type": "integer"}}, "type": "object"}
            },
        }
    )
    assert schema_of([Tool("now", "", {})]) == snapshot(
        {
            "type": "object",
            "properties": {"tool": {"type": "string", "const": "now"}, "arguments": {"type": "object"}},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
    )


@each_row(
    ("text", "call"),
    [
        ('{"tool": "x", "arguments": {"a": 1}}', ToolCall("x", {"a": 1})),
        ('I call:\n```json\n{"tool": "x", "arguments": {"a": 1}}\n```', ToolCall("x", {"a": 1})),
        ('{"tool": "x", "a": 1}', ToolCall("x", {"a": 1})),
        ('{"name": "x", "arguments": "{\\"a\\": 1}"}', ToolCall("x", {"a": 1})),
        ('{"tool": "x", "arguments": "{a"}', ToolCall("x", "{a")),
        ('{"tool": "x", "arguments": [1]}', ToolCall("x", "[1]")),
        ('{"tool": "x"}', ToolCall("x", {})),
    ],
)
def test_json_is_read_as_a_call(text: str, call: ToolCall) -> None:
    assert call_of(text) == call


@each_row("text", ["I am done.", "{}", "[]", '{"tool": 1}', '{"name": "x"}', '"finish"'])
def test_what_names_no_tool_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="the answer"):
        call_of(text)


@given(
    st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), st.sampled_from(["done", "retry"]), st.data()
)
def test_a_result_that_was_cut_off_is_mended_to_what_came_of_it(value: str, key: str, data: st.DataObject) -> None:
    text = json.dumps({"tool": "finish", "arguments": {"key": key, "value": value}}, ensure_ascii=False)
    cut = text[: data.draw(st.integers(0, len(text)))]
    try:
        call = call_of(cut, cut=True)
    except ValueError:
        assert not cut.partition('"value": "')[2].rstrip('"}')[:-5].strip().replace("\\", ""), "nothing came"
        return
    arguments: Any = call.arguments
    assert (call.name, arguments["key"]) == ("finish", key)
    assert value.startswith(arguments["value"])


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "finish", "arguments": {"key": "do',
        '{"tool": "finish", "arguments": {"key": "done", "value": "',
        '{"tool": "write_file", "arguments": {"path": "a", "text": "half of',
        '{"tool": "save", "arguments": {"items": [{"tool": "finish", "arguments": {"key": "a", "value": "b"}}, {"to',
        "",
    ],
)
def test_no_other_call_that_was_cut_off_is_mended(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        call_of(text, cut=True)


def test_a_whole_call_at_the_very_limit_is_taken() -> None:
    assert call_of('{"tool": "x", "arguments": {}}', cut=True) == ToolCall("x", {})


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=1), st.dictionaries(st.text(), JSON, max_size=3))
def test_any_call_survives_its_own_wording(name: str, arguments: dict[str, Json]) -> None:
    call = ToolCall(name, arguments)
    [worded] = in_json(Question((Message("assistant", "", calls=(call,)),))).messages
    assert call_of(worded.text) == call
