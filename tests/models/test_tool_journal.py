"""Calls in requests and in the journal: recorded, replayed, counted; and scripted calls."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from mulligan.core.codec import json_text
from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, OverBudget
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter
from mulligan.core.protocols import Journal, Model
from mulligan.core.questions import Answer, Message, Question, Sampling, Tool, ToolCall
from mulligan.core.records import Json, Usage
from mulligan.models.failures import Unreadable
from mulligan.models.gate import Gate, estimate
from mulligan.models.replayed import ReplayedModel
from mulligan.models.requests import answer_of, hash_of, request_of, result_of
from mulligan.models.scripted import ScriptedModel
from mulligan.recording.journal import NoJournal

LOOK = Tool("look", "Look somewhere.", {"type": "object", "properties": {"at": {"type": "string"}}}, repeatable=True)
ASKED = Question((Message("system", "Be brief."), Message("user", "What is there?")), tools=(LOOK,))
AFTER = Question(
    (*ASKED.messages, Message("assistant", "", calls=(ToolCall("look", {"at": "a"}),)), Message("tool", "a cat")),
    tools=(LOOK,),
)
SCRIPT: list[Any] = [{"tool": "look", "arguments": {"at": "a"}, "text": "I look."}, "A cat."]


class Rows:
    """A journal in memory that keeps JSON text, as a file would; `again` begins a new drive."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.at = 0

    def again(self) -> "Rows":
        self.at = 0
        return self

    async def step(self, name: str, request: Json, do: Any, *, repeatable: bool = True) -> Json:
        self.at += 1
        if self.at > len(self.rows):
            result = json.loads(json_text(await do()))
            self.rows.append(
                {"key": f"act/{name}#{self.at}", "request": json.loads(json_text(request)), "result": result}
            )
        assert self.rows[self.at - 1]["request"] == json.loads(json_text(request)), "diverged"
        return self.rows[self.at - 1]["result"]


def gate(model: Model, journal: Journal | None = None, meter: Meter | None = None, limits: Limits = Limits()) -> Gate:
    return Gate(model, role="actor", journal=journal or NoJournal(), meter=meter or Meter(), limits=limits)


async def test_tools_and_calls_are_journaled() -> None:
    rows = Rows()
    ours = gate(ScriptedModel(SCRIPT), rows)
    assert (await ours.ask(ASKED)).calls == (ToolCall("look", {"at": "a"}),)
    assert (await ours.ask(AFTER)).content == "A cat."
    first, second = rows.rows
    assert first["request"]["tools"] == snapshot(
        [
            {
                "name": "look",
                "description": "Look somewhere.",
                "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
            }
        ]
    )
    assert first["result"] == snapshot(
        {
            "content": "I look.",
            "model": "scripted",
            "usage": {"input_tokens": 5, "output_tokens": 8, "calls": 1, "cost": 0.0},
            "calls": [{"name": "look", "arguments": {"at": "a"}}],
        }
    )
    assert second["request"]["messages"][2:] == snapshot(
        [
            {"role": "assistant", "text": "", "calls": [{"name": "look", "arguments": {"at": "a"}}]},
            {"role": "tool", "text": "a cat"},
        ]
    )
    assert "calls" not in second["result"]


async def test_a_recorded_call_costs_nothing() -> None:
    rows, meter = Rows(), Meter()
    first = await gate(ScriptedModel(SCRIPT), rows).ask(ASKED)
    silent = ScriptedModel([])
    again = gate(silent, rows.again(), meter, Limits(tokens=1))
    assert await again.ask(ASKED) == first
    assert meter.usage == first.usage
    assert silent.questions == []


async def test_a_recorded_run_answers_again() -> None:
    rows = Rows()
    ours = gate(ScriptedModel(SCRIPT), rows)
    answers = [await ours.ask(ASKED), await ours.ask(AFTER)]
    replay = ReplayedModel.parse("run.json", json.dumps({"steps": rows.rows}))
    assert [await replay.ask(AFTER), await replay.ask(ASKED)] == answers[::-1]
    with pytest.raises(ModelError, match=r"differs in tools\."):
        await replay.ask(Question(ASKED.messages))


