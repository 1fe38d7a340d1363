"""What the words of a question ask for, and what speaks against a query and its rows."""

from typing import Any

from each_row import each_row

from mulligan.graphs.protocol import EdgeKind, GraphSchema, NodeKind
from mulligan.graphs.question_checks import GraphQuestion
from mulligan.graphs.values import Link, Links

SCHEMA = GraphSchema(
    (
        NodeKind("City", {"name": "str", "people": "int", "founded": "date"}),
        NodeKind("RailLine", {"name": "str", "length": "int", "electric": "bool"}),
        NodeKind("Person", {"name": "str", "born": "date"}),
    ),
    (
        EdgeKind("STOPS_AT", (("RailLine", "City"),)),
        EdgeKind("LIVES_IN", (("Person", "City"),), {"since": "int"}),
        EdgeKind("ADVISES", (("Person", "Person"),), {"manner": "str"}),
        EdgeKind("MEETS_WITH", (("Person", "Person"),)),
    ),
    True,
)
ULM = Link("Ulm", "City", "name", "Ulm")
ADA = Link("Ada", "Person", "name", "Ada")
ADVISED = "MATCH (a:Person)-[:ADVISES]->(b:Person {name: 'Ada'}) RETURN a.name"
ADVISES = "MATCH (a:Person {name: 'Ada'})-[:ADVISES]->(b:Person) RETURN b.name"
MEETS = "MATCH (a:Person)-[:MEETS_WITH]-(b:Person {name: 'Ada'}) RETURN a.name"
OF_ULM = "MATCH (p:Person)-[:LIVES_IN]->(:City {name: 'Ulm'}) RETURN p.name"


def asked(question: str, *links: Link, unknown: tuple[str, ...] = ()) -> GraphQuestion:
    return GraphQuestion(question, SCHEMA, Links(links, (), unknown))


@each_row(
    ("question", "query", "rows", "links"),
    [
        ("Which persons advise Ada?", ADVISED, [{"a.name": "Bo"}], [ADA]),
        ("Which persons does Ada advise?", ADVISES, [{"b.name": "Bo"}, {"b.name": "Cy"}], [ADA]),
        ("Who meets with Ada?", MEETS, [{"a.name": "Bo"}], [ADA]),
        ("Is Ada a person?", "MATCH (a:Person {name: 'Ada'}) RETURN a.name", [{"a.name": "Ada"}], [ADA]),
        ("How many persons live in Ulm?", OF_ULM.replace("p.name", "count(p) AS n"), [{"n": 0}], [ULM]),
        ("How many persons live in each city?", "MATCH (p:Person)-[:LIVES_IN]->(c:City) RETURN c.name, count(p)", [{"c": "Ulm", "n": 1}, {"c": "Bonn", "n": 2}], []),
        ("Which persons do not live in Ulm?", "MATCH (p:Person) WHERE NOT EXISTS { MATCH (p)-[:LIVES_IN]->(:City {name: 'Ulm'}) } RETURN p.name", [{"n": "Bo"}], [ULM]),
        ("Which cities have over 5,000 people?", "MATCH (c:City) WHERE c.people > 5000 RETURN c.name", [{"n": "Ulm"}], []),
        ("Which city has the most people?", "MATCH (c:City) RETURN c.name ORDER BY c.people DESC LIMIT 1", [{"n": "Ulm"}], []),
        ("Which expresses have a length above 90?", "MATCH (r:RailLine {name: 'express'}) WHERE r.length > 90 RETURN r.name", [{"n": "express"}, {"n": "x"}], [Link("expresses", "RailLine", "name", "express")]),
        ("Which electric rail lines stop at Ulm?", "MATCH (r:RailLine)-[:STOPS_AT]->(:City {name: 'Ulm'}) WHERE r.electric RETURN r.name", [{"n": "S1"}], [ULM]),
        ("Which rail lines are longer than 40?", "MATCH (r:RailLine) WHERE r.length > 40 RETURN r.name", [{"n": "S1"}], [Link("40", "City", "name", "40")]),
        ("What is the average length of rail lines?", "MATCH (r:RailLine) RETURN avg(r.length)", [{"n": 9.5}], []),
        ("Which persons does nobody advise?", "MATCH (p:Person) WHERE NOT EXISTS { MATCH (:Person)-[:ADVISES]->(p) } RETURN p.name", [{"n": "Bo"}], []),
    ],
)  # fmt: skip
def test_nothing_speaks_against_a_right_query(question: str, query: str, rows: Any, links: list[Link]) -> None:
    assert asked(question, *links).objections(query, rows) == []


