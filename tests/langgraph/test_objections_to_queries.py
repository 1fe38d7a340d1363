"""Right queries to a graph that no rule was made for are not objected to, and wrong ones are: with their real rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from movie_graph import tables
from sample_graphs import loaded

from mulligan.graphs.protocol import Graph, Rows
from mulligan.langgraph.querying import Querying

RIGHT = (
    ("Which movies are in French?", "MATCH (m:Movie {language: 'French'}) RETURN m.title"),
    ("Which French movies are longer than 123 minutes?", "MATCH (m:Movie) WHERE m.language = 'French' AND m.runtime > 123 RETURN m.title"),
    ("Which movies were released after 1990?", "MATCH (m:Movie) WHERE m.released > 1990 RETURN m.title"),
    ("How long is Heat?", "MATCH (m:Movie {title: 'Heat'}) RETURN m.runtime"),
    ("What is the runtime of Alien?", "MATCH (m:Movie {title: 'Alien'}) RETURN m.runtime"),
    ("Who directed Alien?", "MATCH (p:Person)-[:DIRECTED]->(:Movie {title: 'Alien'}) RETURN p.name"),
    ("Who both directed and acted in the same movie?", "MATCH (p:Person)-[:DIRECTED]->(m:Movie), (p)-[:ACTED_IN]->(m) RETURN p.name"),
    ("Which role did Sigourney Weaver play in Alien?", "MATCH (:Person {name: 'Sigourney Weaver'})-[r:ACTED_IN]->(:Movie {title: 'Alien'}) RETURN r.role"),
    ("Who played Ripley?", "MATCH (p:Person)-[:ACTED_IN {role: 'Ripley'}]->(:Movie) RETURN p.name"),
    ("In which movie is Hulot a role?", "MATCH (:Person)-[:ACTED_IN {role: 'Hulot'}]->(m:Movie) RETURN m.title"),
    ("Which studios have produced no movie?", "MATCH (s:Studio) WHERE NOT EXISTS { MATCH (:Movie)-[:PRODUCED_BY]->(s) } RETURN s.name"),
    ("Which movies were not produced by any studio?", "MATCH (m:Movie) WHERE NOT EXISTS { MATCH (m)-[:PRODUCED_BY]->(:Studio) } RETURN m.title"),
    ("How many movies did Fox produce?", "MATCH (m:Movie)-[:PRODUCED_BY]->(:Studio {name: 'Fox'}) RETURN count(DISTINCT m)"),
    ("What is the total budget of Fox?", "MATCH (:Movie)-[r:PRODUCED_BY]->(:Studio {name: 'Fox'}) RETURN sum(r.budget)"),
    ("Which movie had the largest budget?", "MATCH (m:Movie)-[r:PRODUCED_BY]->(:Studio) RETURN m.title ORDER BY r.budget DESC LIMIT 1"),
    ("Which movies had a budget over 15?", "MATCH (m:Movie)-[r:PRODUCED_BY]->(:Studio) WHERE r.budget > 15 RETURN m.title"),
    ("Which actors are American?", "MATCH (p:Person)-[:ACTED_IN]->(:Movie) WHERE p.nationality = 'American' RETURN DISTINCT p.name"),
    ("Which persons were born before 1940?", "MATCH (p:Person) WHERE p.born < 1940 RETURN p.name"),
    ("When was Audrey Tautou born?", "MATCH (p:Person {name: 'Audrey Tautou'}) RETURN p.born"),
    ("What nationality does the director of Playtime have?", "MATCH (p:Person)-[:DIRECTED]->(:Movie {title: 'Playtime'}) RETURN p.nationality"),
    ("Whom does Audrey Tautou admire?", "MATCH (:Person {name: 'Audrey Tautou'})-[:ADMIRES]->(p:Person) RETURN p.name"),
    ("Who admires Ridley Scott?", "MATCH (p:Person)-[:ADMIRES]->(:Person {name: 'Ridley Scott'}) RETURN p.name"),
    ("Which persons are admired by nobody?", "MATCH (p:Person) WHERE NOT EXISTS { MATCH (:Person)-[:ADMIRES]->(p) } RETURN p.name"),
    ("Which comedies did Gaumont produce?", "MATCH (m:Movie {genre: 'comedy'})-[:PRODUCED_BY]->(:Studio {name: 'Gaumont'}) RETURN m.title"),
    ("Which studio produced the most movies?", "MATCH (m:Movie)-[:PRODUCED_BY]->(s:Studio) WITH s, count(m) AS n RETURN s.name ORDER BY n DESC LIMIT 1"),
    ("Which studios are in Paris?", "MATCH (s:Studio {city: 'Paris'}) RETURN s.name"),
    ("In which city is Gaumont?", "MATCH (s:Studio {name: 'Gaumont'}) RETURN s.city"),
    ("In which cities were comedies produced?", "MATCH (:Movie {genre: 'comedy'})-[:PRODUCED_BY]->(s:Studio) RETURN DISTINCT s.city"),
    ("How many persons acted in comedies?", "MATCH (p:Person)-[:ACTED_IN]->(:Movie {genre: 'comedy'}) RETURN count(DISTINCT p)"),
    ("What is the longest movie in French?", "MATCH (m:Movie {language: 'French'}) RETURN m.title ORDER BY m.runtime DESC LIMIT 1"),
    ("Which is the oldest movie?", "MATCH (m:Movie) RETURN m.title ORDER BY m.released LIMIT 1"),
    ("List the three longest movies.", "MATCH (m:Movie) RETURN m.title ORDER BY m.runtime DESC LIMIT 3"),
    ("Which movies were released between 1970 and 2000?", "MATCH (m:Movie) WHERE m.released >= 1970 AND m.released <= 2000 RETURN m.title"),
    ("How many movies are there in each language?", "MATCH (m:Movie) RETURN m.language, count(m)"),
    ("What is the average runtime of English movies?", "MATCH (m:Movie {language: 'English'}) RETURN avg(m.runtime)"),
    ("Did Ridley Scott direct Heat?", "MATCH (p:Person {name: 'Ridley Scott'})-[:DIRECTED]->(m:Movie {title: 'Heat'}) RETURN count(m) > 0 AS directed"),
    ("Give me the names and birth years of all French persons.", "MATCH (p:Person {nationality: 'French'}) RETURN p.name, p.born"),
    ("Which movies without a director are in English?", "MATCH (m:Movie {language: 'English'}) WHERE NOT EXISTS { MATCH (:Person)-[:DIRECTED]->(m) } RETURN m.title"),
    ("Which persons with American nationality acted in Heat?", "MATCH (p:Person {nationality: 'American'})-[:ACTED_IN]->(:Movie {title: 'Heat'}) RETURN p.name"),
    ("Which movies does Fox not have?", "MATCH (m:Movie) WHERE NOT EXISTS { MATCH (m)-[:PRODUCED_BY]->(:Studio {name: 'Fox'}) } RETURN m.title"),
)  # fmt: skip
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
    ("What is the average runtime of English movies?", "MATCH (m:Movie {language: 'English'}) RETURN m.runtime"),
)  # fmt: skip


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with loaded(tables(), tmp_path_factory.mktemp("movies")) as graph:
        yield graph


async def objections(movies: Graph, question: str, query: str) -> list[str]:
    async def found(query: str) -> Rows:
        return await movies.run(query)

    querying = Querying(movies, found, is_own=lambda: True, judged=True)
    about = await querying.about(question)
    return about.objections(query, (await movies.run(query)).rows)


@pytest.mark.parametrize(("question", "query"), RIGHT)
async def test_nothing_speaks_against_a_right_query(movies: Graph, question: str, query: str) -> None:
    assert await objections(movies, question, query) == []


@pytest.mark.parametrize(("question", "query"), WRONG)
async def test_something_speaks_against_a_wrong_query(movies: Graph, question: str, query: str) -> None:
    assert await objections(movies, question, query) != []
