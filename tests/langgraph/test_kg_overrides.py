"""Subclasses of `KGQueryReflexionAgent` that ask a database of their own, as code written for the seed may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from graph_agents import EMPTY, GOOD, REGULATED, Chat, Conversation, draft, revision

from mulligan.core.errors import GraphError
from mulligan.graphs.protocol import Graph
from mulligan.langgraph import KGQueryReflexionAgent

QUESTION, PROMPT = "Which genes does EOMES regulate?", "The graph has genes."
NOWHERE = {"host": "127.0.0.1", "port": "1"}
ROWS = [{"name": "from elsewhere"}]


def asked(kind: type[KGQueryReflexionAgent], where: Any, *replies: Any, **given: Any) -> tuple[Any, Any, Chat]:
    chat = Chat(replies)
    agent = kind(lambda: Conversation(chat), where, store=False, **given)
    result = agent.execute(QUESTION, PROMPT)
    agent.close()
    return result, agent, chat


ANSWERS: list[Any] = [[([], None), (ROWS, {"nodes": 1})], [[], ROWS], [(None, None), (ROWS, None)]]


class Driver:
    def __init__(self, answers: list[Any]) -> None:
        self.answers, self.queries = answers, list[str]()

    def query(self, query: str) -> Any:
        self.queries.append(query)
        return self.answers[len(self.queries) - 1]


class OwnQueries(KGQueryReflexionAgent):
    """`_query_graph_database` as the seed's code has it: rows and a summary, or [] where it failed."""

    answers: Any = ()
    queries: tuple[str, ...] = ()

    def _query_graph_database(self, query: str) -> Any:
        self.queries = (*self.queries, query)
        return self.answers[len(self.queries) - 1]


class OwnDriver(KGQueryReflexionAgent):
    """`_connect_db` as the seed's code has it."""

    answers: Any = ()
    connected = 0

    def _connect_db(self) -> None:
        if self.neodriver is None:
            self.connected += 1
            self.neodriver = Driver([*self.answers])


@pytest.mark.parametrize("kind", [OwnQueries, OwnDriver])
@pytest.mark.parametrize(
    "answers",
    ANSWERS,
    ids=["as neo4j_utils", "rows alone", "refused"],
)
def test_a_database_of_its_own_is_asked(kind: Any, answers: list[Any]) -> None:
    own = type("Own", (kind,), {"answers": answers})
    result, agent, chat = asked(own, NOWHERE, draft(EMPTY), revision(1, GOOD), revision(9))
    assert (result.answer, result.tool_result, result.stop) == (GOOD, ROWS, "solved")
    assert [*(agent.queries if kind is OwnQueries else agent.neodriver.queries)] == [EMPTY, GOOD]
    assert len(chat.asked) == 3


def test_it_is_connected_once() -> None:
    own = type("Own", (OwnDriver,), {"answers": [[], ROWS]})
    assert asked(own, NOWHERE, draft(EMPTY), revision(1, GOOD), revision(9))[1].connected == 1


def test_a_query_may_be_changed_before_ours_is_asked(graph: Graph) -> None:
    class Corrected(KGQueryReflexionAgent):
        def _query_graph_database(self, query: str) -> Any:
            return super()._query_graph_database(query.replace("nobody", "EOMES"))

    result, _, _ = asked(Corrected, graph, draft(EMPTY), revision(9))
    assert (result.answer, result.tool_result) == (EMPTY, [{"name": "EOMES"}])


def test_rows_of_its_own_are_capped_and_made_json(graph: Graph) -> None:
    answers = [[{"at": Path("x"), "n": {"deep": (1, 2)}}] * 5]
    result, _, _ = asked(type("Own", (OwnQueries,), {"answers": answers}), graph, draft(GOOD), revision(9), rows=2)
    assert result.tool_result == [{"at": "x", "n": {"deep": [1, 2]}}] * 2
    assert result.note == "there are more than 2 rows"


def test_queries_of_its_own_may_be_asynchronous() -> None:
    class Later(KGQueryReflexionAgent):
        async def _query_graph_database(self, query: str) -> Any:
            return ROWS

    assert asked(Later, NOWHERE, draft(GOOD), revision(9))[0].tool_result == ROWS


def unasked(question: str) -> str:
    pytest.fail(f"a prompt was made for {question}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "prompt", [unasked, *(pytest.param(prompt, marks=pytest.mark.slow) for prompt in (PROMPT, None))]
)
async def test_a_database_that_cannot_be_reached_is_found_before_the_model_is_asked(prompt: Any) -> None:
    chat = Chat([])
    agent = KGQueryReflexionAgent(lambda: Conversation(chat), NOWHERE, store=False)
    for _ in range(2):
        with pytest.raises(GraphError, match="cannot be reached"):
            await agent.aexecute(QUESTION, prompt)
    await agent.aclose()
    assert chat.asked == []


def test_ours_is_as_it_was(graph: Graph) -> None:
    result, agent, _ = asked(KGQueryReflexionAgent, graph, draft(GOOD), revision(9))
    assert result.tool_result == REGULATED
    assert agent.neodriver is None