@each_row(
    ("question", "query", "rows", "links", "said"),
    [
        ("Which persons advise Ada?", ADVISES, [{"n": "Bo"}], [ADA], "The arrow points the wrong way"),
        ("Which persons advise Ada?", ADVISED.replace("->", "-"), [{"n": "Bo"}], [ADA], "or none is written"),
        ("Which persons advise Ada?", "MATCH (a:Person)-[:ADVISES]->(b:Person) RETURN a.name", [{"n": "Bo"}], [ADA], 'names "Ada"'),
        ("Which persons live in Ulm?", OF_ULM.replace("Ulm", "Bonn"), [{"n": "Bo"}], [ULM], 'asks for "Bonn"'),
        ("Which persons live in Ulm since 1990?", OF_ULM, [{"n": "Bo"}], [ULM], "names 1990"),
        ("Which cities does Ada live in?", "MATCH (a:Person {name: 'Ada'})-[:LIVES_IN]->(:City) RETURN a.born", [{"n": 1}], [ADA], "asks for City nodes"),
        ("What is the length of the line Ulm?", "MATCH (r:RailLine {name: 'Ulm'}) RETURN r.name, r.name", [{"n": "Ulm"}], [], "the property length"),
        ("How many persons live in Ulm?", OF_ULM, [{"n": "Bo"}], [ULM], "not a single number"),
        ("Which persons live in Ulm?", OF_ULM.replace("p.name", "count(p)"), [{"n": 3}], [ULM], "does not ask for a number"),
        ("Which persons do not live in Ulm?", OF_ULM, [{"n": "Bo"}], [ULM], "excludes nothing"),
        ("Which city has the most people?", "MATCH (c:City) RETURN c.name", [{"n": "Ulm"}], [], "no ORDER BY"),
        ("Which persons live in Ulm?", OF_ULM.replace("p.name", "p.name LIMIT 2"), [{"n": "Bo"}, {"n": "Cy"}], [ULM], "the first 2 of the rows"),
        ("Which persons advise Ada?", ADVISED.replace("a.name", "b.name"), [{"n": "Ada"}], [ADA], "only repeat"),
        ("Which persons live in Ulm?", OF_ULM.replace("p.name", "p.name, p.born"), [{"n": "Bo", "b": None}], [ULM], "The column b is null"),
        ("Which persons live in Ulm?", OF_ULM.replace("LIVES_IN", "ADVISES"), [{"n": "Bo"}], [ULM], "speaks of LIVES_IN"),
    ],
)  # fmt: skip
def test_what_speaks_against_a_query_is_said(
    question: str, query: str, rows: Any, links: list[Link], said: str
) -> None:
    assert said in " ".join(asked(question, *links).objections(query, rows))


def test_a_name_that_is_no_value_is_missed() -> None:
    about = asked("Which persons live in Xyz7?", unknown=("Xyz7",))
    assert about.strangers == ("Xyz7",)
    assert any('"Xyz7"' in said for said in about.objections(OF_ULM.replace(" {name: 'Ulm'}", ""), [{"n": "Bo"}]))


@each_row(
    ("question", "names"),
    [
        ("In which city does the person ada live?", ("ada",)),
        ("Which persons live in the city ulm mitte?", ("ulm",)),
        ("Which persons live in the city responsible for it?", ()),
        ("Which persons live in the city founded in 1900?", ()),
        ("In which city does the person live?", ()),
        ("Which of the persons here live in Ulm?", ()),
    ],
)
def test_a_word_behind_a_kind_is_a_name(question: str, names: tuple[str, ...]) -> None:
    assert asked(question).strangers == names


def test_what_could_not_be_looked_up_is_no_stranger() -> None:
    about = GraphQuestion("In which city does the person ada live?", SCHEMA, Links(left_out=("Person.name",)))
    assert about.strangers == ()


def test_a_value_that_only_begins_alike_is_another() -> None:
    about = asked("Which persons live in Ulm Mitte?", Link("Ulm", "City", "name", "Ulm Nord"))
    assert about.strangers == ("Ulm Mitte",)
    assert any('"Ulm Mitte"' in said for said in about.objections(OF_ULM.replace("'Ulm'", "'Ulm Nord'"), [{"n": "Bo"}]))
