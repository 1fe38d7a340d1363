"""A model of ours as LangChain's chat model: what a chat model has to keep to, with a scripted model behind it."""

import asyncio
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from mulligan.core.errors import BadAnswer, InvalidInput, ModelError, UnknownName
from mulligan.core.questions import Question, Sampling
from mulligan.langgraph.chat import ChatMulligan, chat_model
from mulligan.models.scripted import ScriptedModel

ROME: Any = {"tool": "Weather", "arguments": {"city": "Rome"}}


class Weather(BaseModel):
    """How the weather is."""

    city: str = Field(description="Where.")


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def multiply(a: int, b: int) -> int:
    """Multiplies two numbers."""
    return a * b


def scripted(*answers: Any, cost: float | None = 0.0, **options: Any) -> tuple[ChatMulligan, ScriptedModel]:
    model = ScriptedModel(answers, cost=cost)
    return chat_model(model, **options), model


def test_an_answer_is_a_message_with_what_it_took() -> None:
    chat, _ = scripted("It is fine.", cost=0.25)
    answer = chat.invoke([("system", "Be brief."), ("user", "And the weather?")])
    assert isinstance(answer, AIMessage)
    assert answer.content == "It is fine."
    assert answer.usage_metadata == {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
    assert answer.response_metadata == {"model_name": "scripted", "cost": 0.25}


def test_a_cost_that_nobody_knows_is_not_said() -> None:
    chat, _ = scripted("Fine.", cost=None)
    assert "cost" not in chat.invoke("And?").response_metadata


async def test_every_way_of_asking_gives_the_same() -> None:
    chat, model = scripted(*["Fine."] * 10)
    assert (await chat.ainvoke("And?")).content == "Fine."
    assert chat.invoke("And?").content == "Fine."  # in a running loop, as in a notebook
    assert (await asyncio.to_thread(chat.invoke, "And?")).content == "Fine."
    assert [answer.content for answer in await chat.abatch(["And?"] * 2)] == ["Fine."] * 2
    assert [answer.content for answer in chat.batch(["And?"] * 2)] == ["Fine."] * 2
    chunks = [chunk async for chunk in chat.astream("And?")]
    assert "".join(str(chunk.content) for chunk in chunks) == "Fine."
    assert [chunk.content for chunk in chat.stream("And?") if chunk.content] == ["Fine."]
    assert (await chat.ainvoke("And?", temperature=0.5)).content == "Fine."
    assert len(model.questions) == 10


async def test_an_answer_streams_as_one_piece() -> None:
    broken: Any = {"tool": "Weather", "arguments": '{"city": "Ro'}
    chat, _ = scripted(*[{"text": "I look.", "calls": [ROME, broken]}] * 2)
    bound = chat.bind_tools([Weather])
    for chunks in ([chunk async for chunk in bound.astream("?")], list(bound.stream("?"))):
        (chunk,) = chunks
        assert isinstance(chunk, AIMessageChunk)
        assert (chunk.content, chunk.chunk_position) == ("I look.", "last")
        assert [call["args"] for call in chunk.tool_calls] == [{"city": "Rome"}]
        assert [call["args"] for call in chunk.invalid_tool_calls] == ['{"city": "Ro']
        assert chunk.usage_metadata is not None


def test_sampling_is_what_the_call_says_then_what_the_model_was_made_with() -> None:
    chat, model = scripted(*"abc", temperature=0.5, max_tokens=9, seed=4, stop=["END"])
    chat.invoke("And?")
    chat.invoke("And?", temperature=0.0, max_tokens=3, stop=["."])
    chat.bind(seed=7).invoke("And?")
    assert model.samplings == [
        Sampling(0.5, 9, 4, ("END",)),
        Sampling(0.0, 3, 4, (".",)),
        Sampling(0.5, 9, 7, ("END",)),
    ]


@pytest.mark.parametrize(
    "given", [Weather, add, multiply, Weather.model_json_schema()], ids=["class", "tool", "function", "schema"]
)
def test_everything_that_langchain_takes_as_a_tool_can_be_bound(given: Any) -> None:
    chat, model = scripted("No call.")
    chat.bind_tools([given]).invoke("And?")
    (offered,) = model.questions[0].tools
    assert offered.name in ("Weather", "add", "multiply")
    assert offered.description
    assert set(offered.parameters["properties"]) in ({"city"}, {"a", "b"})


def test_calls_come_back_with_ids_that_are_always_the_same() -> None:
    def ask() -> AIMessage:
        chat, _ = scripted({"text": "I look.", "calls": [ROME, {"tool": "add", "arguments": {"a": 1, "b": 2}}]})
        return chat.bind_tools([Weather, add]).invoke("And?")

    answer = ask()
    assert answer.content == "I look."
    assert [(call["name"], call["args"]) for call in answer.tool_calls] == [
        ("Weather", {"city": "Rome"}),
        ("add", {"a": 1, "b": 2}),
    ]
    ids = [call["id"] for call in answer.tool_calls]
    assert len(set(ids)) == 2
    assert [call["id"] for call in ask().tool_calls] == ids


def test_calls_of_another_conversation_have_other_ids() -> None:
    chat, _ = scripted(ROME, ROME)
    bound = chat.bind_tools([Weather])
    first, second = bound.invoke("And?"), bound.invoke("And now?")
    assert first.tool_calls[0]["id"] != second.tool_calls[0]["id"]


def test_arguments_that_are_no_object_are_an_invalid_call() -> None:
    chat, _ = scripted({"tool": "Weather", "arguments": '{"city": "Ro'})
    answer = chat.bind_tools([Weather]).invoke("And?")
    assert answer.tool_calls == []
    assert [(call["name"], call["args"]) for call in answer.invalid_tool_calls] == [("Weather", '{"city": "Ro')]


@pytest.mark.parametrize("choice", ["Weather", "any", "required", True, {"function": {"name": "Weather"}}], ids=str)
def test_a_call_that_has_to_be_made_is_asked_for_as_json(choice: Any) -> None:
    chat, model = scripted(ROME)
    answer = chat.bind_tools([Weather], tool_choice=choice).invoke("And?")
    assert answer.tool_calls[0]["args"] == {"city": "Rome"}
    (question,) = model.questions
    assert question.tools == ()
    assert question.schema["properties"]["tool"] == {"type": "string", "const": "Weather"}


def test_one_of_several_tools_can_be_demanded() -> None:
    chat, model = scripted(ROME, {"tool": "add", "arguments": {"a": 1, "b": 2}})
    assert chat.bind_tools([Weather, add], tool_choice="Weather").invoke("And?").tool_calls[0]["name"] == "Weather"
    assert "anyOf" not in model.questions[0].schema
    assert chat.bind_tools([Weather, add], tool_choice="any").invoke("And?").tool_calls[0]["name"] == "add"
    assert len(model.questions[1].schema["anyOf"]) == 2


def test_arguments_alone_are_the_call_where_there_is_one_tool() -> None:
    chat, _ = scripted({"city": "Rome"})
    assert chat.bind_tools([Weather], tool_choice="any").invoke("And?").tool_calls[0]["args"] == {"city": "Rome"}


@pytest.mark.parametrize("said", ["I would rather not.", {"tool": "Fly", "arguments": {}}], ids=str)
def test_what_should_have_been_a_call_and_is_none_is_an_invalid_call(said: Any) -> None:
    chat, model = scripted(said)
    answer = chat.bind_tools([Weather], tool_choice="any").invoke("And?")
    assert answer.tool_calls == []
    (invalid,) = answer.invalid_tool_calls
    assert invalid["error"]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] > 0
    assert len(model.questions) == 1


