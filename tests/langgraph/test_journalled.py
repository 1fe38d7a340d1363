"""Chat models whose calls are journalled while a node of ours is at work, whatever way they are called."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from pydantic import BaseModel
from reflexion_graphs import a_store, asking, on_thread, recorded, run, steps_of

from mulligan.core.errors import JournalError
from mulligan.core.loop import scope
from mulligan.langgraph import ScriptedChat
from mulligan.langgraph.journalled import Journalled, journalled, model_id, models_in
from mulligan.langgraph.nodes import Nodes, Parts
from mulligan.langgraph.state import Reading
from mulligan.langgraph.state_graph import state_graph
from mulligan.langgraph.working import Recorder

BOTH = ("invoke", "ainvoke")
CALL: Any = {"messages": [HumanMessage("Hello?")]}


class Pick(BaseModel):
    """What is picked."""

    one: str


def a_graph_that(draft: Any, store: Any, fails: int = 0) -> Any:
    """A graph of one step whose draft is this function's; its tool fails so many times."""
    left = [fails]

    def execute(messages: list[BaseMessage]) -> ToolMessage:
        if left[0]:
            left[0] -= 1
            raise ValueError("down")
        return ToolMessage("ran", tool_call_id="1")

    parts = Parts(
        draft,
        execute,
        draft,
        lambda message: Reading(message.text),
        lambda reading, message: reading.answer,
        lambda reading, message: False,
    )
    return state_graph(Nodes(parts, Recorder(store), 1)).compile()


def streamed(model: BaseChatModel) -> Any:
    def draft(messages: list[BaseMessage]) -> Any:
        chunks = [*model.stream(messages)]
        assert len(chunks) > 1
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole = whole + chunk
        return AIMessage(whole.text)

    return draft


def astreamed(model: BaseChatModel) -> Any:
    async def draft(messages: list[BaseMessage]) -> Any:
        text = ""
        async for chunk in model.astream(messages):
            text += chunk.text
        return AIMessage(text)

    return draft


def called_in_a_loop(model: BaseChatModel) -> Any:
    """Synchronous code inside asynchronous code, as it should not be and is."""

    async def draft(messages: list[BaseMessage]) -> Any:
        return model.invoke(messages)

    return draft


DRAFTS: dict[str, Any] = {
    "invoke": lambda model: lambda messages: model.invoke(messages),  # pyright: ignore
    "ainvoke": lambda model: lambda messages: model.ainvoke(messages),  # pyright: ignore
    "stream": streamed,
    "astream": astreamed,
    "batch": lambda model: lambda messages: model.batch([messages])[0],  # pyright: ignore
    "invoke in a loop": called_in_a_loop,
}


@pytest.mark.light_cases(4)
@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("call", DRAFTS)
def test_however_a_model_is_called_it_is_called_once(way: str, call: str, tmp_path: Path) -> None:
    model = ScriptedChat(["Let us see."])
    with a_store(tmp_path) as store:
        graph = a_graph_that(DRAFTS[call](journalled(model)), store, fails=1)
        with pytest.raises(ValueError, match="down"):
            run(way, graph, asking(id="q"), on_thread())
        found = run(way, graph, asking(id="q"), on_thread())
    assert found["reflexion"]["answer"] == "Let us see."
    assert len(model.asked) == 1
    (episode,) = recorded(tmp_path)
    (row, *_) = steps_of(tmp_path, episode.id)
    assert row.key == "trial.1/draft/model#1"
    assert row.result["message"]["content"] == "Let us see."
    assert episode.usage.calls == 1


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("call", DRAFTS)
def test_without_a_store_it_is_metered(way: str, call: str) -> None:
    model = ScriptedChat(["Let us see."])
    found = run(way, a_graph_that(DRAFTS[call](journalled(model)), None), asking())["reflexion"]
    assert (found["answer"], found["usage"]["calls"]) == ("Let us see.", 1)
    assert found["usage"]["output_tokens"] == 3


def test_outside_a_node_it_does_what_the_model_does() -> None:
    model = ScriptedChat(["one two", "one two", {"one": "this"}, {"one": "that"}, "three"])
    wrapped = journalled(model)
    assert wrapped.invoke("Hello?").text == "one two"
    assert "".join(chunk.text for chunk in wrapped.stream("Hello?")) == "one two"
    assert wrapped.bind_tools([Pick]).invoke("Which?").tool_calls[0]["args"] == {"one": "this"}
    assert wrapped.with_structured_output(Pick).invoke("Which?") == Pick(one="that")
    assert asyncio.run(wrapped.ainvoke("Hello?")).text == "three"
    assert (wrapped.model_name, model_id(wrapped)) == ("scripted", "scripted:scripted")
    assert journalled(wrapped) is wrapped


