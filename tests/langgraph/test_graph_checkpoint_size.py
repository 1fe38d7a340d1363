"""What a checkpoint holds: what the graph's messages take of any graph, and what its own node added."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from reflexion_graphs import a_graph, asking, by_messages, on_thread, revised
from typing_extensions import TypedDict

from mulligan.langgraph import ScriptedChat
from mulligan.langgraph.state import episode_of

STEPS = 20


class Messages(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def a_bare_graph(messages: list[AnyMessage]) -> Any:
    """Gives these messages, one a node, as one would write it by hand."""

    def node(state: Messages) -> Any:
        return {"messages": [messages[len(state["messages"])]]}

    graph: Any = StateGraph(Messages)
    graph.add_node("say", node)
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: END if len(state["messages"]) == len(messages) else "say")  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return graph.compile()


def kept(graph: Any, given: Any, file: Path) -> tuple[Any, int]:
    """The state in the end, and how many bytes its thread takes."""
    db = sqlite3.connect(file, check_same_thread=False)
    graph.checkpointer = SqliteSaver(db)
    state = graph.invoke(given, {**on_thread(), "recursion_limit": 500})
    (checkpoints,) = db.execute("SELECT sum(length(checkpoint)) FROM checkpoints").fetchone()
    (writes,) = db.execute("SELECT sum(length(value)) FROM writes").fetchone()
    db.close()
    return state, checkpoints + writes


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("store", [False, None], ids=["not recorded", "recorded"])
def test_a_thread_takes_little_more_than_its_messages_do(store: Any, tmp_path: Path) -> None:
    model = ScriptedChat(by_messages(*[3] * STEPS))
    graph = a_graph(model, lambda answer: f"{answer}: {'a row ' * 100}", max_steps=STEPS, store=store)  # pyright: ignore[reportUnknownLambdaType]
    state, ours = kept(graph, asking(), tmp_path / "ours.db")
    assert len(state["messages"]) == 2 * STEPS
    _, bare = kept(a_bare_graph(state["messages"]), {"messages": state["messages"][:1]}, tmp_path / "bare.db")
    assert ours < 1.3 * bare


def test_the_record_of_a_checkpoint_is_whole_all_the_same() -> None:
    graph = a_graph(ScriptedChat(by_messages(3, 3, 9)), checkpointer=InMemorySaver(), store=False)
    graph.invoke(asking(), on_thread())
    trials = [
        len(episode_of(old.values["record"]).trials)
        for old in reversed([*graph.get_state_history(on_thread())])
        if old.values.get("record")
    ]
    assert trials == [0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("question", ["the same", "another"])
def test_a_thread_goes_on_with_the_next_question(question: str) -> None:
    model = ScriptedChat(by_messages(3, 9))
    graph = a_graph(model, checkpointer=InMemorySaver(), store=False)
    for text in ("the same", question):
        found = graph.invoke(asking(text), on_thread())
        assert found["reflexion"]["solved"]
    episode = episode_of(graph.get_state(on_thread()).values["record"])
    assert (episode.task.prompt, episode.solved, len(episode.trials)) == (question, True, len(episode.trials))
    assert isinstance(found["messages"][-1], AIMessage)
    assert any(isinstance(message, ToolMessage) for message in found["messages"])


def test_a_thread_of_before_goes_on() -> None:
    """A checkpoint that holds the whole record, as earlier versions wrote it."""
    saver = InMemorySaver()
    said: list[Any] = [*by_messages_of(3), revised(9)]
    graph = a_graph(ScriptedChat(said), checkpointer=saver, store=False, interrupt_before=["execute_tool"])
    graph.invoke(asking(), on_thread())
    state = graph.get_state(on_thread())
    graph.update_state(on_thread(), {"record": state.values["record"]})
    graph.invoke(None, on_thread())
    assert graph.invoke(None, on_thread())["reflexion"]["solved"]


def by_messages_of(*scores: float) -> list[Any]:
    from reflexion_graphs import scored

    return scored(*scores)
