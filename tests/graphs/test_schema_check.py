"""A query compared with the schema of its graph: what is corrected, what is said, and what is left alone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from each_row import each_row
from hypothesis import given
from hypothesis import strategies as st

from mulligan.graphs.protocol import EdgeKind, Graph, GraphSchema, NodeKind
from mulligan.graphs.schema_check import Checked, check_query

SCHEMA = GraphSchema(
    (
        NodeKind("Gene", {"name": "STRING", "chromosome": "STRING", "length": "INT64"}),
        NodeKind("Drug", {"name": "STRING", "approved": "DATE"}),
        NodeKind("CellType", {"name": "STRING"}),
        NodeKind("Odd label", {"name": "STRING"}),
    ),
    (
        EdgeKind("REGULATES", (("Gene", "Gene"),), {"effect": "STRING"}),
        EdgeKind("TARGETS", (("Drug", "Gene"),), {"action": "STRING"}),
        EdgeKind("EXPRESSED_IN", (("Gene", "CellType"),)),
    ),
    exact=True,
)
QUESTIONS = Path(__file__).parents[2] / "studies" / "graph_questions"


@each_row(
    "query",
    [
        "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t) RETURN t.name AS gene",
        "MATCH (d:Drug)-[:TARGETS]->(:Gene)<-[r:REGULATES {effect: 'activates'}]-(g) RETURN d.approved, r.effect, g.length",
        "MATCH (g:Gene) WHERE NOT (g)-[:REGULATES]->(:Gene) RETURN count(g) AS genes ORDER BY genes",
        "MATCH (a:Gene)-[:REGULATES*1..3]->(b:Gene) RETURN a.name, b.name",
        "MATCH p = shortestPath((a:Gene)-[:REGULATES|TARGETS*]-(b:Drug)) RETURN length(p)",
        "MATCH (n) WHERE n:Gene AND n.whatever = 1 RETURN n",
        "MATCH (g:Gene)--(x) RETURN x.name",
        "MATCH (g:Gene) OPTIONAL MATCH (g)-[:REGULATES]->(t:Gene) WITH g, t WHERE t IS NULL RETURN g.name",
        "MATCH (g:Gene) OPTIONAL MATCH (g)-[:REGULATES]->(t:Gene) WHERE t.length IS NULL RETURN g.name",
        "MATCH (Gene:Gene)-[:REGULATES]->(Drug:Gene) RETURN Gene.name, Drug.name",
        "MATCH (n:!Drug) RETURN n.length",
        "WITH {odd: 1} AS g MATCH (h:Gene) RETURN g.odd",
        "MATCH (g:Gene) RETURN g.name // (:Nothing)-[:AT_ALL]->()",
        "MATCH (g:`Odd label` {name: '(:Nothing)'}) RETURN g.name",
        "CREATE (n:Hacked",
        "",
    ],
)
def test_what_fits_is_left_as_it_is(query: str) -> None:
    checked = check_query(query, SCHEMA)
    assert (checked.query, checked.changes, checked.faults) == (query, (), ())


@each_row(
    ("query", "corrected", "change"),
    [
        ("MATCH (g:gene) RETURN g.NAME", "MATCH (g:Gene) RETURN g.name", "label gene was written Gene"),
        ("MATCH (c:`cell type`) RETURN c", "MATCH (c:CellType) RETURN c", "label cell type was written CellType"),
        ("MATCH (c:oddlabel) RETURN c", "MATCH (c:`Odd label`) RETURN c", "label oddlabel was written Odd label"),
        (
            "MATCH (g:Gene)-[:TARGETS]->(d:Drug) RETURN d.name",
            "MATCH (g:Gene)<-[:TARGETS]-(d:Drug) RETURN d.name",
            "the arrow of TARGETS was turned: (:Drug)-[:TARGETS]->(:Gene)",
        ),
        (
            "MATCH (c:CellType)-[:expressed_in]->(g) RETURN g.name",
            "MATCH (c:CellType)<-[:EXPRESSED_IN]-(g) RETURN g.name",
            "the arrow of expressed_in was turned: (:Gene)-[:EXPRESSED_IN]->(:CellType)",
        ),
        (
            "MATCH (d:Drug)<-[t:TARGETS]-(g) WHERE (g)<-[:REGULATES]-(:Gene {Name: 'A'}) RETURN t.action",
            "MATCH (d:Drug)-[t:TARGETS]->(g) WHERE (g)<-[:REGULATES]-(:Gene {name: 'A'}) RETURN t.action",
            "property Name was written name",
        ),
        (
            "MATCH (d:Drug)-[:TARGETS]->(g:Gene) WHERE g.action = 'binds' AND d.length > 9 RETURN g.name, g.action",
            "MATCH (d:Drug)-[r:TARGETS]->(g:Gene) WHERE r.action = 'binds' AND g.length > 9 RETURN g.name, r.action",
            "g.action was written r.action, whose property it is",
        ),
    ],
)
def test_spellings_and_arrows_are_corrected_and_said(query: str, corrected: str, change: str) -> None:
    checked = check_query(query, SCHEMA)
    assert (checked.query, checked.faults) == (corrected, ())
    assert change in checked.changes
    assert check_query(corrected, SCHEMA).changes == ()


@each_row(
    ("query", "fault"),
    [
        ("MATCH (g:Genes) RETURN g", "There is no label Genes (line 1, column 10). Nearest: Gene."),
        (
            "MATCH (g:Protein) RETURN g",
            "There is no label Protein (line 1, column 10). Available: CellType, Drug, Gene, Odd label.",
        ),
        (
            "MATCH (g:Gene)-[:REGULATE]->(t) RETURN t",
            "There is no relationship type REGULATE (line 1, column 18). Nearest: REGULATES.",
        ),
        ("MATCH (g:Gene) RETURN g.lenght", "There is no property lenght of Gene (line 1, column 25). Nearest: length."),
        (
            "MATCH (:Gene {symbol: 'A'}) RETURN 1",
            "There is no property symbol of Gene (line 1, column 15). Available: chromosome",
        ),
        (
            "MATCH (g:Gene) RETURN g.effect",
            "There is no property effect of Gene (line 1, column 25). effect is a property of REGULATES. ",
        ),
        (
            "MATCH ()-[r:TARGETS {effect: 'x'}]->() RETURN r",
            "There is no property effect of TARGETS (line 1, column 22). ",
        ),
        (
            "MATCH (d:Drug)-[:REGULATES]->(g:Gene) RETURN g",
            "REGULATES does not connect Drug and Gene: (:Gene)-[:REGULATES]->(:Gene).",
        ),
        (
            "MATCH (Gene)-[TARGETS]-(d:Drug) RETURN Gene.name",
            "Gene stands for any node there: write its label as (:Gene).",
        ),
        ("MATCH (Gene)-[TARGETS]-(d:Drug) RETURN Gene.name", "TARGETS stands for any relationship there: "),
        (
            "MATCH (g:Gene) OPTIONAL MATCH (g)-[:REGULATES]->(t:Gene) WHERE g.length > 1 AND t IS NULL RETURN g.name",
            "t IS NULL in OPTIONAL MATCH leaves out nothing. ",
        ),
    ],
)
def test_what_cannot_be_corrected_safely_is_said_with_the_nearest_name(query: str, fault: str) -> None:
    checked = check_query(query, SCHEMA)
    assert checked.query == query
    assert any(each.startswith(fault) for each in checked.faults), checked.faults


def test_right_queries_of_the_study_have_no_fault() -> None:
    from mulligan.graphs.sample import EDGES, NODES

    def properties(columns: str) -> dict[str, str]:
        return {column.partition(":")[0]: "" for column in columns.split()}

    schema = GraphSchema(
        tuple(NodeKind(label, properties(columns)) for label, columns in NODES.items()),
        tuple(EdgeKind(label, ((a, b),), properties(columns)) for label, (a, b, columns) in EDGES.items()),
        exact=True,
    )
    for name in ("questions", "questions_b"):
        for each in json.loads((QUESTIONS / f"{name}.json").read_text(encoding="utf-8"))["questions"]:
            checked = check_query(each["query"], schema)
            assert (checked.query, checked.changes, checked.faults) == (each["query"], (), ()), each["question"]


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (g:Gene) RETURN g.unseen",
        "MATCH (g:Gene {unseen: 1})-[r:TARGETS {unseen: 1}]->(d:Drug) RETURN r.unseen",
        "MATCH (d:Drug)-[:REGULATES]->(c:CellType) RETURN c.NAME",
    ],
)
def test_what_a_sample_did_not_show_is_left_to_the_database(query: str) -> None:
    sampled = replace(SCHEMA, exact=False)
    assert check_query(query, sampled) == Checked(query)
    assert check_query(query.replace(":Gene", ":gene").replace(":Drug", ":drug"), sampled).query == query
    assert check_query(query.replace("Gene", "Foo").replace("Drug", "Bar"), sampled).faults


async def test_only_a_database_that_enforces_its_schema_is_called_exact(graph: Graph) -> None:
    assert (await graph.schema()).exact == ("Ladybug" in graph.language)


def test_a_schema_survives_the_record() -> None:
    for schema in (SCHEMA, replace(SCHEMA, exact=False)):
        assert GraphSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_without_a_schema_nothing_is_said() -> None:
    assert check_query("MATCH (x:Anything) RETURN x", GraphSchema()).faults == ()


PIECES = st.sampled_from(
    [
        "(",
        ")",
        "[",
        "]",
        "-",
        "<",
        ">",
        ":",
        "|",
        "{",
        "}",
        "*",
        "..",
        ".",
        "!",
        ",",
        " ",
        "g",
        "Gene",
        "drug",
        "'a'",
        "1",
        "`x`",
        "AS",
    ]
)


@given(st.lists(PIECES, max_size=25))
def test_any_text_is_checked_and_what_was_corrected_stays_so(pieces: list[str]) -> None:
    checked = check_query("".join(pieces), SCHEMA)
    assert not (checked.faults and checked.query != "".join(pieces))
    if not checked.faults:
        assert check_query(checked.query, SCHEMA).faults == ()
