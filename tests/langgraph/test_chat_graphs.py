"""Models of ours in LangGraph: in graphs of its own making, and resumed from a checkpoint."""

from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

from mulligan.langgraph import chat_model
from mulligan.models.scripted import ScriptedModel

SUMS: Any = {
    "calls": [
        {"tool": "add", "arguments": {"a": 1, "b": 2}},
        {"tool": "add", "arguments": {"a": 3, "b": 4}},
        {"tool": "divide", "arguments": {"a": 1, "b": 0}},
    ]
}


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
def divide(a: int, b: int) -> float:
    """Divides a number by another."""
    return a / b


def react(model: ScriptedModel, **compiled: Any) -> Any:
    """Model, tools, model, … until there is no call: as LangGraph's documentation builds it."""
    bound = chat_model(model).bind_tools([add, divide])

    async def ask(state: State) -> Any:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    graph: Any = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([add, divide], handle_tool_errors=True))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition, ["tools", END])
    graph.add_edge("tools", "ask")
    return graph.compile(**compiled)


async def test_a_graph_of_model_and_tools() -> None:
    model = ScriptedModel([SUMS, "3 and 7; the last cannot be."])
    result = await react(model).ainvoke({"messages": [("user", "1 + 2, 3 + 4, and 1 / 0?")]})
    kinds = [message.type for message in result["messages"]]
    assert kinds == ["human", "ai", "tool", "tool", "tool", "ai"]
    assert result["messages"][-1].content == "3 and 7; the last cannot be."
    asked = model.questions[1].messages
    assert [message.role for message in asked] == ["user", "assistant", "tool", "tool", "tool"]
    assert [message.text for message in asked[2:4]] == ["3", "7"]
    assert "division by zero" in asked[4].text


async def test_messages_are_streamed_as_they_come() -> None:
    model = ScriptedModel([SUMS, "Fine."])
    found = [
        (message.text, len(getattr(message, "tool_calls", ())), metadata["langgraph_node"])
        async for message, metadata in react(model).astream({"messages": [("user", "?")]}, stream_mode="messages")
    ]
    assert found[0] == ("", 3, "ask")
    assert found[-1] == ("Fine.", 0, "ask")
    assert [node for _, _, node in found] == ["ask", "tools", "tools", "tools", "ask"]


async def test_a_conversation_goes_on_from_a_checkpoint() -> None:
    model, saver = ScriptedModel([SUMS, "Done.", "It was 3."]), InMemorySaver()
    config = {"configurable": {"thread_id": "t"}}
    paused = react(model, checkpointer=saver, interrupt_before=["tools"])
    await paused.ainvoke({"messages": [("user", "1 + 2?")]}, config)
    await react(model, checkpointer=saver).ainvoke(None, config)
    result = await react(model, checkpointer=saver).ainvoke({"messages": [("user", "What was it?")]}, config)
    assert result["messages"][-1].content == "It was 3."
    assert len(model.questions) == 3


@pytest.mark.parametrize("cut", [1, 2])
def test_a_conversation_that_was_cut_between_call_and_answer_can_be_asked(cut: int) -> None:
    model = ScriptedModel([SUMS, "Fine."])
    bound = chat_model(model).bind_tools([add])
    first = bound.invoke("1 + 2?")
    answers = [ToolMessage(str(n), tool_call_id=call["id"]) for n, call in enumerate(first.tool_calls)][:cut]
    assert bound.invoke([HumanMessage("1 + 2?"), first, *answers, HumanMessage("Never mind.")]).content == "Fine."
    assert [message.role for message in model.questions[1].messages] == [
        "user",
        "assistant",
        *["tool"] * 3,
        "user",
    ]
