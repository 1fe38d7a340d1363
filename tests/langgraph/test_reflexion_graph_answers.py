"""What a model may answer: calls that fit, calls that do not, no calls at all; and who judges."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from reflexion_graphs import a_graph, asking, chat, drafted, revised, run, scored

from mulligan.core.errors import InvalidInput
from mulligan.langgraph import ScriptedChat
from mulligan.langgraph.state import Reading

BOTH = ("invoke", "ainvoke")
BROKEN = AIMessage(
    "", invalid_tool_calls=[{"name": "Draft", "args": "{", "id": "1", "error": None, "type": "invalid_tool_call"}]
)

WRONG: dict[str, Any] = {
    "no call": ("I would not know.", "Answer with one call of the tool Draft."),
    "another tool": ({"tool": "Other", "arguments": {}}, "Answer with one call of the tool Draft."),
    "two calls": ([drafted("a"), drafted("b")], "Answer with one call of the tool Draft."),
    "a field is missing": ({"tool": "Draft", "arguments": {"reflection": ""}}, "answer: Field required"),
    "an empty answer": (drafted(" "), "The answer is empty."),
    "no JSON": (BROKEN, "The arguments of Draft are not valid JSON"),
}


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("kind", WRONG)
def test_an_answer_that_does_not_fit_goes_back_with_what_is_wrong(way: str, kind: str) -> None:
    wrong, said = WRONG[kind]
    model = ScriptedChat([wrong, *scored(9)])
    found = run(way, a_graph(model), asking())
    assert found["reflexion"]["answer"] == "answer 1"
    assert len(found["messages"]) == 4
    assert said in model.asked[1][-1].text
    assert found["reflexion"]["usage"]["calls"] == 3


@pytest.mark.parametrize("way", BOTH)
def test_a_draft_that_never_fits_ends_in_a_result_that_says_so(way: str) -> None:
    model = ScriptedChat(["a", "b", "c", *scored(9)])
    result = run(way, a_graph(model), asking())["reflexion"]
    assert (result["answer"], result["tool_result"], result["stop"]) == (None, None, "gave_up")
    assert "Answer with one call of the tool Draft" in result["detail"]
    assert len(model.asked) == 3
    assert result["usage"]["calls"] == 3


def test_a_revision_that_never_fits_keeps_what_was_executed() -> None:
    result = a_graph(ScriptedChat([drafted("a"), "b", "c", "d"])).invoke(asking())["reflexion"]
    assert (result["answer"], result["tool_result"], result["stop"]) == ("a", "ran a", "gave_up")


@pytest.mark.parametrize(("score", "solved"), [("8", True), ("8/10", True), (7, True), ("6.9", False)])
def test_scores_are_read_as_models_write_them(score: Any, solved: bool) -> None:
    model = ScriptedChat([drafted(), revised(score)])
    assert a_graph(model, max_steps=2).invoke(asking())["reflexion"]["solved"] is solved


@pytest.mark.parametrize("score", ["very good", 11, -1, None])
def test_a_score_that_is_none_is_asked_for_again(score: Any) -> None:
    model = ScriptedChat([drafted(), revised(score), revised(8)])
    result = a_graph(model).invoke(asking())["reflexion"]
    assert result["score"] == 8
    assert "score" in model.asked[2][-1].text


def test_good_enough_is_the_user_s_to_say() -> None:
    assert a_graph(chat(5), good_score=5).invoke(asking())["reflexion"]["solved"]
    assert not a_graph(chat(8, 9), good_score=9.5, max_steps=3).invoke(asking())["reflexion"]["solved"]


async def judged_later(reading: Reading, message: Any) -> bool:
    return message.text == "ran answer 2"


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("judge", [lambda reading, message: message.text == "ran answer 2", judged_later])  # pyright: ignore
def test_a_judge_decides_in_the_place_of_the_score(way: str, judge: Any) -> None:
    result = run(way, a_graph(chat(10, 0, 10), judge=judge), asking())["reflexion"]
    assert (result["answer"], result["solved"], result["score"]) == ("answer 2", True, 0)


def test_a_judge_that_cannot_tell_draws_no_lesson() -> None:
    result = a_graph(chat(10, 10), judge=lambda reading, message: None, max_steps=3).invoke(asking())["reflexion"]  # pyright: ignore
    assert (result["solved"], result["reflections"], result["stop"]) == (False, [], "exhausted")


@pytest.mark.parametrize("way", BOTH)
def test_a_model_without_tools_answers_in_json(way: str) -> None:
    asked: list[list[BaseMessage]] = []

    class Spoken(GenericFakeChatModel):
        def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Any:
            asked.append(messages)
            return super()._generate(messages, *given, **named)

    said = ["Hm.", f"Here:\n```json\n{json.dumps(drafted('a'))}\n```", json.dumps(revised(9))]
    model = Spoken(messages=iter([AIMessage(text) for text in said]))
    result = run(way, a_graph(model), asking())["reflexion"]
    assert (result["answer"], result["score"]) == ("a", 9)
    assert '"reflection"' in asked[0][0].text
    assert "not valid JSON" in asked[1][-1].text
    assert asked[2][-1].type == "human"
    assert "ran a" in asked[2][-1].text


@pytest.mark.parametrize("way", BOTH)
def test_a_model_with_fallbacks_or_retries_is_a_model(way: str) -> None:
    first = ScriptedChat([ValueError("down"), ValueError("still down")])
    spare = chat(9)
    assert run(way, a_graph(first.with_fallbacks([spare])), asking())["reflexion"]["solved"]
    assert len(spare.asked) == 2


@pytest.mark.parametrize("model", [object(), "no-such-provider:model", lambda messages: "x"])  # pyright: ignore
def test_what_is_not_a_chat_model_is_refused(model: Any) -> None:
    with pytest.raises(InvalidInput):
        a_graph(model)


def test_a_model_is_found_by_its_name(tmp_path: Any) -> None:
    script = tmp_path / "said.json"
    script.write_text(
        json.dumps([{"tool": "Draft", "arguments": drafted("a")}, {"tool": "Revision", "arguments": revised(9)}])
    )
    assert a_graph(f"scripted:{script}").invoke(asking())["reflexion"]["answer"] == "a"


def test_the_script_says_where_it_ends_and_what_it_cannot_answer() -> None:
    assert issubclass(ScriptedChat, BaseChatModel)
    with pytest.raises(Exception, match="has 1 answer but was asked for number 2"):
        a_graph(ScriptedChat([drafted()])).invoke(asking())
    with pytest.raises(InvalidInput, match="no tool is bound"):
        ScriptedChat([drafted()]).invoke("Hello?")
