"""The study of scaling, tried with a scripted model: all arms run, and the same command goes on."""

import csv
import json
import runpy
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[2] / "studies" / "scaling" / "run.py"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", [str(STUDY), *arguments])
    runpy.run_path(str(STUDY), run_name="__main__")


@pytest.mark.slow
def test_all_arms_run_and_the_same_command_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "answers.json").write_text(json.dumps(["I do not know."] * 400))
    given = ("--model", "scripted:answers.json", "--tasks", "2", "--into", "out")
    run(monkeypatch, *given)
    rows = list(csv.DictReader((tmp_path / "out" / "cases.csv").read_text().splitlines()))
    assert {row["arm"] for row in rows} == {"none", "none-x3", "default", "vanilla-x3", "matts-x3"}
    assert len(rows) == 10
    assert {row["calls"] for row in rows if row["arm"] == "none-x3"} == {"3"}
    before = (tmp_path / "out" / "cases.csv").read_text()
    run(monkeypatch, *given)
    assert (tmp_path / "out" / "cases.csv").read_text() == before
