"""The sample graph: the same for everybody, a few thousand nodes, with answers to the questions of the examples."""

import asyncio
import hashlib
import json
import tomllib
from pathlib import Path

import pytest
from sample_graphs import GOOD, REGULATED

from mulligan.core.errors import InvalidInput
from mulligan.graphs.opening import read_tables
from mulligan.graphs.protocol import Graph
from mulligan.graphs.sample import EDGES, NODES, schema_info, write_sample

QUESTIONS = Path(__file__).parents[2] / "examples" / "knowledge_graph" / "questions.toml"


def digest(folder: Path) -> str:
    texts = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    return hashlib.sha256(b"".join(texts)).hexdigest()


def test_the_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    counts = write_sample(tmp_path / "one")
    assert write_sample(tmp_path / "two") == counts
    write_sample(tmp_path / "other", seed=8)
    assert digest(tmp_path / "one") == digest(tmp_path / "two") != digest(tmp_path / "other")
    assert 2000 < sum(counts[label] for label in NODES) < 5000
    assert sum(counts[label] for label in EDGES) > 5000
    assert digest(tmp_path / "one")[:16] == "872bae5c5c1aa167"


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(InvalidInput, match="already exists and is not empty"):
        write_sample(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_the_schema_info_says_what_the_files_hold(tmp_path: Path) -> None:
    write_sample(tmp_path)
    info = json.loads((tmp_path / "schema_info.json").read_text())
    assert info == schema_info()
    assert info.pop("is_schema_info") is True
    tables = read_tables(tmp_path)
    nodes = {name: part for name, part in info.items() if not part["is_relationship"]}
    edges = {part["label_as_edge"]: part for part in info.values() if part["is_relationship"]}
    assert sorted(name.title().replace(" ", "") for name in nodes) == sorted(table.label for table in tables.nodes)
    assert sorted(edges) == sorted(table.label for table in tables.edges)
    assert info["gene"]["properties"]["aliases"] == "str[]"
    assert (edges["EXPRESSED_IN"]["source"], edges["EXPRESSED_IN"]["target"]) == ("gene", "cell type")
    for table in tables.edges:
        assert sorted(edges[table.label]["properties"]) == sorted(column.name for column in table.columns)


@pytest.mark.parametrize(
    "asked", tomllib.loads(QUESTIONS.read_text())["question"], ids=lambda asked: asked["text"][:40]
)
def test_each_question_of_the_example_has_an_answer(graph: Graph, asked: dict[str, str]) -> None:
    found = asyncio.run(graph.run(asked["query"]))
    assert found.rows
    assert not found.empty
    assert not found.truncated


def test_the_first_question_is_the_one_of_the_documentation(ladybug: Graph) -> None:
    first = tomllib.loads(QUESTIONS.read_text())["question"][0]
    assert first["text"] == "Which genes does EOMES regulate?"
    found = asyncio.run(ladybug.run(first["query"]))
    assert sorted(row["name"] for row in found.rows) == REGULATED
    assert found.columns == asyncio.run(ladybug.run(GOOD)).columns
