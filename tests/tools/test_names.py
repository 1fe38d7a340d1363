"""`tools/names.py`, which `make check` runs: what it takes for no name, and that its baseline only shrinks."""

import ast
from pathlib import Path

import pytest

import names

BODY = """
LIMIT, FOUND = 3, 4
KEPT = 5
class Shelf:
    kept: int
    pinned: bool = False
    lessons_found: tuple[str, ...]
    _drawn: int
    def add(self, given: str, flagged: bool, before: float) -> None:
        found = 1
    def there(self) -> None: ...
    def checked_fields(self) -> dict[str, str]: ...
    def is_withheld(self) -> bool: ...
def beside(x: int, _kept: int) -> int: ...
def read_feed(need: int) -> int: ...
def _shown(given: int) -> int: ...
"""


def test_participles_and_adverbs_are_no_names_and_adjectives_are() -> None:
    assert list(names.offences(ast.parse(BODY))) == [
        "KEPT",
        "Shelf.kept",
        "Shelf.lessons_found",
        "Shelf.add(given)",
        "Shelf.there",
        "beside",
    ]


def test_a_class_name_stands_for_one_thing(tmp_path: Path) -> None:
    for file, body in {"a": "class Row: ...", "b": "class _Row: ...\nclass Own: ...", "c": "class Other: ..."}.items():
        (tmp_path / f"{file}.py").write_text(body)
    assert names.all_offences(tmp_path) == {"class Row: a.py b.py"}


def test_the_baseline_only_shrinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline, source = tmp_path / "baseline.txt", tmp_path / "src"
    source.mkdir()
    (source / "a.py").write_text("KEPT = 1\nFOUND = 1")
    baseline.write_text("a.py GONE\na.py KEPT\n")
    assert names.main([], source, baseline) == 1
    assert [line.rpartition(": ")[2] for line in capsys.readouterr().out.splitlines()] == ["a.py FOUND", "a.py GONE"]
    assert names.main(["--shrink"], source, baseline) == 1
    assert baseline.read_text() == "a.py KEPT\n", "what is new is not taken in"
    (source / "a.py").write_text("KEPT = 1")
    assert names.main([], source, baseline) == 0
