"""The collections of the study: texts of tasks, each with its kind. README.md says where they come from."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from mulligan.bench.streams.stream import Family, Stream
from mulligan.core.protocols import Evaluator
from mulligan.core.records import Spec

HERE = Path(__file__).parent
DATA = Path(os.environ.get("MULLIGAN_TEST_DATA") or HERE.parents[2] / "shared/data")

Tasks: TypeAlias = list[tuple[str, str]]
"""Text and kind of each task."""


def develop() -> Mapping[str, Tasks]:
    return {"templates": templates(), "sources": sources(), "streams": streams(), "conventions": conventions()}


def held() -> Mapping[str, Tasks]:
    rows = _lines("retrieval/tau2-banking/corpus.jsonl")[::3]
    return {"held": [(row["title"], re.sub(r"_\d+$", "", row["_id"])) for row in rows]}


def templates() -> Tasks:
    rows = _lines("retrieval/webarena-intents/tasks.jsonl")
    sizes = Counter(row["template"] for row in rows)
    taken = sorted(template for template, size in sizes.items() if size >= 4)[:40]
    return [(row["intent"], str(row["template"])) for row in rows if row["template"] in taken]


def sources() -> Tasks:
    places = [row["intent"] for row in _lines("retrieval/webarena-intents/tasks.jsonl") if row["sites"] == ["map"]]
    several = {
        "mbpp": [row["prompt"] for row in _lines("programming/mbpp-py.jsonl")],
        "hotpotqa": [row["question"] for row in json.loads((DATA / "hotpotqa/distractor-100.json").read_text())],
        "map": places,
        "alfworld": [_goal(file) for file in sorted((DATA / "alfworld").rglob("game.tw-pddl"))],
        "banking": [row["text"] for row in _lines("retrieval/tau2-banking/queries.jsonl")],
    }
    return [(text, kind) for kind, texts in several.items() for text in texts[:40]]


def streams() -> Tasks:
    families: tuple[Family, ...] = ("code", "service")
    made = [Stream(family, judges=_nobody, tasks=60, drift="none") for family in families]
    return [(case.task.prompt, case.family) for stream in made for case in stream.load([])]


def conventions() -> Tasks:
    files = sorted((HERE.parent / "information/tasks").glob("*/*/task.md"))
    return [(file.read_text(), file.parts[-3]) for file in files]


def _nobody(spec: Spec) -> Evaluator:
    raise AssertionError("nothing is judged here")


def _goal(file: Path) -> str:
    """The goal of a game, as its tasks say it."""
    found = re.search(r'Your task is to: [^"\\]*', file.read_text())
    assert found, f"{file} names no goal"
    return found[0]


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]
