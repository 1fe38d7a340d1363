"""Tool calls over every wire format, and models that have none."""

import json
from typing import Any

import pytest
from inline_snapshot import snapshot
from wire_client import KEY, Naps, Wire

from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.questions import Message, Question, Sampling, Tool, ToolCall
from mulligan.core.records import Usage
from mulligan.models import near_json
from mulligan.models.catalog import open_model
from mulligan.models.json_answers import UNQUOTED, UNWRAPPED
from mulligan.models.provider import ProviderModel
from mulligan.models.provider_client import Target
from mulligan.models.providers import Access
from mulligan.models.requests import answer_of, result_of
from mulligan.models.settings import CallSettings
from mulligan.models.steps import FINISH

READ = Tool(
    "read_file",
    "Read a file of the workspace.",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it stands."}},
        "required": ["path"],
        "additionalProperties": False,
    },
    repeatable=True,
)
ASKED = Question((Message("system", "Be brief."), Message("user", "What do they say?")), tools=(FINISH, READ))
CALLS = (ToolCall("read_file", {"path": "a"}), ToolCall("read_file", {"path": "b"}))
SECOND = Question(
    (
        *ASKED.messages,
        Message("assistant", "I look.", calls=CALLS),
        Message("tool", "one"),
        Message("tool", ""),
        Message("user", "[error: nothing came]"),
        Message("assistant", "", calls=(ToolCall("read_file", '{"path": "'),)),
        Message("tool", "[error: no object]"),
    ),
    tools=ASKED.tools,
)
FORMATS = ["openai:gpt-4o", "openai-responses:gpt-5.6-luna", "anthropic:claude-haiku-4-5", "alibaba:qwen-plus"]


def finished(value: str) -> ToolCall:
    return ToolCall("finish", {"key": "done", "value": value})


def refused(message: str, status: int = 400) -> dict[str, Any]:
    return {"status": status, "body": {"error": {"message": message}}}


@pytest.mark.parametrize("name", FORMATS)
async def test_a_conversation_with_tools_in_every_format(wire: Wire, name: str) -> None:
    given = [{"name": call.name, "arguments": call.arguments} for call in CALLS]
    done = {"name": "finish", "arguments": finished("one two").arguments}
    wire.plays({"answer": "I look.", "calls": given}, {"calls": [done], "usage": [9, 5]}, "Or just so.")
    model = open_model(name)
    first = await model.ask(ASKED)
    assert (first.content, first.calls) == ("I look.", CALLS)
    second = await model.ask(SECOND)
    assert (second.content, second.calls, second.usage.tokens) == ("", (finished("one two"),), 14)
    plain = await model.ask(SECOND)
    assert (plain.content, plain.calls) == ("Or just so.", ())
    assert [request["tools"] for request in wire.requests] == [["finish", "read_file"]] * 3
    assert wire.requests[1]["results"] == [
        {"id": "call_1", "text": "one"},
        {"id": "call_2", "text": "(nothing)"},
        {"id": "call_3", "text": "[error: no object]"},
    ]
    assert "theirs-1" not in json.dumps(wire.bodies)


async def test_what_goes_over_the_wire_in_openais_format(wire: Wire) -> None:
    wire.plays("hello")
    await open_model("openai:qwen2.5").ask(SECOND)
    [body] = wire.bodies
    assert body["messages"][2:] == snapshot(
        [
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"a"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"path":"b"}'},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "content": "(nothing)"},
            {"role": "user", "content": "[error: nothing came]"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_3",
                        "type": "function",
                        "function": {"name": "read_file", "arguments": '{"INVALID_JSON":"{\\"path\\": \\""}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_3", "content": "[error: no object]"},
        ]
    )
    assert body["tools"][1] == snapshot(
        {
            "type": "function",
            "function": {
                "name": "read_file",
                "description": "Read a file of the workspace.",
                "parameters": {
                    "type": "object",
                    "properties": {"path": {"type": "string", "description": "Where it stands."}},
                    "required": ["path"],
                    "additionalProperties": False,
                },
                "strict": True,
            },
        }
    )
    assert body["tool_choice"] == "auto"


async def test_what_goes_over_the_wire_to_anthropic(wire: Wire) -> None:
    wire.plays("hello")
    await open_model("anthropic:claude-haiku-4-5").ask(SECOND)
    [body] = wire.bodies
    assert body["messages"] == snapshot(
        [
            {"role": "user", "content": [{"text": "What do they say?", "type": "text"}]},
            {
                "role": "assistant",
                "content": [
                    {"text": "I look.", "type": "text"},
                    {"id": "call_1", "type": "tool_use", "name": "read_file", "input": {"path": "a"}},
                    {"id": "call_2", "type": "tool_use", "name": "read_file", "input": {"path": "b"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "tool_use_id": "call_1",
                        "type": "tool_result",
                        "content": [{"text": "one", "type": "text"}],
                        "is_error": False,
                    },
                    {
                        "tool_use_id": "call_2",
                        "type": "tool_result",
                        "content": [{"text": "(nothing)", "type": "text"}],
                        "is_error": False,
                    },
                    {"text": "[error: nothing came]", "type": "text"},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"id": "call_3", "type": "tool_use", "name": "read_file", "input": {"INVALID_JSON": '{"path": "'}}
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "tool_use_id": "call_3",
                        "type": "tool_result",
                        "content": [{"text": "[error: no object]", "type": "text"}],
                        "is_error": False,
                    }
                ],
            },
        ]
    )
    assert body["tools"][1].keys() == {"name", "description", "input_schema"}


