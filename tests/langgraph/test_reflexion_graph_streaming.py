"""What a reflexion graph streams: updates, values, and the model's words one by one; recorded or not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from reflexion_graphs import a_graph, a_store, asking, by_messages, chat, on_thread, steps_of

from mulligan.langgraph import ScriptedChat

SIDES = ("sync", "async")


def streamed(side: str, graph: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
    if side == "sync":
        return [*graph.stream(given, config, **options)]

    async def collect() -> list[Any]:
        return [part async for part in graph.astream(given, config, **options)]

    return asyncio.run(collect())


@pytest.mark.parametrize("side", SIDES)
def test_updates_name_the_nodes_in_their_order(side: str) -> None:
    parts = streamed(side, a_graph(chat(3, 8)), asking(), stream_mode="updates")
    assert [node for part in parts for node in part] == ["draft", *["execute_tool", "revise"] * 2]
    assert parts[-1]["revise"]["reflexion"]["solved"]
    assert isinstance(parts[1]["execute_tool"]["messages"][0], ToolMessage)


@pytest.mark.parametrize("side", SIDES)
def test_values_hold_the_state_after_each_node(side: str) -> None:
    parts = streamed(side, a_graph(chat(3, 8)), asking(), stream_mode="values")
    assert [len(part["messages"]) for part in parts] == [1, 2, 3, 4, 5, 6]
    assert [part["record"]["next"] for part in parts[1:]] == ["execute_tool", "revise"] * 2 + ["__end__"]
    assert [part.get("reflexion") is not None for part in parts] == [False] * 5 + [True]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("records", [False, True])
def test_messages_come_word_by_word_and_are_recorded_whole(side: str, records: bool, tmp_path: Path) -> None:
    model = chat(8)
    with a_store(tmp_path) as store:
        graph = a_graph(model, store=store if records else False)
        parts = streamed(side, graph, asking(), stream_mode=["messages", "updates"])
    words = [part[0] for mode, part in parts if mode == "messages"]
    chunks = [word for word in words if isinstance(word, AIMessageChunk)]
    assert len(chunks) > 8
    assert not [word for word in words if isinstance(word, AIMessage) and not isinstance(word, AIMessageChunk)]
    whole: dict[str, Any] = {}
    for chunk in chunks:
        whole[chunk.id or ""] = whole[chunk.id or ""] + chunk if chunk.id in whole else chunk
    messages = [m for mode, part in parts if mode == "updates" for update in part.values() for m in update["messages"]]
    answered = [message for message in messages if isinstance(message, AIMessage)]
    assert [m.tool_calls for m in whole.values()] == [m.tool_calls for m in answered]
    assert [*whole] == [message.id for message in answered]
    if records:
        run = parts[-1][1]["revise"]["reflexion"]["run"]
        rows = [row for row in steps_of(tmp_path, f"{run}.1") if "model" in row.key]
        assert [row.result["message"]["tool_calls"][0]["args"] for row in rows] == [
            message.tool_calls[0]["args"] for message in answered
        ]
        assert all(row.result["usage"]["input_tokens"] for row in rows)


@pytest.mark.parametrize("side", SIDES)
def test_what_the_journal_answers_is_streamed_as_a_whole(side: str, tmp_path: Path) -> None:
    calls = 0

    def fails_once(answer: str) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise KeyboardInterrupt
        return "ran"

    model = ScriptedChat(by_messages(8))
    with a_store(tmp_path) as store:
        graph = a_graph(model, fails_once, store=store)
        config, given = on_thread(), asking(id="q")
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(given, config)
        parts = streamed(side, graph, given, config, stream_mode="messages")
    assert len(model.asked) == 2
    drafted = [message for message, about in parts if about["langgraph_node"] == "draft"]
    assert [message.tool_calls[0]["args"]["answer"] for message in drafted] == ["answer 1"]
    assert not isinstance(drafted[0], AIMessageChunk)


@pytest.mark.parametrize("side", SIDES)
def test_a_subgraph_s_words_are_streamed_by_its_parent(side: str) -> None:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", a_graph(chat(8)))
    graph.add_edge(START, "ask")
    parts = streamed(side, graph.compile(), asking(), stream_mode="messages", subgraphs=True)
    assert len({namespace for namespace, _ in parts}) == 1
    assert {about["langgraph_node"] for _, (_, about) in parts} >= {"draft", "revise"}


class Heard(BaseCallbackHandler):
    """Who is told of models and tools, as a tracer is."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.ended: list[Any] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        self.started.append(given["metadata"]["ls_model_name"])

    def on_llm_end(self, response: Any, **given: Any) -> None:
        self.ended.append(response.generations[0][0].message.usage_metadata)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("records", [False, True])
def test_callbacks_hear_of_each_call_once(side: str, records: bool, tmp_path: Path) -> None:
    heard = Heard()
    with a_store(tmp_path) as store:
        streamed(side, a_graph(chat(3, 8), store=store if records else False), asking(), {"callbacks": [heard]})
    assert heard.started == ["scripted"] * 3
    assert len(heard.ended) == 3
    assert all(heard.ended)


@pytest.mark.parametrize("side", SIDES)
def test_checkpoints_and_tasks_are_streamed_as_of_any_graph(side: str) -> None:
    graph = a_graph(chat(8), checkpointer=InMemorySaver())
    parts = streamed(side, graph, asking(), on_thread(), stream_mode=["checkpoints", "tasks"])
    assert [p["values"]["record"]["next"] for m, p in parts if m == "checkpoints" and p["values"].get("record")] == [
        "execute_tool",
        "revise",
        "__end__",
    ]
