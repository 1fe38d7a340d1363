"""A question that is given up takes its query with it: the next one to the same graph need not wait for it."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from graph_agents import EMPTY, GOOD, REGULATED, Chat, draft, revision

from mulligan.graphs.opening import open_graph
from mulligan.graphs.protocol import Graph, Rows
from mulligan.langgraph import KGQueryReflexionAgent

SECONDS = 20.0
ENDLESS = "MATCH (a:Gene), (b:Gene), (c:Gene), (d:Gene) WHERE a.length + b.length > c.length * d.length RETURN count(*)"


class Watched:
    """A graph that says when it is asked."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self.asked = graph, asyncio.Event()
        self.name, self.language, self.notes = graph.name, graph.language, graph.notes
        self.schema, self.close = graph.schema, graph.close

    async def run(self, query: str, parameters: Mapping[str, Any] | None = None, **given: Any) -> Rows:
        self.asked.set()
        return await self._graph.run(query, parameters, **given)


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("way", ["aexecute", "ainvoke"])
async def test_a_question_that_is_cancelled_takes_its_query_with_it(way: str, kg: Path) -> None:
    graph = Watched(open_graph(kg))
    agent = KGQueryReflexionAgent(Chat([draft(ENDLESS)]), graph, seconds=SECONDS)
    try:
        asking = asyncio.ensure_future(
            agent.aexecute("How many?", "-")
            if way == "aexecute"
            else agent.graph("-").compile().ainvoke({"messages": [("user", "How many?")]})
        )
        await asyncio.wait_for(graph.asked.wait(), 30)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await asyncio.wait_for(graph.run(EMPTY), SECONDS / 2)).rows == ()
    finally:
        await agent.aclose()
        await graph.close()


@pytest.mark.slow
async def test_a_query_that_never_ends_goes_back_to_the_model_and_the_next_one_works(where: Any) -> None:
    chat = Chat([draft(ENDLESS), revision(1, GOOD), revision(9)])
    agent = KGQueryReflexionAgent(chat, where, seconds=2, store=False)
    try:
        result = await agent.aexecute("Which genes does EOMES regulate?", "-")
    finally:
        await agent.aclose()
    assert "The query was stopped after 2 s. Make it smaller" in chat.asked[1][-1].text
    assert (result.answer, result.tool_result, result.stop) == (GOOD, REGULATED, "solved")