@pytest.mark.parametrize(
    ("sent", "heard"),
    [
        ('{"path": "a', '{"path": "a'),
        ("[1]", "[1]"),
        ('{"path": NaN}', '{"path": NaN}'),
        ('{"path": 1e999}', '{"path": 1e999}'),
        ("", {}),
        ('{"path": "ä\\n"}', {"path": "ä\n"}),
    ],
)
async def test_arguments_that_are_no_json_object_stay_text(wire: Wire, sent: str, heard: Any) -> None:
    wire.plays({"calls": [{"name": "read_file", "arguments": sent}]})
    assert (await open_model("openai:gpt-4o").ask(ASKED)).calls == (ToolCall("read_file", heard),)


@pytest.mark.parametrize(
    ("sent", "heard", "repairs"),
    [
        ('{"path": "a",}', {"path": "a"}, [near_json.COMMA]),
        ("{'path': 'a', 'all': True}", {"path": "a", "all": True}, [near_json.QUOTES, near_json.WORDS]),
        (r'{"path": "C:\data\d+"}', {"path": r"C:\data\d+"}, [near_json.ESCAPES]),
        ('[{"path": "a"}]', {"path": "a"}, [UNWRAPPED]),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}, [UNQUOTED]),
        ('{"path": "a",} and more', '{"path": "a",} and more', []),
        ("{'path': 'don't'}", "{'path': 'don't'}", []),
        ("{'path': 'a", "{'path': 'a", []),
    ],
)
async def test_arguments_that_are_nearly_json_are_repaired_and_said(
    wire: Wire, sent: str, heard: Any, repairs: list[str]
) -> None:
    wire.plays({"calls": [{"name": "read_file", "arguments": sent}]})
    answer = await open_model("openai:gpt-4o").ask(ASKED)
    assert answer.calls == (ToolCall("read_file", heard),)
    assert list(answer.repairs) == repairs
    assert answer_of(result_of(answer)) == answer


async def test_of_calls_that_were_cut_off_only_a_result_is_mended(wire: Wire) -> None:
    def cut(name: str, arguments: str) -> dict[str, Any]:
        return {"calls": [{"name": name, "arguments": arguments}], "finish": "length", "usage": [5, 20]}

    wire.plays(
        cut("finish", '{"key": "done", "value": "a long st'),
        cut("finish", '{"key": "do'),
        cut("read_file", '{"path": "/etc'),
    )
    model = open_model("openai:gpt-4o")
    assert (await model.ask(ASKED)).calls == (finished("a long st"),)
    assert (await model.ask(ASKED)).calls == (ToolCall("finish", '{"key": "do'),)
    assert (await model.ask(ASKED)).calls == (ToolCall("read_file", '{"path": "/etc'),)


@pytest.mark.parametrize(
    "refusal",
    [
        refused("registry.ollama.ai/library/gemma3 does not support tools"),
        refused('"auto" tool choice requires --enable-auto-tool-choice to be set'),
        refused("No endpoints found that support tool use.", 404),
    ],
)
async def test_a_server_that_refuses_tools_is_asked_for_calls_as_json(
    wire: Wire, caplog: pytest.LogCaptureFixture, refusal: Any
) -> None:
    wire.plays(
        refusal,
        {"answer": {"tool": "read_file", "arguments": {"path": "a"}}, "usage": [9, 5]},
        refused("response_format is not supported"),
        'I am done:\n```json\n{"tool": "finish", "arguments": {"key": "done", "value": "one two"}}\n```',
        "I am at a loss.",
    )
    model = open_model("openai:tiny")
    first = await model.ask(ASKED)
    assert (first.content, first.calls, first.usage) == ("", CALLS[:1], Usage(9, 5, 1, None))
    assert (await model.ask(SECOND)).calls == (finished("one two"),)
    with pytest.raises(BadAnswer, match="asked for JSON: the answer is not valid JSON"):
        await model.ask(SECOND)
    assert caplog.text.count("does not support tools, asking for calls as JSON: 4") == 1
    assert [bool(request["tools"]) for request in wire.requests] == [True, False, False, False, False]
    assert wire.bodies[1]["response_format"]["type"] == "json_schema"
    assert wire.bodies[3]["response_format"] == {"type": "json_object"}
    told = [message for message in wire.bodies[3]["messages"] if message["role"] != "system"]
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "user"]
    assert told[1:3] == snapshot(
        [
            {
                "role": "assistant",
                "content": """\
I look.
{"tool": "read_file", "arguments": {"path": "a"}}
{"tool": "read_file", "arguments": {"path": "b"}}\
""",
            },
            {
                "role": "user",
                "content": """\
Result of read_file:
one

Result of read_file:
(nothing)

[error: nothing came]\
""",
            },
        ]
    )


