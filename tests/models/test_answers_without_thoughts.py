"""Thoughts are kept in the record, are no part of the answer, and are never all of it."""

from typing import Any

import pytest
from test_gate import JUDGED, Notes, gate
from wire_client import Wire

from mulligan.core.errors import BadAnswer
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter
from mulligan.core.questions import Answer, Message, Question, Sampling, Tool, ToolCall
from mulligan.models.catalog import open_model
from mulligan.models.requests import answer_of, result_of
from mulligan.models.scripted import ScriptedModel

ASKED = Question((Message("user", "How many?"),))


async def test_the_journal_keeps_the_whole_text() -> None:
    notes = Notes()
    model = ScriptedModel(["7?\n</think>\n9", "<think>{}</think>{'passed': True}"])
    gated = gate(model, Limits(), journal=notes)
    assert (await gated.ask(ASKED)).content == "9"
    judged = await gated.ask(JUDGED)
    assert judged.content == {"passed": True}
    assert judged.raw == "<think>{}</think>{'passed': True}"
    assert len(judged.repairs) == 2
    assert answer_of(result_of(judged)) == judged
    assert "7?" in notes.done["model.actor#1"][1]


async def test_a_plain_answer_is_recorded_as_before() -> None:
    answer = await gate(ScriptedModel(["9"]), Limits()).ask(ASKED)
    assert set(result_of(answer)) == {"content", "model", "usage"}


class Foreign:
    """A model that somebody wrote, and that knows nothing of thoughts."""

    name = id = "foreign"

    def __init__(self, *texts: str) -> None:
        self.texts, self.questions = list(texts), list[Question]()

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        self.questions.append(question)
        return Answer(self.texts.pop(0), self.id)


def ours(*texts: str) -> ScriptedModel:
    return ScriptedModel(texts)


@pytest.mark.parametrize("kind", [Foreign, ours])
async def test_thoughts_alone_are_asked_for_an_answer_once_more(kind: Any) -> None:
    model, meter, notes = kind("<think>7? Or", "<think>9.</think>9"), Meter(), Notes()
    assert (await gate(model, Limits(), meter, journal=notes).ask(ASKED)).content == "9"
    assert [message.role for message in model.questions[1].messages] == ["user", "user"]
    assert "your answer alone" in model.questions[1].messages[-1].text
    assert len(notes.done) == 2
    again = await gate(kind(), Limits(), journal=notes.again()).ask(ASKED)
    assert again.content == "9"


async def test_thoughts_alone_twice_are_a_bad_answer() -> None:
    with pytest.raises(BadAnswer, match="gave no answer"):
        await gate(ScriptedModel(["<think>7?", "<think>8?"]), Limits()).ask(ASKED)


@pytest.mark.parametrize("name", ["openai:mine", "openai-responses:gpt-5.6-luna", "anthropic:claude-haiku-4-5"])
async def test_providers_hand_the_text_on_as_it_is(wire: Wire, name: str) -> None:
    code = "```python\nprint(text.replace('<think>', '').replace('</think>', ''))\n```"
    wire.plays(f"<think>7?</think>\n{code}", "<think>7? Or", "9", {"answer": "Seven?\n</think>\n9"})
    model = open_model(name)
    assert (await model.ask(ASKED)).content == code
    assert (await gate(model, Limits()).ask(ASKED)).content == "9"
    answer = await model.ask(ASKED, Sampling(stop=("?",)))
    assert answer.content == "9"


async def test_an_answer_that_is_cut_within_its_thoughts_is_no_answer(wire: Wire) -> None:
    wire.plays({"answer": "<think>7? Or", "finish": "length"}, "9")
    assert (await gate(open_model("openai:mine"), Limits()).ask(ASKED)).content == "9"


async def test_a_call_in_near_json_is_read_and_said(wire: Wire) -> None:
    tool = Tool("look", "Look at it.", {"type": "object", "properties": {"at": {"type": "string"}}})
    text = "[THINK]{'tool': 'drop'}[/THINK]{'tool': 'look', 'arguments': {'at': 'a'},}"
    wire.plays({"status": 400, "body": {"error": {"message": "this model does not support tools"}}}, text)
    answer = await open_model("openai:mine").ask(Question(ASKED.messages, tools=(tool,)))
    assert answer.calls == (ToolCall("look", {"at": "a"}),)
    assert answer.raw == text
    assert len(answer.repairs) == 2
