"""Right queries to graphs that no rule was made for are not objected to, and wrong ones are: with their real rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from graph_questions import QUESTIONS, opened

from mulligan.graphs.protocol import Graph, Rows
from mulligan.langgraph.querying import Querying

OBJECTED = {
    "List the titles of all books by Irish authors.",
    "Who acted in a movie that Jacques Tati directed?",
    "Orchards that grow some pear and took first place in a taste contest",
    "In which towns can I find stalls of the orchard Noor Rahimi owns?",
}
"""The questions whose right query is objected to all the same."""
WRONG = (
    ("Which movies are in French?", "MATCH (m:Movie) RETURN m.title"),
    ("Which French movies are longer than 123 minutes?", "MATCH (m:Movie) WHERE m.runtime > 123 RETURN m.title"),
    ("Who directed Alien?", "MATCH (p:Person)-[:ACTED_IN]->(:Movie {title: 'Alien'}) RETURN p.name"),
    ("Who acted in a movie that Jacques Tati directed?", "MATCH (:Person {name: 'Jacques Tati'})-[:ACTED_IN]->(m:Movie) RETURN m.title"),
    ("Which studios have produced no movie?", "MATCH (:Movie)-[:PRODUCED_BY]->(s:Studio) RETURN s.name"),
    ("How many movies did Fox produce?", "MATCH (m:Movie) RETURN count(m)"),
    ("Which movie had the largest budget?", "MATCH (m:Movie)-[r:PRODUCED_BY]->(:Studio) RETURN m.title ORDER BY m.runtime DESC LIMIT 1"),
    ("Which movies had a budget over 15?", "MATCH (m:Movie) WHERE m.runtime > 15 RETURN m.title"),
    ("When was Audrey Tautou born?", "MATCH (p:Person {name: 'Audrey Tautou'}) RETURN p.name"),
    ("Who admires Ridley Scott?", "MATCH (:Person {name: 'Ridley Scott'})-[:ADMIRES]->(p:Person) RETURN p.name"),
    ("Which persons are admired by nobody?", "MATCH (:Person)-[:ADMIRES]->(p:Person) RETURN p.name"),
    ("In which cities were comedies produced?", "MATCH (m:Movie)-[:PRODUCED_BY]->(s:Studio) RETURN DISTINCT s.city"),
    ("What is the longest movie in French?", "MATCH (m:Movie {language: 'French'}) RETURN m.title"),
    ("Which movies were released between 1970 and 2000?", "MATCH (m:Movie) WHERE m.released >= 1970 RETURN m.title"),
)  # fmt: skip


@pytest.fixture(scope="module", params=QUESTIONS)
def asked_graph(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Graph]]:
    with opened(request.param, tmp_path_factory.mktemp(request.param)) as graph:
        yield request.param, graph


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with opened("movies", tmp_path_factory.mktemp("movies")) as graph:
        yield graph


async def objections(graph: Graph, question: str, query: str) -> Any:
    async def found(query: str) -> Rows:
        return await graph.run(query)

    asked = await Querying(graph, found, is_own=lambda: True, judged=True).asked(query, question)
    assert "error" not in asked
    return [*asked.get("objections", ()), *asked.get("doubts", ())]


@pytest.mark.slow
@pytest.mark.light_cases(1)
async def test_nothing_speaks_against_a_right_query(asked_graph: tuple[str, Graph]) -> None:
    name, graph = asked_graph
    found = {question: await objections(graph, question, query) for question, query in QUESTIONS[name]}
    assert {question for question, said in found.items() if said} == OBJECTED & set(found), found


@pytest.mark.light_cases(2)
@pytest.mark.parametrize(("question", "query"), WRONG)
async def test_something_speaks_against_a_wrong_query(movies: Graph, question: str, query: str) -> None:
    assert await objections(movies, question, query) != []
