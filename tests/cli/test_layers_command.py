"""Reflectors in layers and by contrast at the command line, and lessons of a layer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

LAYERS = {
    "tactical": "The answer tea was wrong: tea has leaves.",
    "strategic": "Strike out tea and all that has leaves, then choose.",
    "metacognitive": "You take the first drink that comes to mind, tea.",
}
JUDGED = ("--evaluator", "exact_match:water", "--trials", "2")


@pytest.mark.parametrize(("calls", "lessons"), [(1, [LAYERS]), (3, list(LAYERS.values()))])
def test_solve_reflects_by_layer_and_runs_show_tells_them_apart(
    mulligan: Run, here: Path, calls: int, lessons: list[Any]
) -> None:
    (here / "said.json").write_text(json.dumps(["tea", *lessons, "water"]))
    reflects = ("--reflector", "layered", "--set", f"reflector.calls={calls}")
    ended = mulligan("solve", "Name a drink.", *JUDGED, *reflects, "--model", "scripted:said.json")
    assert (ended.status, ended.out.strip()) == (0, "water"), ended.err
    run = mulligan("runs", "list").out.split("\n")[1].split()[0]
    shown = mulligan("runs", "show", run).out
    assert "On single actions: The answer tea was wrong" in shown
    assert "On habits: You take the first drink" in shown
    exported = json.loads(mulligan("runs", "export", run, "--format", "json").out)
    assert "metacognitive" in json.dumps(exported)


def test_a_setting_that_cannot_work_is_refused_before_a_model_is_asked(mulligan: Run, here: Path) -> None:
    (here / "said.json").write_text('["tea"]')
    reflects = ("--reflector", "layered", "--set", "reflector.calls=2")
    ended = mulligan("solve", "Name a drink.", *JUDGED, *reflects, "--model", "scripted:said.json")
    assert ended.status == 2
    assert "calls must be 1" in ended.err


def test_contrastive_without_a_bank_says_that_it_reflected_plainly(mulligan: Run, here: Path) -> None:
    (here / "said.json").write_text(json.dumps(["tea", "The answer tea was wrong because tea has leaves.", "water"]))
    contrast = ("--reflector", "contrastive", "--model", "scripted:said.json")
    ended = mulligan("solve", "Name a drink.", *JUDGED, *contrast)
    assert ended.status == 0, ended.err
    run = mulligan("runs", "list").out.split("\n")[1].split()[0]
    assert "Note: plain reflection" in mulligan("runs", "show", run).out


def test_lessons_are_listed_by_layer(mulligan: Run) -> None:
    for title, more in (("Hasty", ("--layer", "metacognitive")), ("Plain", ())):
        ended = mulligan("memory", "add", "--title", title, "--content", f"{title} it is.", *more)
        assert ended.status == 0, ended.err
    listed = mulligan("memory", "list", "--layer", "metacognitive").out
    assert "metacognitive" in listed
    assert "Hasty" in listed
    assert "Plain" not in listed
    id = json.loads(mulligan("memory", "list", "--layer", "metacognitive", "--json").out)[0]["id"]
    assert "layer:" in mulligan("memory", "show", id).out.casefold().replace("layer  ", "layer:")
