"""Faults of small models in queries: each is repaired so that the databases give what was meant, or said."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bolt_server import BoltServer, fill, package
from hypothesis import given
from hypothesis import strategies as st
from library_graph import tables
from sample_graphs import NEEDS_BOLT, hostile, opened

from mulligan.core.errors import QueryError
from mulligan.graphs._guard import read_only
from mulligan.graphs.protocol import EdgeKind, Graph, GraphSchema, NodeKind
from mulligan.graphs.repair import LONGEST, mended_query, repair_query
from mulligan.graphs.repair._text import CLAUSES

HERE = Path(__file__).parent
STUDY = HERE.parents[1] / "studies" / "graph_questions"
SCHEMA = GraphSchema(
    (
        NodeKind("Book", {"id": "STRING", "title": "STRING", "year": "INT64", "genre": "STRING", "shelf": "STRING"}),
        NodeKind("Author", {"id": "STRING", "name": "STRING", "living": "BOOL"}),
        NodeKind("Member", {"id": "STRING", "name": "STRING", "age": "INT64"}),
    ),
    (
        EdgeKind("WROTE", (("Author", "Book"),)),
        EdgeKind("BORROWED", (("Member", "Book"),), {"days": "INT64", "on": "STRING"}),
    ),
    exact=True,
)


@pytest.fixture(scope="module")
def bolt_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    if package() is None:
        pytest.skip(NEEDS_BOLT)
    server = BoltServer(tmp_path_factory.mktemp("library") / "server")
    server.start()
    try:
        fill(server, tables())
        with opened(server.access) as graph:
            yield graph
    finally:
        server.stop()


@pytest.fixture(params=["ladybug_library", pytest.param("bolt_library", marks=pytest.mark.slow)])
def library(request: pytest.FixtureRequest) -> Graph:
    return request.getfixturevalue(request.param)


AUTHORS = "MATCH (a:Author) WHERE %s RETURN a.name"
BOOKS = "MATCH (b:Book) WHERE %s RETURN b.title"
MEMBERS = "MATCH (m:Member) WHERE %s RETURN m.name"
OTHERS = ["Herbert", "Joyce", "Nobody", "Thoreau"]
READ: list[tuple[str, list[str]]] = [
    # what is not there
    (AUTHORS % "NOT EXISTS((a)-[:WROTE]->(:Book))", ["Nobody"]),
    (AUTHORS % "NOT EXISTS((a)-[:WROTE]->(b:Book) WHERE b.year > 1900)", ["Austen", "Nobody", "Thoreau"]),
    (AUTHORS % "NOT EXISTS (MATCH (a)-[:WROTE]->(:Book))", ["Nobody"]),
    (AUTHORS % "NOT EXISTS { (a)-[:WROTE]->(:Book) }", ["Nobody"]),
    (AUTHORS % "NOT EXISTS { MATCH (a)-[:WROTE]->(b:Book) RETURN b }", ["Nobody"]),
    (AUTHORS % "NOT (a)-[:WROTE]->(b:Book)", ["Nobody"]),
    (AUTHORS % "NOT MATCH (a)-[:WROTE]->(:Book)", ["Nobody"]),
    ("MATCH (a:Author) NOT EXISTS { MATCH (a)-[:WROTE]->(:Book) } RETURN a.name", ["Nobody"]),
    ("MATCH (a:Author) OPTIONAL MATCH (a)-[:WROTE]->(b:Book) WHERE b IS NULL RETURN a.name", ["Nobody"]),
    (MEMBERS % "NOT (m)-[:BORROWED]->(b:Book) AND b.year > 1900", ["Cleo"]),
    (MEMBERS % "m.age > 26 AND NOT (m)-[:BORROWED]->(b:Book) AND b.title = 'Emma'", ["Bob"]),
    (MEMBERS % "NOT EXISTS { MATCH (m)-[:BORROWED]->(b:Book) WHERE b.year > 0 } AND b.title = 'Emma'", ["Bob", "Cleo"]),
    (AUTHORS % "NOT exists(a.name)", []),
    (
        "MATCH (m:Member)-[:BORROWED]->(b:Book {title: 'Emma'}) "
        'WHERE NOT EXISTS { MATCH (m)-[:BORROWED]->(:Book {title: "Emma"}) } RETURN m.name',
        ["Bob", "Cleo"],
    ),
    ("MATCH (a:Author)-[:WROTE]->(:Book) WHERE NOT (a)-[:WROTE]->(:Book) RETURN a.name", ["Nobody"]),
    # counts of what is there or not
    (AUTHORS % "size((a)-[:WROTE]->(:Book)) = 0", ["Nobody"]),
    (AUTHORS % "count((a)-[:WROTE]->(:Book)) = 0", ["Nobody"]),
    (AUTHORS % "COUNT { (a)-[:WROTE]->(:Book) } = 0", ["Nobody"]),
    ("MATCH (m:Member)-[:BORROWED]->(b:Book) WITH m, count(b) AS n HAVING n > 1 RETURN m.name", ["Ann"]),
    ("MATCH (m:Member)-[:BORROWED]->(b:Book) WITH m, count(b) AS n GROUP BY m WHERE n > 1 RETURN m.name", ["Ann"]),
    # texts
    (AUTHORS % "a.country != 'England'", OTHERS),
    (AUTHORS % "a.country IS NOT 'England'", OTHERS),
    (AUTHORS % "a.country NOT IN ['England']", OTHERS),
    (AUTHORS % "lower(a.name) NOT CONTAINS 'AUST'", OTHERS),
    (AUTHORS % "a.country IN ('England', 'Ireland') AND a.living == true", ["Austen", "Joyce"]),
    (AUTHORS % "a.country = ['England', 'Ireland']", ["Austen", "Joyce", "Nobody"]),
    ("MATCH (a:Author {country: ['England', 'Ireland'], name: 'Joyce'}) RETURN a.name", ["Joyce"]),
    (AUTHORS % "a.name LIKE '%ust%'", ["Austen"]),
    (AUTHORS % "a.name LIKE 'A_st%n'", ["Austen"]),
    (AUTHORS % "a.name ILIKE '%EAU'", ["Thoreau"]),
    (AUTHORS % "a.name NOT LIKE 'A%'", OTHERS),
    (AUTHORS % "toLower(a.name) = 'Austen'", ["Austen"]),
    (AUTHORS % "a.name = Austen", ["Austen"]),
    (AUTHORS % "a['name'] = 'Austen'", ["Austen"]),
    # numbers and truth values
    ("MATCH (b:Book {year > 1900, genre: 'novel'}) WHERE b.rating > 4 OR b.rating < 1 RETURN b.title", ["Dune"]),
    ("MATCH (:Member)-[:BORROWED {days: > 5}]->(b:Book) RETURN b.title", ["Dune", "Emma"]),
    (BOOKS % "b.year > '1900'", ["Dune", "Ulysses"]),
    (BOOKS % "b.shelf = 40", ["Dune"]),
    (BOOKS % "b.year BETWEEN 1850 AND 1950", ["Ulysses", "Walden"]),
    (BOOKS % "1850 < b.year <= 1922", ["Ulysses", "Walden"]),
    (BOOKS % "b.year > 1,900&&b.rating >= 4.5", ["Dune"]),
    (AUTHORS % "a.living IS FALSE", ["Nobody", "Thoreau"]),
    (AUTHORS % "a.living = 'False'", ["Nobody", "Thoreau"]),
    # owners
    ("MATCH (m:Member)-[:BORROWED]->(:Book) WHERE BORROWED.days > 10 RETURN Member.name", ["Ann"]),
    ("MATCH (m:Member)-[r:BORROWED]->(:Book) WHERE r.on = '2021' RETURN m.name", ["Ann"]),
    # labels
    ("MATCH (Author)-[WROTE]->(b:Book {title: 'Emma'}) RETURN Author.name", ["Austen"]),
    ("MATCH (a.Author) WHERE a.name = 'Joyce' RETURN a.name", ["Joyce"]),
    ("MATCH (Author a {name = 'Joyce'}) RETURN a.name", ["Joyce"]),
    ("MATCH (a:'Author' {'name': 'Joyce'}) RETURN a.name", ["Joyce"]),
    ("MATCH (m:Member) -> (b:Book {title: 'Emma'}) RETURN m.name", ["Ann"]),
    # clauses
    ("MATCH (b:Book), WHERE b.year > 1900 AND WHERE b.rating > 4 RETURN b.title", ["Dune"]),
    ("MATCH (b:Book) WHERE b.year > 1900 WHERE b.rating > 4 RETURN b.title", ["Dune"]),
    ("MATCH (b:Book) RETURN b.title WHERE b.year < 1820 LIMIT 3", ["Emma"]),
    ("MATCH (b:Book) ORDER BY b.year DESC LIMIT 1 RETURN b.title", ["Dune"]),
    ("MATCH (b:Book) RETURN DISTINCT b.title ORDER BY b.rating DESC LIMIT 1", ["Dune"]),
    ("MATCH (b:Book) RETURN DISTINCT(b.genre)", ["essay", "novel"]),
    ("SELECT b.title MATCH (b:Book) WHERE b.year < 1820", ["Emma"]),
    ("MATCH (b:Book) WHERE b.year < 1820 SELECT b.title", ["Emma"]),
    ("MATCH (a:Author) WHERE a.country = 'England';", ["Austen"]),
]

OWNED = [
    ("MATCH (m:Member)-[:BORROWED]->(b:Book) WHERE b.days > 10 RETURN m.name", ["Ann"]),
    ("MATCH (m:Member)-[:BORROWED]->(b:Book {days: 7}) RETURN m.name", ["Ann"]),
    ("MATCH (m:Member)-[:BORROWED]->(:Book) WHERE m.title = 'Emma' RETURN m.name", ["Ann"]),
]
"""A property on the wrong side: only a schema that the database holds its data to tells that it is."""


@pytest.mark.parametrize(("query", "right"), READ, ids=range(len(READ)))
async def test_what_was_meant_is_what_comes_back(library: Graph, query: str, right: list[str]) -> None:
    await check_that_it_means(library, query, right)


@pytest.mark.parametrize(("query", "right"), OWNED, ids=range(len(OWNED)))
async def test_a_property_is_read_from_its_owner(ladybug_library: Graph, query: str, right: list[str]) -> None:
    await check_that_it_means(ladybug_library, query, right)


async def check_that_it_means(library: Graph, query: str, right: list[str]) -> None:
    schema = await library.schema()
    mended = mended_query(query, schema)
    assert mended.changes
    assert not mended.faults
    rows = (await library.run(mended.query)).rows
    assert sorted({value for row in rows for value in row.values()}, key=str) == right, mended.query
    assert mended_query(mended.query, schema).changes == (), "a repaired query has no such fault"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT title FROM Book", "This is SQL"),
        (AUTHORS % "EXISTS (SELECT 1 FROM WROTE)", "This is SQL"),
        ("MATCH (a:Author) RETURN a EXCEPT MATCH (a:Author)-[:WROTE]->() RETURN a", "There is no EXCEPT in Cypher"),
        (AUTHORS % "a.name NOT IN (MATCH (b:Author)-[:WROTE]->() RETURN b.name)", "A query cannot stand behind IN"),
        ("MATCH (a:Author)-[:WROTE]->(b) WHERE COUNT(b) = 0 RETURN a", "COUNT() cannot stand in WHERE"),
        ("MATCH (a:Author)-[:WROTE]->(b) GROUP BY a HAVING count(b) > 1 RETURN a", "count() cannot stand in HAVING"),
        ("MATCH (a:Author)-[w:WROTE]->(b) WHERE w IS NULL RETURN a.name", "w is never null"),
        ("MATCH (a:Author)-[:WROTE]->(b:Book) WHERE b.year > 1900", "The query has no RETURN"),
    ],
)
def test_what_cannot_be_repaired_is_said(query: str, said: str) -> None:
    assert mended_query(query, SCHEMA).faults[0].startswith(said)


def _harmless() -> list[str]:
    lines = (HERE / "harmless.txt").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line and not line.startswith("#")]


OTHER_FORMS = ("EXISTS { (", "COUNT { (", "exists(a.name)", "NOT IN")
"""Queries that some engine reads are written in the form that all do."""


def test_what_is_right_is_left_as_it_is() -> None:
    right = [
        *(query for query in _harmless() if not any(form in query for form in OTHER_FORMS)),
        *(each["query"] for name in ("questions", "questions_b") for each in _read(name)),
        "MATCH (a:Author) WHERE NOT (a)-[:WROTE]->(:Book) RETURN a.name ORDER BY a.name LIMIT 3",
        "MATCH (a:Author) OPTIONAL MATCH (a)-[:WROTE]->(b:Book) WHERE b.year > 1900 RETURN a.name, b.title",
        "MATCH (a:Author)-[:WROTE]->(b:Book)<-[r:BORROWED]-(m:Member) WHERE r.days < 9 AND -5 < b.year RETURN m.age",
        "MATCH (a:Author) WHERE a.name IN $names AND a.living = false RETURN {name: a.name, n: [1, 900]} AS x",
        "MATCH (b:Book) WITH b.genre AS genre, count(*) AS n WHERE n > 1 RETURN genre, n ORDER BY n DESC",
        "MATCH (m:Member)-[:BORROWED]->(b:Book) WHERE NOT EXISTS { MATCH (m)-[:BORROWED]->(:Book {title: 'X'}) } RETURN b",
        "MATCH (b:Book) WHERE lower(b.title) CONTAINS 'emma' AND b.year = 1815 RETURN DISTINCT b.title",
    ]
    changed = {query: repaired.query for query in right if (repaired := repair_query(query, SCHEMA)).changes}
    assert not changed


def _read(name: str) -> list[dict[str, Any]]:
    return json.loads((STUDY / f"{name}.json").read_text(encoding="utf-8"))["questions"]


def test_what_writes_is_refused_after_a_repair_as_before_it() -> None:
    tried = 0
    for fate, query in hostile(HERE / "hostile.txt"):
        repaired = repair_query(query, SCHEMA)
        if fate == "refused" and repaired.query != query and _is_refused(query):
            tried += 1
            assert _is_refused(repaired.query), query
    assert tried > 5
    writes = "MATCH (a:Author)-[w:WROTE]->(b) DELETE w"
    assert mended_query(writes, SCHEMA).faults == (), "the guard says what is wrong with it"


def _is_refused(query: str) -> bool:
    try:
        read_only(query)
    except QueryError:
        return True
    return False


WORDS = [
    *sorted(CLAUSES),
    *[
        "NOT",
        "AND",
        "OR",
        "IN",
        "EXISTS",
        "COUNT",
        "IS",
        "NULL",
        "LIKE",
        "BETWEEN",
        "DISTINCT",
        "BY",
        "AS",
        "size",
        "lower",
    ],
]
SIGNS = [*"()[]{},.:;=<>!&|-*", "'a'", "7", "1,900", "b", "Book", "title", "WROTE", "(b:Book)", "-[:WROTE]->", "b.year"]


@given(st.lists(st.sampled_from([*WORDS, *SIGNS]), max_size=30), st.sampled_from(["", " "]))
def test_any_text_is_repaired_in_one_way(words: list[str], between: str) -> None:
    query = between.join(["MATCH ", *words])
    once = repair_query(query, SCHEMA)
    assert once == repair_query(query, SCHEMA)
    assert bool(once.changes) == (once.query != query)


def test_a_very_long_query_is_left_to_the_database() -> None:
    query = f"MATCH (b:Book) WHERE b.title != '{'x' * LONGEST}' RETURN b"
    assert repair_query(query, SCHEMA).query == query