async def test_how_a_server_without_tools_is_asked(wire: Wire) -> None:
    wire.plays(refused("no tools"), '{"tool": "read_file", "arguments": {"path": "a"}}')
    await open_model("openai:tiny").ask(ASKED)
    assert wire.bodies[1]["response_format"]["json_schema"] == snapshot(
        {
            "name": "answer",
            "schema": {
                "anyOf": [
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
                    {
                        "type": "object",
                        "properties": {
                            "tool": {"type": "string", "const": "read_file"},
                            "arguments": {
                                "properties": {"path": {"type": "string"}},
                                "type": "object",
                                "required": ["path"],
                                "additionalProperties": False,
                            },
                        },
                        "required": ["tool", "arguments"],
                        "additionalProperties": False,
                    },
                ]
            },
            "strict": True,
        }
    )
    assert wire.bodies[1]["messages"][0]["content"] == snapshot("""\
Be brief.

You work by calling tools, one in each answer. These are all that there are:

- finish(key, value): Hand in the result and end this step.
  - key: How it ended: "done", or another word that the instructions name.
  - value: The result itself, complete.
- read_file(path): Read a file of the workspace.
  - path: Where it stands.

Answer with one JSON object and nothing else, such as
{"tool": "finish", "arguments": {"key": "...", "value": "..."}}
The next message then says what came of it.\
""")


async def test_a_server_that_refuses_tools_is_not_asked_for_json_with_one(wire: Wire) -> None:
    wire.plays(refused("no tools"), refused("response_format?"), {"answer": '{"tool": "finish"}'})
    answer = await open_model("openai:tiny").ask(Question(ASKED.messages, tools=(FINISH,)))
    assert answer.calls == (ToolCall("finish", {}),)
    assert [request["tools"] for request in wire.requests] == [["finish"], [], []]


async def test_a_model_that_is_known_to_have_no_tools_is_not_offered_any(
    wire: Wire, naps: Naps, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wire.plays('{"tool": "finish", "arguments": {"key": "done", "value": "x"}}')
    monkeypatch.setenv("SNOWFLAKE_TOKEN", KEY)
    access = Access("SNOWFLAKE_TOKEN", KEY, wire.url)
    model = ProviderModel(Target("snowflake", "llama3.1-8b", access, CallSettings(), naps.sleep, naps.chance))
    assert (await model.ask(ASKED)).calls == (finished("x"),)
    assert "does not support tools, asking for calls as JSON: its profile says so" in caplog.text
    assert wire.requests[0]["tools"] == []


async def test_a_refusal_of_something_else_keeps_the_tools(wire: Wire) -> None:
    wire.plays(refused("'temperature' is not supported"), {"calls": [{"name": "read_file", "arguments": {}}]})
    answer = await open_model("openai:any").ask(ASKED, Sampling(0.5))
    assert answer.calls == (ToolCall("read_file", {}),)


async def test_a_question_without_tools_may_still_tell_of_calls(wire: Wire) -> None:
    wire.plays("They say one and two.")
    past = Question((*SECOND.messages[:5], Message("user", "Sum up.")))
    assert (await open_model("anthropic:claude-haiku-4-5").ask(past)).content == "They say one and two."
    assert wire.requests[0]["results"] == []
    assert "Result of read_file:\\none" in json.dumps(wire.bodies)


async def test_a_result_without_a_call_is_refused(wire: Wire) -> None:
    with pytest.raises(InvalidInput, match="must follow the assistant message with its call"):
        await open_model("openai:gpt-4o").ask(Question((Message("tool", "?"),), tools=(READ,)))


async def test_a_server_that_counts_nothing_is_guessed_at_by_the_calls_too(wire: Wire) -> None:
    wire.plays({"calls": [{"name": "read_file", "arguments": {"path": "x" * 400}}], "usage": None})
    assert (await open_model("openai:gpt-4o").ask(ASKED)).usage.output_tokens > 100