def test_a_model_that_does_not_stream_answers_at_once() -> None:
    chunks = [*journalled(FakeListChatModel(responses=["abc"], disable_streaming=True)).stream("Hello?")]
    assert chunks[0].text == "abc"
    assert len(chunks) == 1


@pytest.mark.parametrize("way", BOTH)
def test_its_cache_and_its_rate_are_its_own(way: str, tmp_path: Path) -> None:
    cache, limiter = InMemoryCache(), InMemoryRateLimiter(requests_per_second=1e6)
    taken: list[bool] = []
    acquire = limiter.acquire
    object.__setattr__(limiter, "acquire", lambda *, blocking=True: taken.append(blocking) or acquire())  # pyright: ignore
    said = iter([AIMessage("first"), AIMessage("second")])
    model = journalled(GenericFakeChatModel(messages=said, cache=cache, rate_limiter=limiter))
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        with a_store(tmp_path / folder) as store:
            graph = a_graph_that(lambda messages: model.invoke(messages), store)  # pyright: ignore
            assert run(way, graph, asking())["reflexion"]["answer"] == "first"
    assert len(taken) == 1


@pytest.mark.parametrize("way", BOTH)
def test_models_within_what_is_made_of_models_are_journalled(way: str, tmp_path: Path) -> None:
    first, spare = ScriptedChat([ValueError("down")] * 2), ScriptedChat([{"one": "this"}])
    made = journalled(first.with_fallbacks([spare]))
    assert models_in(made) == [first, spare]
    bound = made.bind_tools([Pick])
    with a_store(tmp_path) as store:
        graph = a_graph_that(lambda messages: AIMessage(bound.invoke(messages).tool_calls[0]["args"]["one"]), store)  # pyright: ignore
        assert run(way, graph, asking())["reflexion"]["answer"] == "this"
    (episode,) = recorded(tmp_path)
    rows = steps_of(tmp_path, episode.id)
    assert [(row.key, row.done) for row in rows] == [("trial.1/draft/model#1", False), ("trial.1/draft/model#2", True)]


def test_other_things_are_left_alone() -> None:
    def function() -> None: ...

    assert journalled(function) is function
    assert models_in(function) == []
    retried: Any = journalled(cast(Any, ScriptedChat(["x"])).with_retry())
    assert isinstance(retried.bound, Journalled)
    assert retried.invoke("Hello?").text == "x"


async def test_parallel_calls_need_names_of_their_own(tmp_path: Path) -> None:
    from reflexion_graphs import an_open_store

    model = journalled(ScriptedChat(lambda messages: messages[0].text))

    async def branch(name: str) -> AIMessage:
        with scope(*filter(None, [name])):
            return await model.ainvoke(name)

    async def named(messages: list[BaseMessage]) -> AIMessage:
        said = await asyncio.gather(branch("left"), branch("right"))
        return AIMessage(" ".join(message.text for message in said))

    async def unnamed(messages: list[BaseMessage]) -> AIMessage:
        return (await asyncio.gather(branch(""), branch("")))[0]

    async with an_open_store(tmp_path) as store:
        found = await a_graph_that(named, store).ainvoke(asking())
        assert found["reflexion"]["answer"] == "left right"
        with pytest.raises(JournalError, match="Give each branch its own name"):
            await a_graph_that(unnamed, store).ainvoke(asking())


@pytest.mark.parametrize("way", BOTH)
def test_a_stream_that_is_left_early_is_no_answer(way: str, tmp_path: Path) -> None:
    model = ScriptedChat(["one two three", "four five six"])
    wrapped = journalled(model)

    def draft(messages: list[BaseMessage]) -> AIMessage:
        for _ in wrapped.stream(messages):
            break
        return AIMessage("left")

    with a_store(tmp_path) as store:
        assert run(way, a_graph_that(draft, store), asking())["reflexion"]["answer"] == "left"
    (episode,) = recorded(tmp_path)
    assert [row.done for row in steps_of(tmp_path, episode.id)] == [False]


async def test_an_async_stream_that_is_left_early_leaves_nothing_behind(tmp_path: Path) -> None:
    from contextlib import aclosing

    from reflexion_graphs import an_open_store

    wrapped = journalled(ScriptedChat(["one two three"]))

    async def draft(messages: list[BaseMessage]) -> AIMessage:
        async with aclosing(wrapped.astream(messages)) as words:
            async for _ in words:
                break
        return AIMessage("left")

    before = asyncio.all_tasks()
    async with an_open_store(tmp_path) as store:
        found = await a_graph_that(draft, store).ainvoke(asking())
    assert found["reflexion"]["answer"] == "left"
    assert asyncio.all_tasks() <= before
