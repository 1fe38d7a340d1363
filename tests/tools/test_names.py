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
    assert names.all_offences(tmp_path) == {"class Row": ["a.py", "b.py"]}


def test_the_baseline_only_shrinks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline, source = tmp_path / "baseline.txt", tmp_path / "src"
    source.mkdir()
    (source / "a.py").write_text("KEPT = 1\nGIVEN = 1")
    (source / "b.py").write_text("KEPT = 1")
    baseline.write_text("DRAWN 1\nGIVEN 2\nKEPT 1\n")
    assert names.main([], source, baseline) == 1
    drawn, given, kept = capsys.readouterr().out.splitlines()
    assert drawn.startswith("DRAWN: 0 times")
    assert given.startswith("GIVEN: 1 times, and the baseline has 2")
    assert kept.endswith("2 times, and 1 are known: a.py KEPT b.py KEPT")
    assert names.main(["--shrink"], source, baseline) == 1
    assert baseline.read_text() == "GIVEN 1\nKEPT 1\n", "what is new is not taken in"
    (source / "b.py").write_text("")
    assert names.main([], source, baseline) == 0
