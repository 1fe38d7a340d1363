"""Graphs from files: our own layout, and what BioCypher writes for neo4j-admin import."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sample_graphs import ODD, ODD_VALUES, a_row, an_edge, opened

from mulligan.core.errors import InvalidInput
from mulligan.graphs.loading import load
from mulligan.graphs.opening import load_graph, read_tables
from mulligan.graphs.protocol import EdgeKind, NodeKind
from mulligan.graphs.tables import Column, EdgeTable, NodeTable, Tables


def files(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def asked(path: Path, query: str) -> list[dict[str, Any]]:
    with opened(path) as graph:
        return [dict(row) for row in asyncio.run(graph.run(query)).rows]


PLAIN = {
    "nodes/Gene.csv": 'name,length:int,tags:string[],found\nEOMES,10,a|b,1999-01-02\nTP53,,,\n"a,""b""",3,x,2001-01-01\n',
    "nodes/Cell.csv": "id:int,name\n1,T cell\n2,B cell\n",
    "edges/REGULATES.csv": "from:Gene,to:Gene,score,sure\nEOMES,TP53,0.5,true\n",
    "edges/IN.csv": "from:Gene,to:Cell\nEOMES,1\nTP53,2\n",
    "edges/IN.cells.csv": "from:Cell,to:Cell,level:float\n1,2,1.5\n",
}
BIOCYPHER = {
    "Protein-header.csv": ":ID;name;score:double;taxon:long;genes:string[];sure:boolean;id;preferred_id;:LABEL\n",
    "Protein-part000.csv": (
        "p1;'Crohn's protein';4.5;9606;'g1|g2';true;'p1';'uniprot';BiologicalEntity|Entity|Protein\n"
        "p2;'3',5'-phosphatase; long';;9606;;false;'p2';'uniprot';BiologicalEntity|Entity|Protein\n"
    ),
    "Protein-part001.csv": "p3;'two\nlines';1;1;'x';;'p3';'uniprot';BiologicalEntity|Entity|Protein\n",
    "Efo.Disease-header.csv": ":ID;name;id;:LABEL\n",
    "Efo.Disease-part000.csv": "d1;'asthma';'d1';Disease|Efo.Disease\n",
    "Perturbed-header.csv": ":START_ID;source;score:int;:END_ID;:TYPE\n",
    "Perturbed-part000.csv": "p1;'lab';5;d1;PERTURBED\np2;;;p3;PERTURBED\n",
    "neo4j-admin-import-call.sh": (
        'bin/neo4j-admin import --database=neo4j --delimiter=";" --array-delimiter="|" --quote="\'" --force=true\n'
    ),
}


@pytest.mark.slow
def test_a_folder_of_csv_files_is_a_graph(tmp_path: Path) -> None:
    loaded, notes = load_graph(files(tmp_path / "files", PLAIN), tmp_path / "made" / "kg")
    assert loaded.nodes == {"Cell": 2, "Gene": 3}
    assert loaded.edges == {"IN": 3, "REGULATES": 1}
    assert notes == []
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["kg"]
    with opened(tmp_path / "made" / "kg") as graph:
        schema = asyncio.run(graph.schema())
    assert schema.nodes[1] == NodeKind(
        "Gene", {"name": "STRING", "length": "INT64", "tags": "STRING[]", "found": "DATE"}
    )
    assert EdgeKind("REGULATES", (("Gene", "Gene"),), {"score": "DOUBLE", "sure": "BOOL"}) in schema.edges
    assert EdgeKind("IN", (("Cell", "Cell"), ("Gene", "Cell")), {"level": "DOUBLE"}) in schema.edges
    rows = asked(tmp_path / "made" / "kg", "MATCH (g:Gene) RETURN g.name AS n, g.length AS l, g.tags AS t ORDER BY n")
    assert rows[0] == {"n": "EOMES", "l": 10, "t": ["a", "b"]}
    assert rows[1] == {"n": "TP53", "l": None, "t": None}
    assert rows[2]["n"] == 'a,"b"'