def test_no_tools_are_offered_where_none_may_be_called() -> None:
    chat, model = scripted("Fine.")
    assert chat.bind_tools([Weather], tool_choice="none").invoke("And?").content == "Fine."
    assert model.questions[0].tools == ()


def test_one_call_in_an_answer_where_more_are_not_wanted() -> None:
    chat, _ = scripted({"calls": [ROME, ROME]})
    assert len(chat.bind_tools([Weather], parallel_tool_calls=False).invoke("And?").tool_calls) == 1


class OnlyCalls(ScriptedModel):
    """A model that answers with nothing but calls where there are tools, as the embedded ones do."""

    calls_tools = False


def test_a_model_that_answers_with_nothing_but_calls_can_still_say_something() -> None:
    model = OnlyCalls([{"tool": "add", "arguments": {"a": 1, "b": 2}}, {"tool": "reply", "arguments": {"text": "3"}}])
    bound = chat_model(model).bind_tools([add])
    assert bound.invoke("1 + 2?").tool_calls[0]["name"] == "add"
    answer = bound.invoke("And?")
    assert (answer.content, answer.tool_calls) == ("3", [])
    assert "reply(text)" in model.questions[0].messages[0].text


class Typed(TypedDict):
    """How the weather is."""

    city: str


@pytest.mark.parametrize("schema", [Weather, Typed, Weather.model_json_schema()], ids=["pydantic", "typed", "json"])
@pytest.mark.parametrize("method", ["function_calling", "json_schema"])
def test_structured_output(schema: Any, method: str) -> None:
    chat, _ = scripted({"city": "Rome"})
    found: Any = chat.with_structured_output(schema, method=method).invoke("And?")
    assert (found.city if isinstance(found, Weather) else found["city"]) == "Rome"


async def test_structured_output_that_is_none_is_an_error() -> None:
    chat, _ = scripted("No.", "No.")
    with pytest.raises(BadAnswer, match="does not fit"):
        await chat.with_structured_output(Weather).ainvoke("And?")
    raw: Any = await chat.with_structured_output(Weather, include_raw=True).ainvoke("And?")
    assert raw["parsed"] is None
    assert raw["raw"].invalid_tool_calls


def test_errors_are_ours() -> None:
    chat, _ = scripted(ModelError("It is down."))
    with pytest.raises(ModelError, match="It is down"):
        chat.invoke("And?")
    with pytest.raises(ModelError, match="has 1 answer but was asked for number 2"):
        chat.bind_tools([Weather]).invoke("And?")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reasoning": 1}, "have no option 'reasoning'"),
        ({"tools": [{"type": "web_search"}]}, "'web_search' runs on its provider's servers"),
        ({"tools": [add, add]}, "Two tools have the name add"),
        ({"tools": [3]}, "3 is not a tool"),
        ({"tools": [add], "tool_choice": "addd"}, "Did you mean 'add'"),
    ],
)
async def test_what_cannot_be_is_refused_before_the_model_is_asked(options: Any, said: str) -> None:
    chat, model = scripted("Fine.")
    with pytest.raises(InvalidInput) as caught:
        await chat.ainvoke("And?", **options)
    assert said in str(caught.value)
    assert model.questions == []


def test_a_tool_that_is_not_there_cannot_be_demanded() -> None:
    chat, _ = scripted()
    with pytest.raises(UnknownName, match="No tool is called 'add'"):
        chat.bind_tools([Weather], tool_choice="add")


async def test_calls_at_once_are_one_question_each() -> None:
    def answer(question: Question, sampling: Sampling) -> str:
        return question.messages[-1].text.upper()

    chat = chat_model(ScriptedModel(answer))
    answers = await asyncio.gather(*(chat.ainvoke([HumanMessage(f"say {n}")]) for n in range(8)))
    assert [answer.content for answer in answers] == [f"SAY {n}" for n in range(8)]
