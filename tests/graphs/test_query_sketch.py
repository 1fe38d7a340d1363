"""The query that a question's words compose: right wherever every word has its place, on graphs that no study asks."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from each_row import each_row
from graph_questions import QUESTIONS, opened
from hypothesis import given
from hypothesis import strategies as st

from mulligan.graphs.protocol import EdgeKind, Graph, GraphSchema, NodeKind
from mulligan.graphs.query_sketch import Sketch, sketch_of
from mulligan.graphs.query_text import QueryText
from mulligan.graphs.question_checks import GraphQuestion, literal
from mulligan.graphs.values import Link, Links, link_values


@pytest.fixture(scope="module", params=QUESTIONS)
def asked_graph(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Graph]]:
    with opened(request.param, tmp_path_factory.mktemp(request.param)) as graph:
        yield request.param, graph


async def sketched(graph: Graph, question: str) -> Sketch | None:
    schema = await graph.schema()
    return sketch_of(GraphQuestion(question, schema, await link_values(graph, schema, question, seconds=60)))


def values_of(rows: Sequence[Mapping[str, Any]]) -> set[tuple[str, ...]]:
    return {tuple(sorted(map(str, row.values()))) for row in rows}


@pytest.mark.slow
@pytest.mark.light_cases(1)
async def test_a_query_in_which_every_word_has_its_place_is_right(asked_graph: tuple[str, Graph]) -> None:
    name, graph = asked_graph
    right, wrong = 0, list[str]()
    for question, query in QUESTIONS[name]:
        sketch = await sketched(graph, question)
        if sketch is None or sketch.unread:
            continue
        made = (await graph.run(sketch.query)).rows
        if values_of(made) == values_of((await graph.run(query)).rows):
            right += 1
        else:
            wrong.append(f"{question} {sketch.query}")
    assert (right, wrong) == ({"library": 31, "movies": 29, "fleet": 21, "services": 26, "orchards": 19}[name], [])


NODES = (
    NodeKind(
        "Person",
        {
            "name": "STRING",
            "id": "STRING",
            "age": "INT64",
            "nationality": "STRING",
            "retired": "BOOL",
            "aliases": "STRING[]",
        },
    ),
    NodeKind("Club", {"name": "STRING", "founded": "INT64", "city": "STRING"}),
    NodeKind("Cup", {"name": "STRING", "given": "DATE"}),
)
EDGES = (
    EdgeKind("PLAYS_FOR", (("Person", "Club"),), {"goals": "INT64", "position": "STRING"}),
    EdgeKind("COACHES", (("Person", "Person"),)),
    EdgeKind("MEETS_WITH", (("Person", "Person"),)),
    EdgeKind("WON", (("Club", "Cup"),), {"year": "INT64"}),
)
SCHEMA = GraphSchema(NODES, EDGES, True)
ADA, UNION = Link("Ada", "Person", "name", "Ada"), Link("Union", "Club", "name", "Union")
BO, SILVER = Link("Bo", "Person", "name", "Bo"), Link("Silver", "Cup", "name", "Silver")
P7, ACE = Link("p7", "Person", "id", "p7"), Link("Ace", "Person", "aliases", "Ace", is_listed=True)
DEFENDING = Link("defending", "PLAYS_FOR", "position", "defender")
DUTCH, GOLD = Link("Dutch", "Person", "nationality", "Dutch"), Link("Gold", "Cup", "name", "Gold")


def query_of(question: str, *links: Link, unread: tuple[str, ...] = ()) -> str:
    sketch = sketch_of(GraphQuestion(question, SCHEMA, Links(links)))
    assert sketch is None or sketch.unread == unread
    return sketch.query if sketch else ""


@each_row(
    ("question", "links", "query"),
    [
        ("Who coaches Ada?", [ADA], 'MATCH (x:Person)-[:COACHES]->(:Person {name: "Ada"}) RETURN DISTINCT x.name'),
        ("By whom is Ada coached?", [ADA], 'MATCH (x:Person)-[:COACHES]->(:Person {name: "Ada"}) RETURN DISTINCT x.name'),
        ("Whom does Ada coach?", [ADA], 'MATCH (x:Person)<-[:COACHES]-(:Person {name: "Ada"}) RETURN DISTINCT x.name'),
        ("Which persons are coached by nobody?", [], "MATCH (x:Person) WHERE NOT EXISTS { MATCH (x)<-[:COACHES]-(:Person) } RETURN DISTINCT x.name"),
        ("Which persons coach nobody?", [], "MATCH (x:Person) WHERE NOT EXISTS { MATCH (x)-[:COACHES]->(:Person) } RETURN DISTINCT x.name"),
        ("Which clubs have not won Gold?", [GOLD], 'MATCH (x:Club) WHERE NOT EXISTS { MATCH (x)-[:WON]->(:Cup {name: "Gold"}) } RETURN DISTINCT x.name'),
        ("Which persons of Union are not Dutch?", [UNION, DUTCH], 'MATCH (x:Person)-[:PLAYS_FOR]->(:Club {name: "Union"}) WHERE x.nationality <> "Dutch" RETURN DISTINCT x.name'),
        ("Which persons are not retired?", [], "MATCH (x:Person) WHERE NOT x.retired RETURN DISTINCT x.name"),
        ("How many Dutch persons have an age over 30?", [DUTCH], 'MATCH (x:Person {nationality: "Dutch"}) WHERE x.age > 30 RETURN count(DISTINCT x)'),
        ("Which clubs were founded between 1,900 and 1950?", [], "MATCH (x:Club) WHERE x.founded >= 1900 AND x.founded <= 1950 RETURN DISTINCT x.name"),
        ("Which persons of Union have at least 9 goals?", [UNION], 'MATCH (x:Person)-[r1:PLAYS_FOR]->(:Club {name: "Union"}) WHERE r1.goals >= 9 RETURN DISTINCT x.name'),
        ("Which clubs won more than two cups?", [], "MATCH (x:Club)-[:WON]->(y1:Cup) WITH x, count(DISTINCT y1) AS n WHERE n > 2 RETURN DISTINCT x.name"),
        ("Which club won the most cups?", [], "MATCH (x:Club)-[:WON]->(y1:Cup) WITH x, count(DISTINCT y1) AS n RETURN x.name ORDER BY n DESC LIMIT 1"),
        ("Which three persons have the most goals?", [], "MATCH (x:Person)-[r1:PLAYS_FOR]->(:Club) WITH x, max(r1.goals) AS n RETURN x.name ORDER BY n DESC LIMIT 3"),
        ("What is the average age of Dutch persons?", [DUTCH], 'MATCH (x:Person {nationality: "Dutch"}) RETURN avg(x.age)'),
        ("What is the average age of the persons of clubs that won Gold?", [GOLD], 'MATCH (x:Person)-[:PLAYS_FOR]->(:Club)-[:WON]->(:Cup {name: "Gold"}) WITH DISTINCT x RETURN avg(x.age)'),
        ("Which persons does both Ada and Bo coach?", [ADA, BO], 'MATCH (x:Person)<-[:COACHES]-(:Person {name: "Ada"}), (x)<-[:COACHES]-(:Person {name: "Bo"}) RETURN DISTINCT x.name'),
        ("Which clubs won both Gold and Silver?", [GOLD, SILVER], 'MATCH (x:Club)-[:WON]->(:Cup {name: "Gold"}), (x)-[:WON]->(:Cup {name: "Silver"}) RETURN DISTINCT x.name'),
        ("Which cups were given in 1990?", [], "MATCH (x:Cup) WHERE x.given >= date('1990-01-01') AND x.given <= date('1990-12-31') RETURN DISTINCT x.name"),
        ("Which cups were given in 1990 or later?", [], "MATCH (x:Cup) WHERE x.given >= date('1990-01-01') RETURN DISTINCT x.name"),
        ("Which cups were given after 1990?", [], "MATCH (x:Cup) WHERE x.given > date('1990-12-31') RETURN DISTINCT x.name"),
        ("Which clubs won two or more cups?", [], "MATCH (x:Club)-[:WON]->(y1:Cup) WITH x, count(DISTINCT y1) AS n WHERE n >= 2 RETURN DISTINCT x.name"),
        ("In which city is Union?", [UNION], 'MATCH (x:Club {name: "Union"}) RETURN x.city'),
        ("When was Union founded?", [UNION], 'MATCH (x:Club {name: "Union"}) RETURN x.founded'),
        ("Which cups were given before 1990-07-01?", [], "MATCH (x:Cup) WHERE x.given < date('1990-07-01') RETURN DISTINCT x.name"),
        ("Which cups were given on 1990-07-01?", [], "MATCH (x:Cup) WHERE x.given = date('1990-07-01') RETURN DISTINCT x.name"),
        ("Who meets with Ada?", [ADA], 'MATCH (x:Person)-[:MEETS_WITH]-(:Person {name: "Ada"}) RETURN DISTINCT x.name'),
        ("Which persons meet with p7?", [P7], 'MATCH (x:Person)-[:MEETS_WITH]-(:Person {id: "p7"}) RETURN DISTINCT x.id'),
        ("Which persons are coached both by Ada and by Bo?", [ADA, BO], 'MATCH (x:Person)<-[:COACHES]-(:Person {name: "Ada"}), (x)<-[:COACHES]-(:Person {name: "Bo"}) RETURN DISTINCT x.name'),
        ("Which persons that coach Bo do not play for Union?", [BO, UNION], 'MATCH (x:Person)-[:COACHES]->(:Person {name: "Bo"}) WHERE NOT EXISTS { MATCH (x)-[:PLAYS_FOR]->(:Club {name: "Union"}) } RETURN DISTINCT x.name'),
        ("Which persons coached by Ada belong to no club?", [ADA], 'MATCH (x:Person)<-[:COACHES]-(:Person {name: "Ada"}) WHERE NOT EXISTS { MATCH (x)-[:PLAYS_FOR]->(:Club) } RETURN DISTINCT x.name'),
        ("Which person has the alias Ace?", [ACE], 'MATCH (x:Person) WHERE "Ace" IN x.aliases RETURN DISTINCT x.name'),
        ("Which clubs does Ace play for?", [ACE], 'MATCH (x:Club)<-[:PLAYS_FOR]-(y1:Person) WHERE "Ace" IN y1.aliases RETURN DISTINCT x.name'),
        ("Which persons are of clubs that won Gold?", [GOLD], 'MATCH (x:Person)-[:PLAYS_FOR]->(:Club)-[:WON]->(:Cup {name: "Gold"}) RETURN DISTINCT x.name'),
    ],
)  # fmt: skip
def test_a_question_is_composed_from_what_its_words_say(question: str, links: list[Link], query: str) -> None:
    assert query_of(question, *links) == query


@each_row(
    ("question", "links"),
    [
        ("Who is older than 30?", []),
        ("Which old clubs won Gold?", [GOLD, Link("old", "Person", "name", "old"), Link("old", "Cup", "name", "old")]),
        ("Which players are Dutch?", [DUTCH]),
        ("How many persons of each club are Dutch?", [DUTCH]),
        ("Which persons or clubs are of Union?", [UNION]),
        ("Which persons have an age over 30 and under 40?", []),
        ("Which persons coach?", []),
        ("Which persons of clubs that won Gold does Ada coach?", [GOLD, ADA]),
        ("Which is the best club?", []),
        ("Does Ada coach Bo?", [ADA, BO]),
        ("Which clubs won Gold or Silver?", [GOLD, SILVER]),
        ("Which cups were given before 90?", []),
        ("Which cups were given before July?", []),
        ("Which clubs were founded before 1990-07-01?", []),
        ("Which clubs won the cup bronze?", []),
        ("Which persons play for Union without defending?", [UNION, DEFENDING]),
        ("Which clubs does Ace not play for?", [ACE]),
        ("", []),
    ],
)
def test_where_the_words_leave_a_choice_there_is_no_sketch(question: str, links: list[Link]) -> None:
    assert query_of(question, *links) == ""


def test_words_without_a_place_are_named() -> None:
    query = 'MATCH (x:Club)<-[:PLAYS_FOR]-(:Person {name: "Ada"}) RETURN DISTINCT x.name'
    assert query_of("Which clubs signed Ada?", ADA, unread=("signed",)) == query
    assert query_of("Which clubs proudly signed famous Ada?", ADA) == ""
    assert query_of("Which famous clubs signed Ada?", ADA) == "", "it would leave out what famous says"


def test_where_values_could_not_be_looked_up_there_is_no_sketch() -> None:
    assert sketch_of(GraphQuestion("Who coaches Ada?", SCHEMA, Links((ADA,), left_out=("Club.city",)))) is None


def test_a_graph_of_many_kinds_is_given_up() -> None:
    labels = [f"Kind{chr(65 + n)}" for n in range(20)]
    nodes = tuple(NodeKind(label, {"name": "STRING"}) for label in labels)
    edges = tuple(EdgeKind(f"R{n}", (pair,)) for n, pair in enumerate(combinations(labels, 2)))
    links = Links((Link("Jo", "KindS", "name", "Jo"), Link("Mo", "KindT", "name", "Mo")))
    assert (
        sketch_of(GraphQuestion("Which kind as of Jo and of Mo have a kind b?", GraphSchema(nodes, edges), links))
        is None
    )


WORDS = [
    "which",
    "what",
    "who",
    "whom",
    "how",
    "many",
    "list",
    "when",
    "is",
    "are",
    "does",
    "not",
    "no",
    "nobody",
    "without",
    "both",
    "and",
    "or",
    "each",
    "the",
    "most",
    "highest",
    "three",
    "over",
    "between",
    "1990",
    "5",
    "at",
    "least",
    "average",
    "total",
    "by",
    "of",
    "person",
    "persons",
    "club",
    "clubs",
    "cup",
    "cups",
    "coach",
    "coached",
    "coaches",
    "plays",
    "won",
    "age",
    "goals",
    "given",
    "founded",
    "retired",
    "city",
    "Ada",
    "Bo",
    "Union",
    "Gold",
    "Silver",
    "Dutch",
    "meet",
    "with",
    "1990-07-01",
    "alias",
    "Ace",
    "p7",
    "signed",
    "old",
    "or",
    "later",
    "?",
    "'",
    '"',
    ",",
]


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.sets(st.sampled_from((ADA, BO, P7, ACE, UNION, DUTCH, GOLD, SILVER))),
)
def test_any_words_give_one_query_that_reads_or_none(words: list[str], links: set[Link]) -> None:
    question = " ".join(words)
    named = tuple(link for link in links if link.words in words)
    sketch = sketch_of(GraphQuestion(question, SCHEMA, Links(named)))
    if sketch is not None:
        assert QueryText(sketch.query).returned
        assert all(literal(link.value) in sketch.query for link in named), "every value has its place"
