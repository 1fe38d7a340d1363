"""Writes the tasks of the study, as they are made from their settings: `python studies/streams/fix.py`.

It was run once, before any model saw a task. `tests/studies/test_streams_study.py` compares what it wrote with what the
settings give today.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mulligan.bench.harness.plan import open_benchmark
from mulligan.sandbox.local import LocalSandbox

HERE = Path(__file__).parent
SETTINGS: dict[str, dict[str, Any]] = {
    "database": {"seed": 17, "tasks": 36, "drift": "middle", "announce": True, "kinds": 4},
    "code": {"seed": 17, "tasks": 36, "drift": "middle", "announce": True, "kinds": 6},
}


def made(family: str) -> dict[str, Any]:
    """The settings, and the tasks with their hidden targets, as JSON."""
    _, benchmark, _ = open_benchmark(f"stream:{family}", SETTINGS[family], LocalSandbox())
    cases = [
        {"id": case.id, "prompt": case.task.prompt, "inputs": dict(case.task.inputs), "target": case.target}
        for case in benchmark.load([])
    ]
    return {"benchmark": f"stream:{family}", "settings": SETTINGS[family], "cases": cases}


if __name__ == "__main__":
    for family in SETTINGS:
        text = json.dumps(made(family), indent=1, ensure_ascii=False)
        (HERE / f"{family}.json").write_text(f"{text}\n", encoding="utf-8")
