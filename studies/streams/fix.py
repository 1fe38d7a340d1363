"""Writes the tasks of the study, as they are made from their settings: `python studies/streams/fix.py`.

It was run before any model saw a task of the file. `tests/studies/test_streams_study.py` compares what it wrote with
what the settings give today.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mulligan.bench.harness.plan import open_benchmark
from mulligan.sandbox.local import LocalSandbox

HERE = Path(__file__).parent
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "database": ("stream:database", {"seed": 17, "tasks": 36, "drift": "middle", "announce": True, "kinds": 4}),
    "code": ("stream:code", {"seed": 17, "tasks": 36, "drift": "middle", "announce": True, "kinds": 6}),
    "wide": ("stream:code", {"seed": 53, "tasks": 48, "drift": "middle", "announce": True, "kinds": 12}),
    **{
        f"base-{seed}": (
            "stream:code",
            {"seed": seed, "tasks": 36, "drift": "middle", "announce": True, "kinds": 12},
        )
        for seed in (59, 61, 67, 71)
    },
}
"""The benchmark and its settings, by the name of the file."""


def made(name: str) -> dict[str, Any]:
    """The settings, and the tasks with their hidden targets, as JSON."""
    family, settings = SETTINGS[name]
    _, benchmark, _ = open_benchmark(family, settings, LocalSandbox())
    cases = [
        {"id": case.id, "prompt": case.task.prompt, "inputs": dict(case.task.inputs), "target": case.target}
        for case in benchmark.load([])
    ]
    return {"benchmark": family, "settings": settings, "cases": cases}


if __name__ == "__main__":
    for name in SETTINGS:
        text = json.dumps(made(name), indent=1, ensure_ascii=False)
        (HERE / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
