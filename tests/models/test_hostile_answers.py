"""What a model makes up must not break the run that records it, nor the next question, which repeats it."""

import json

import pytest
from wire_client import Wire

from mulligan.core.codec import json_text
from mulligan.core.questions import Message, Question, Tool, ToolCall
from mulligan.models.catalog import open_model
from mulligan.models.json_answers import parse
from mulligan.models.requests import result_of
from mulligan.models.steps import FINISH

READ = Tool("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
ASKED = (Message("user", "What do they say?"),)
TOOLS = (FINISH, READ)
DEEP = '{"path":' * 500 + "1" + "}" * 500


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("name", ["openai:gpt-4o", "openai-responses:gpt-5.6-luna", "anthropic:claude-haiku-4-5"])
@pytest.mark.parametrize("bad", ['{"path": "\\ud800 \\ud83d"}', '{"path": NaN}', '{"path": [1e999]}', DEEP])
async def test_arguments_that_no_record_or_request_can_hold(wire: Wire, name: str, bad: str) -> None:
    given = json.loads(bad) if name.startswith("anthropic") else bad
    wire.plays({"answer": "half \ud800", "calls": [{"name": "read_file", "arguments": given}]}, "fine")
    model = open_model(name)
    answer = await model.ask(Question(ASKED, tools=TOOLS))
    json_text(result_of(answer))
    assert answer.content == "half ?"
    said = Message("assistant", str(answer.content), calls=answer.calls)
    again = await model.ask(Question((*ASKED, said, Message("tool", "[error: no]")), tools=TOOLS))
    assert again.content == "fine"


@pytest.mark.parametrize(
    ("made_up", "sent"), [("functions.read file\n", "functions_read_file_"), ("", "_"), ("x" * 99, "x" * 64)]
)
async def test_names_that_no_provider_takes_are_not_sent_back(wire: Wire, made_up: str, sent: str) -> None:
    wire.plays("fine")
    said = Message("assistant", "", calls=(ToolCall(made_up, {}),))
    await open_model("openai:gpt-4o").ask(Question((*ASKED, said, Message("tool", "[error: no]")), tools=TOOLS))
    (call,) = wire.bodies[0]["messages"][1]["tool_calls"]
    assert call["function"]["name"] == sent


def test_json_answers_are_fit_to_be_recorded() -> None:
    assert parse('{"a\\ud800": ["\\udfff"]}') == {"a?": ["?"]}
    with pytest.raises(ValueError, match="nested too deeply"):
        parse(DEEP)
