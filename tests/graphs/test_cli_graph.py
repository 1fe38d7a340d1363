"""`mulligan graph` at the command line: sample, load, schema, query."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from sample_graphs import GOOD, REGULATED

from mulligan.cli.main import main


class Ended(NamedTuple):
    status: int
    out: str
    err: str


Mulligan = Callable[..., Ended]


@pytest.fixture
def mulligan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Mulligan:
    """Runs the command in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main(("graph", *arguments))
        captured = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, captured.out, captured.err)

    return run


@pytest.mark.slow
def test_from_the_sample_to_an_answer(mulligan: Mulligan) -> None:
    assert "9,176 rows in 15 files" in mulligan("sample", "files").err
    loaded = mulligan("load", "files", "--into", "kg")
    assert (loaded.status, loaded.out) == (0, "kg\n")
    assert "      308  Gene\n" in loaded.err
    asked = mulligan("query", "kg", GOOD)
    assert asked.out.splitlines() == ["name", *REGULATED]
    assert asked.err == "5 rows\n"
    again = mulligan("load", "files", "--into", "kg")
    assert (again.status, again.out) == (2, "")
    assert "already exists" in again.err


@pytest.mark.slow
def test_rows_are_json_for_a_program(mulligan: Mulligan, kg: Path) -> None:
    query = "MATCH (:Gene {name: $gene})-[r:REGULATES]->(t:Gene) RETURN t.name AS name, r.score AS score LIMIT $n"
    query = query.replace("$n", "2")
    asked = mulligan("query", str(kg), query, "--param", "gene=EOMES", "--json", "--rows", "1")
    (row,) = [json.loads(line) for line in asked.out.splitlines()]
    assert row.keys() == {"name", "score"}
    assert asked.err == "1 row, and there are more\n"


@pytest.mark.slow
def test_the_schema_is_written_as_patterns(mulligan: Mulligan, kg: Path) -> None:
    shown = mulligan("schema", str(kg)).out.splitlines()
    assert "(:CellType {name: STRING})" in shown
    assert "(:Gene)-[:EXPRESSED_IN {level: DOUBLE}]->(:CellType)" in shown
    assert "(:Gene)-[:HAS_TRANSCRIPT]->(:Transcript)" in shown
    found = json.loads(mulligan("schema", str(kg), "--json").out)
    assert {"label": "CellType", "properties": {"name": "STRING"}} in found["nodes"]


@pytest.mark.light_cases(2)
@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("MATCH (n) DETACH DELETE n",), 2, "Error: DETACH does something other than reading"),
        (("MATCH (n:Gen) RETURN n",), 2, "Did you mean Gene? (line 1, column 10)"),
        (("RETURN 1 / 0",), 3, "Divide by zero"),
        (("RETURN $x", "--param", "x"), 2, "'x' does not have the form NAME=VALUE"),
        (("RETURN 1", "--rows", "0"), 2, "must be allowed more than 0 s"),
        (("RETURN 1", "--user", "me"), 2, "is a file, which has no users"),
    ],
)
def test_what_goes_wrong_is_reported_and_has_its_status(
    mulligan: Mulligan, kg: Path, arguments: tuple[str, ...], status: int, message: str
) -> None:
    ended = mulligan("query", str(kg), *arguments)
    assert (ended.status, ended.out) == (status, "")
    assert message in ended.err


def test_a_wrong_layout_is_bad_input(mulligan: Mulligan) -> None:
    ended = mulligan("load", ".", "--into", "kg")
    assert ended.status == 2
    assert "mulligan docs graphs" in ended.err
    assert not Path("kg").exists()