@pytest.mark.slow
def test_every_value_comes_back_as_it_went_in(tmp_path: Path) -> None:
    texts = ["", " ", "a,b", '"', "it's", "[x]", "\\", "\\n", "\n", "\r\n", "null", "é日😀", "\t", "true", "V", "#"]
    columns = (Column("id", "int"), Column("text"), Column("texts", many=True))
    rows = [a_row(n, text, [text, "", "z"]) for n, text in enumerate(texts)] + [a_row(99, None, [])]
    odd = NodeTable("Odd", ODD, lambda: iter([a_row(*values) for values in ODD_VALUES]))
    load(Tables((NodeTable("T", columns, lambda: iter(rows)), odd)), tmp_path / "kg")
    found = asked(tmp_path / "kg", "MATCH (t:T) RETURN t.id AS id, t.text AS text, t.texts AS texts ORDER BY id")
    assert [tuple(row.values()) for row in found] == [row.values for row in rows]
    names = ", ".join(f"o.{column.name} AS {column.name}" for column in ODD)
    for values in ODD_VALUES:
        assert (
            tuple(asked(tmp_path / "kg", f"MATCH (o:Odd {{id: '{values[0]}'}}) RETURN {names}")[0].values()) == values
        )


@pytest.mark.slow
def test_names_are_taken_as_they_are(tmp_path: Path) -> None:
    nodes = NodeTable("My Label", (Column("the key"), Column("set")), lambda: iter([a_row("it's", "x")]))
    ends = (("My Label", "it's"), ("My Label", "it's"))
    edges = EdgeTable("IS-LIKE", (Column("how `much`"),), lambda: iter([an_edge(*ends, "very")]))
    load(Tables((nodes,), (edges,)), tmp_path / "it's a graph")
    query = "MATCH (a:`My Label`)-[r:`IS-LIKE`]->() RETURN a.`the key` AS k, a.set AS s, r.`how ``much``` AS m"
    assert asked(tmp_path / "it's a graph", query) == [{"k": "it's", "s": "x", "m": "very"}]


@pytest.mark.slow
def test_what_biocypher_wrote_is_a_graph(tmp_path: Path) -> None:
    loaded, notes = load_graph(files(tmp_path / "out", BIOCYPHER), tmp_path / "kg")
    assert loaded.nodes == {"Efo_Disease": 1, "Protein": 3}
    assert loaded.edges == {"PERTURBED": 2}
    assert notes == [
        "Each node keeps only the label of its file: a node has one label here.",
        "Efo.Disease is Efo_Disease here.",
    ]
    rows = asked(
        tmp_path / "kg", "MATCH (p:Protein) RETURN p.id AS id, p.name AS n, p.score AS s, p.genes AS g ORDER BY id"
    )
    assert rows == [
        {"id": "p1", "n": "Crohn's protein", "s": 4.5, "g": ["g1", "g2"]},
        {"id": "p2", "n": "3',5'-phosphatase; long", "s": None, "g": None},
        {"id": "p3", "n": "two\nlines", "s": 1.0, "g": ["x"]},
    ]
    query = "MATCH (a)-[r:PERTURBED]->(b) RETURN a.id AS f, r.source AS s, r.score AS n, b.id AS t ORDER BY f"
    assert asked(tmp_path / "kg", query) == [
        {"f": "p1", "s": "lab", "n": 5, "t": "d1"},
        {"f": "p2", "s": None, "n": None, "t": "p3"},
    ]
    with opened(tmp_path / "kg") as graph:
        (perturbed,) = asyncio.run(graph.schema()).edges
    assert perturbed.ends == (("Protein", "Efo_Disease"), ("Protein", "Protein"))


