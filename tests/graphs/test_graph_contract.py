"""What every graph database gives back, whichever it is: the same rows for the same question, as strict JSON."""

import asyncio
import json
import time
from typing import Any

import pytest
from sample_graphs import GOOD, REGULATED

from mulligan.core.errors import InvalidInput, QueryError
from mulligan.graphs.protocol import EdgeKind, Graph

pytestmark = pytest.mark.anyio
ENDLESS = "UNWIND range(1, 3000) AS i UNWIND range(1, 3000) AS j UNWIND range(1, 3000) AS k WITH i + j + k AS n WHERE n < 0 RETURN n"


async def value(graph: Graph, query: str, **parameters: Any) -> Any:
    """The one value of the one row."""
    found = await graph.run(query, parameters)
    assert len(found.rows) == 1
    assert json.loads(json.dumps(found.rows[0], allow_nan=False)) == found.rows[0]
    (only,) = found.rows[0].values()
    return only


async def test_the_question_of_the_example_has_an_answer(graph: Graph) -> None:
    found = await graph.run(GOOD)
    assert found.columns == ("name",)
    assert [row["name"] for row in found.rows] == REGULATED
    assert not found.truncated


async def test_the_schema_names_labels_types_ends_and_properties(graph: Graph) -> None:
    schema = await graph.schema()
    nodes = {kind.label: kind for kind in schema.nodes}
    edges = {kind.label: kind for kind in schema.edges}
    assert sorted(nodes) == ["CellType", "Disease", "Drug", "Gene", "Odd", "Pathway", "Protein", "Transcript"]
    assert sorted(nodes["Gene"].properties) == [
        "aliases",
        "annotated",
        "chromosome",
        "coding",
        "gc",
        "length",
        "name",
        "start",
    ]
    assert nodes["Gene"].properties["name"] == "STRING"
    assert edges["REGULATES"].ends == (("Gene", "Gene"),)
    assert edges["ENCODES"] == EdgeKind("ENCODES", (("Transcript", "Protein"),), {})
    assert sorted(edges["REGULATES"].properties) == ["effect", "evidence", "score"]


async def test_scalars_are_json(graph: Graph) -> None:
    query = "MATCH (o:Odd {id: 'all'}) RETURN o.whole AS w, o.share AS s, o.sure AS b, o.day AS d, o.words AS l, o.numbers AS n"
    row = (await graph.run(query)).rows[0]
    assert row == {
        "w": 2**63 - 1,
        "s": 0.5,
        "b": True,
        "d": "2020-02-29",
        "l": ["a,b", 'say "hi"', "it's", "é日😀"],
        "n": [1, -2],
    }
    assert (await value(graph, "MATCH (o:Odd {id: 'all'}) RETURN o.moment")).startswith("2020-02-29T12:30:00")
    assert await value(graph, "MATCH (o:Odd {id: 'least'}) RETURN o.whole") == -(2**63)
    assert await value(graph, "MATCH (o:Odd {id: 'least'}) RETURN o.words") == ["x\ny", "\\"]


async def test_nulls_are_null_and_make_a_row_empty(graph: Graph) -> None:
    found = await graph.run("MATCH (o:Odd {id: 'none'}) RETURN o.whole AS w, o.words AS l")
    assert found.rows == ({"w": None, "l": None},)
    assert found.empty
    assert not (await graph.run("MATCH (o:Odd {id: 'nobody'}) RETURN count(*) AS n")).empty


async def test_floats_that_are_no_numbers_are_named(graph: Graph) -> None:
    row = (await graph.run("RETURN 1.0 / 0.0 AS i, -1.0 / 0.0 AS m, 0.0 / 0.0 AS n")).rows[0]
    assert row == {"i": "Infinity", "m": "-Infinity", "n": "NaN"}


@pytest.mark.parametrize(
    ("interval", "written"),
    [
        ("3 days 2 hours", "P3DT7200S"),
        ("2 hours 5 microseconds", "PT7200.000005S"),
        ("23 hours 59 minutes 59 seconds 999999 microseconds", "PT86399.999999S"),
        ("0 seconds", "PT0S"),
    ],
)
async def test_durations_are_exact_texts_of_iso_8601(ladybug: Graph, interval: str, written: str) -> None:
    assert await value(ladybug, f"RETURN interval('{interval}')") == written


async def test_a_negative_duration_has_one_sign(ladybug: Graph) -> None:
    earlier = "timestamp('2020-01-01 00:00:00') - timestamp('2020-01-01 00:00:01')"
    assert await value(ladybug, f"RETURN {earlier}") == "-PT1S"


async def test_a_node_has_its_label_and_properties(graph: Graph) -> None:
    node = await value(graph, "MATCH (g:Gene {name: 'EOMES'}) RETURN g")
    assert node["label"] == "Gene"
    assert node["properties"]["name"] == "EOMES"
    assert isinstance(node["properties"]["length"], int)
    assert node.keys() == {"id", "label", "properties"}


async def test_an_edge_has_the_ids_of_its_nodes(graph: Graph) -> None:
    row = (await graph.run("MATCH (a:Odd)-[r:FOLLOWS]->(b:Odd) RETURN a, r, b")).rows[0]
    assert row["r"] == {
        "label": "FOLLOWS",
        "source": row["a"]["id"],
        "target": row["b"]["id"],
        "properties": {"since": "2021-03-04"},
    }


async def test_a_path_is_nodes_and_edges_in_their_order(graph: Graph) -> None:
    path = await value(graph, "MATCH p = (a:Odd)-[:FOLLOWS]->(b:Odd) RETURN p")
    assert [part["label"] for part in path] == ["Odd", "FOLLOWS", "Odd"]
    assert path[0]["properties"]["id"] == "all"
    assert path[2]["id"] == path[1]["target"]