def test_requests_without_tools_are_hashed_as_before() -> None:
    plain = Question((Message("user", "hello"), Message("assistant", "hi"), Message("user", "bye")), {"type": "object"})
    assert hash_of(request_of("m", plain, Sampling(0.5, 10, 7, ("x",)))) == (
        "ea8ec2b804bc92a58e831b4d5c64cc9850d34805115390f7fb30072cc410d431"
    )
    other = Tool(LOOK.name, LOOK.description, LOOK.parameters, repeatable=False, changes=True)
    same = Question(ASKED.messages, tools=(other,))
    assert request_of("m", same, Sampling()) == request_of("m", ASKED, Sampling()), "the model is told nothing of these"


def test_a_row_from_before_there_were_tools_is_read() -> None:
    row = {"content": "hi", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 2, "calls": 1, "cost": None}}
    assert answer_of(row) == Answer("hi", "m", Usage(1, 2, 1, None))
    assert result_of(answer_of(row)) == row


async def test_tools_and_calls_count_against_the_budget() -> None:
    wide = Tool("look", "x" * 400, {"type": "object", "description": "y" * 400})
    assert estimate(Question(ASKED.messages, tools=(wide,))) > 200
    long = (Message("assistant", "", calls=(ToolCall("look", {"at": "z" * 400}),)), Message("tool", ""))
    assert estimate(Question((*ASKED.messages, *long))) > 100
    model = ScriptedModel(SCRIPT)
    with pytest.raises(OverBudget):
        await gate(model, limits=Limits(tokens=100)).ask(Question(ASKED.messages, tools=(wide,)))
    assert model.questions == []


async def test_an_answer_that_is_not_a_call_is_asked_for_once_more_with_the_tools() -> None:
    model = ScriptedModel([Unreadable("no JSON", text="Well.", model="m", usage=Usage()), SCRIPT[0]])
    answer = await gate(model).ask(ASKED)
    assert answer.calls == (ToolCall("look", {"at": "a"}),)
    assert model.questions[1].tools == (LOOK,)
    assert [message.text for message in model.questions[1].messages[2:]] == snapshot(
        ["Well.", "That cannot be read: no JSON. Answer again, with nothing but JSON that fits the schema."]
    )
    with pytest.raises(BadAnswer):
        await gate(ScriptedModel([Unreadable("cut", text="{", model="m", usage=Usage(), again=False)])).ask(ASKED)


@pytest.mark.parametrize(
    ("line", "content", "calls"),
    [
        ("just so", "just so", ()),
        ({"tool": "look"}, "", (ToolCall("look", {}),)),
        ({"tool": "look", "arguments": '{"at', "text": "hm"}, "hm", (ToolCall("look", '{"at'),)),
        (
            {"calls": [{"tool": "a", "arguments": {"n": 1}}, {"tool": "b"}], "text": "both"},
            "both",
            (ToolCall("a", {"n": 1}), ToolCall("b", {})),
        ),
    ],
)
async def test_scripted_calls(line: Any, content: str, calls: tuple[ToolCall, ...]) -> None:
    for model in (ScriptedModel([line]), ScriptedModel(lambda question, sampling: line)):
        answer = await model.ask(ASKED)
        assert (answer.content, answer.calls) == (content, calls)
    file = ScriptedModel.parse("a.jsonl", json.dumps(line))
    assert (await file.ask(ASKED)).calls == calls


@pytest.mark.parametrize("line", [{"passed": True}, ["look"], {"calls": ["look"]}, {"calls": None}])
async def test_a_scripted_line_that_is_not_a_call_is_refused(line: Any) -> None:
    with pytest.raises(
        InvalidInput, match=r"scripted, answer 1, cannot answer a question that has tools: .*Write a string"
    ):
        await ScriptedModel([line]).ask(ASKED)


async def test_a_scripted_call_is_json_where_there_are_no_tools() -> None:
    asked = Question(ASKED.messages, {"type": "object"})
    assert (await ScriptedModel([SCRIPT[0]]).ask(asked)).content == SCRIPT[0]


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CALLS = st.lists(st.builds(ToolCall, st.text(), st.dictionaries(st.text(), JSON, max_size=3) | st.text()), max_size=3)


@given(CALLS, st.text())
def test_any_calls_survive_the_journal(calls: list[ToolCall], text: str) -> None:
    answer = Answer(text, "m", Usage(1, 2, 1, 0.5), tuple(calls))
    assert answer_of(json.loads(json_text(result_of(answer)))) == answer
    asked = Question((Message("assistant", text, calls=tuple(calls)),))
    message = json.loads(json_text(request_of("m", asked, Sampling())))["messages"][0]
    assert [ToolCall(call["name"], call["arguments"]) for call in message.get("calls", ())] == calls
    assert ("calls" in message) == bool(calls)