@pytest.mark.light_cases(1)
@pytest.mark.parametrize(("between", "call"), [("\t", '--delimiter="\\t"'), (",", '--delimiter=","'), ("\t", None)])
def test_other_delimiters_are_read_from_the_import_call_or_the_header(
    tmp_path: Path, between: str, call: str | None
) -> None:
    texts = {
        "Gene-header.csv": between.join((":ID", "name", "tags:string[]", ":LABEL")),
        "Gene-part000.csv": between.join(("g1", '"a gene"' if call else "'a gene'", "x|y", "Gene")) + "\n",
    }
    if call:
        texts["neo4j-admin-import-call.sh"] = f'neo4j-admin import {call} --array-delimiter="|" --quote=""" '
    load_graph(files(tmp_path / "out", texts), tmp_path / "kg")
    rows = asked(tmp_path / "kg", "MATCH (g:Gene) RETURN g.id AS id, g.name AS n, g.tags AS t")
    assert rows == [{"id": "g1", "n": "a gene", "t": ["x", "y"]}]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("edges/IN.csv", "from:Gene,to:Cell\nNOBODY,1\n", r"IN\.csv:2: this edge needs the Gene 'NOBODY', which does not"),
        ("edges/IN.csv", "from:Gene,to:Cel\nEOMES,1\n", r"no file in nodes/ has the label 'Cel'\. Available: Cell, G"),
        ("edges/IN.csv", "a,b\n1,2\n", r"the first two columns of edges must be from:LABEL and to:LABEL"),
        ("nodes/Cell.csv", "id:int\n1\n2\n1\n", r"Cell\.csv:4: a node with the label Cell appears twice: 1"),
        ("nodes/Cell.csv", "id:int\n1\nx\n", r"Cell\.csv:3: id is 'x', which is not a valid int"),
        ("nodes/Cell.csv", "id:int,n\n1\n", r"Cell\.csv:2: 1 cell, but the header has 2"),
        ("nodes/Cell.csv", "id:number\n1\n", r"id has the unknown type 'number'\. Available: bool, boolean"),
        ("nodes/Cell.csv", "id:float\n1\n", r"the first column is the key and must be a string or an int, not float"),
        ("nodes/Cell.csv", "id,name,NAME\n1,2,3\n", r"the header has NAME twice"),
        ("nodes/Cell.csv", "", r"Cell\.csv is empty: the first line must contain the column names"),
        ("nodes/Cell.csv", "id:int,b:boolean\n1,yes\n", r"Cell\.csv:2: b is 'yes', which is not a valid boolean"),
        ("nodes/Cell.csv", "id:int\n9999999999999999999\n", r"which is not a valid int"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_the_files_is_reported_with_its_line(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    source = files(tmp_path / "files", {**PLAIN, name: text})
    with pytest.raises(InvalidInput, match=message):
        load_graph(source, tmp_path / "kg")
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Perturbed-part000.csv", "p1;'lab';5;nobody;PERTURBED\n", r"Perturbed-part000\.csv:1: no node has the id 'nobody'"),
        ("Perturbed-part000.csv", "p1;'lab;5;d1;PERTURBED\n", r"Perturbed-part000\.csv:1: a string is not closed with '"),
        ("Perturbed-part000.csv", "p1;5;d1;PERTURBED\n", r"Perturbed-part000\.csv:1: 4 cells, but the header has 5"),
        ("Perturbed-header.csv", ":START_ID;source;score:int;:END_ID;type\n", r"no column :TYPE; edge files need"),
        ("Protein-part001.csv", "p3;'x';much;1;'x';;'p3';'u';Protein\n", r"score is 'much', which is not a valid float"),
        ("Protein-part001.csv", "p3;'x';1;1;'x';;'p4';'u';Protein\n", r"the node 'p3' also has the property id with another value, 'p4'"),
        ("Protein-part001.csv", "p1;'x';1;1;'x';;'p1';'u';Protein\n", r"a node with the label Protein appears twice: 'p1'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_biocyphers_files_is_reported_too(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        load_graph(files(tmp_path / "out", {**BIOCYPHER, name: text}), tmp_path / "kg")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_label_with_a_dot_is_refused(tmp_path: Path) -> None:
    source = files(tmp_path / "files", {**PLAIN, "nodes/A.B.csv": "id\n1\n"})
    with pytest.raises(InvalidInput, match=r"The label A\.B contains a dot, which has a special meaning in queries"):
        load_graph(source, tmp_path / "kg")


def test_a_place_that_is_taken_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "kg").write_text("mine")
    with pytest.raises(InvalidInput, match=r"already exists\. Remove it, or choose another file"):
        load_graph(files(tmp_path / "files", PLAIN), tmp_path / "kg")
    assert (tmp_path / "kg").read_text() == "mine"


def test_a_folder_of_no_known_layout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has neither nodes/LABEL\.csv nor X-header\.csv files"):
        read_tables(tmp_path)
    with pytest.raises(InvalidInput, match="is not a folder"):
        read_tables(tmp_path / "nowhere")
