"""What a graph says of its input and output: to a LangGraph server, and as a tool of another agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from graph_agents import GOOD, draft, revision
from langchain_core.messages import HumanMessage
from reflexion_graphs import a_graph, chat


@pytest.fixture(params=["create_reflexion_graph", "KGQueryReflexionAgent"])
def graph(request: pytest.FixtureRequest, kg: Path, agent_on: Any) -> Any:
    if request.param == "create_reflexion_graph":
        return a_graph(chat(8), store=False)
    agent, _ = agent_on(str(kg), draft(GOOD), revision(9), store=False)
    return agent.graph("The graph has genes.").compile()


def test_a_server_is_told_what_goes_in_and_what_comes_out(graph: Any) -> None:
    given, found = graph.get_input_jsonschema(), graph.get_output_jsonschema()
    assert [*given["properties"]] == ["messages"]
    assert {*found["properties"]} == {"messages", "reflexion"}
    result = found["$defs"]["ReflexionResult"]["properties"]
    assert {"answer", "tool_result", "score", "solved", "stop", "detail"} <= {*result}
    assert "unconfirmed" in str(result["stop"])
    assert {"HumanMessage", "AIMessage", "ToolMessage"} <= {*given["$defs"]}


QUESTION = "Which genes does EOMES regulate?"


@pytest.mark.light_cases(3)
@pytest.mark.filterwarnings("ignore:This API is in beta")
@pytest.mark.parametrize(
    "message",
    [("user", QUESTION), HumanMessage(QUESTION), {"role": "user", "content": QUESTION}, {"type": "human", "content": QUESTION}],
    ids=["pair", "message", "role", "type"],
)  # fmt: skip
def test_a_graph_is_a_tool(graph: Any, message: Any) -> None:
    tool = graph.as_tool(name="ask", description="Answers a question.")
    assert [*tool.args] == ["messages"]
    found = tool.invoke({"messages": [message]})
    assert found["reflexion"]["solved"]