async def test_lists_and_maps_hold_what_they_hold(graph: Graph) -> None:
    row = (await graph.run("RETURN {a: 1, b: {c: [1.5, 2.5]}} AS m, [[1], [2, 3]] AS l")).rows[0]
    assert row == {"m": {"a": 1, "b": {"c": [1.5, 2.5]}}, "l": [[1], [2, 3]]}
    names = await value(graph, "MATCH (:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene) RETURN collect(t.name)")
    assert sorted(names) == REGULATED
    nodes = await value(graph, "MATCH (o:Odd) WHERE o.id = 'none' RETURN collect(o)")
    assert [node["label"] for node in nodes] == ["Odd"]


async def test_parameters_are_given_by_name(graph: Graph) -> None:
    query = "MATCH (g:Gene) WHERE g.name IN $names AND g.length > $least RETURN count(*)"
    assert await value(graph, query, names=["EOMES", "TP53", "no such"], least=0) == 2
    assert await value(graph, "RETURN $x", x='MATCH (n) DETACH DELETE n // it\'s a "text"') == (
        'MATCH (n) DETACH DELETE n // it\'s a "text"'
    )
    assert await value(graph, "RETURN $x", x=None) is None
    assert await value(graph, "RETURN $x", x=2**53) == 2**53


async def test_a_parameter_that_was_not_given_is_reported(graph: Graph) -> None:
    with pytest.raises(
        QueryError, match=r"There is no parameter \$nmae. Available: name. \(line 2, column 16\)"
    ) as caught:
        await graph.run("MATCH (g:Gene)\nWHERE g.name = $nmae RETURN g", {"name": "x"})
    assert (caught.value.kind, caught.value.line, caught.value.column) == ("unknown", 2, 16)


async def test_parameters_that_are_no_json_are_refused(graph: Graph) -> None:
    with pytest.raises(QueryError, match="The parameters of a query must be JSON"):
        await graph.run("RETURN $x", {"x": object()})
    with pytest.raises(QueryError, match="The parameters of a query must be JSON"):
        await graph.run("RETURN $x", {"x": float("nan")})


async def test_at_most_so_many_rows(graph: Graph) -> None:
    query = "MATCH (c:CellType) RETURN c.name AS name"
    few = await graph.run(query, rows=5)
    assert (len(few.rows), few.truncated) == (5, True)
    exact = await graph.run(query, rows=24)
    assert (len(exact.rows), exact.truncated) == (24, False)
    with pytest.raises(InvalidInput, match="must be allowed more than 0 s and at least 1 row, not 10 s and 0 rows"):
        await graph.run(query, rows=0)


async def test_two_columns_of_a_name_are_both_there(ladybug: Graph) -> None:
    """ArcadeDB has them once, and Neo4j refuses the query."""
    query = "MATCH (a:Odd)-[:FOLLOWS]->(b:Odd) RETURN a.id, b.id, a.id"
    columns = (await ladybug.run(query)).columns
    assert columns == ("a.id", "b.id", "a.id (2)")


async def test_a_query_that_runs_on_is_stopped_and_the_next_one_answered(graph: Graph) -> None:
    began = time.monotonic()
    with pytest.raises(QueryError, match=r"was stopped after 0\.5 s") as caught:
        await graph.run(ENDLESS, seconds=0.5)
    assert time.monotonic() - began < 1.5
    assert caught.value.kind == "slow"
    assert [row["name"] for row in (await graph.run(GOOD)).rows] == REGULATED


async def test_a_cancelled_query_leaves_the_graph_usable(graph: Graph) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await graph.run(ENDLESS, seconds=20)
    assert time.monotonic() - began < 1.5
    assert len((await graph.run(GOOD)).rows) == 5


async def test_questions_at_once_are_answered_in_turn(graph: Graph) -> None:
    query = "MATCH (g:Gene {name: $name}) RETURN g.name AS name"
    names = ["EOMES", "TP53", "MYC", "no such", "KIT"]
    found = await asyncio.gather(*(graph.run(query, {"name": name}) for name in names))
    assert [[row["name"] for row in rows.rows] for rows in found] == [["EOMES"], ["TP53"], ["MYC"], [], ["KIT"]]


@pytest.mark.parametrize(
    ("query", "kind", "line", "column"),
    [
        ("MATCH (g:Gene)\nRETRN g", "syntax", 2, 1),
        ("MATCH (g:Gene)\nWHERE g.name = = 'x' RETURN g", "syntax", 2, 16),
        ("MATCH (g:Gene)\n  RETURN h.name", "unknown", 2, 10),
        ("MATCH (g:Gene)\nRETURN 1, fooled(g)", "unknown", 2, 11),
        ("MATCH (g:Gene RETURN g", "syntax", 1, 23),
        ("MATCH (g:Gene)\nSET g.name = 'x'", "refused", 2, 1),
    ],
)
async def test_errors_say_where(graph: Graph, query: str, kind: str, line: int, column: int) -> None:
    with pytest.raises(QueryError) as caught:
        await graph.run(query)
    assert (caught.value.kind, caught.value.line, caught.value.column) == (kind, line, column)
    assert len(str(caught.value)) < 3000


async def test_values_that_cannot_be_computed_are_failures(graph: Graph) -> None:
    with pytest.raises(QueryError) as caught:
        await graph.run("RETURN date('no day')")
    assert caught.value.kind == "failed"
    assert "no day" in str(caught.value)
