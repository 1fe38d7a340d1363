"""Base and plus scores of EvalPlus's canonical programs and of emptied ones, judged as `bench score` judges them.

    python perf/evalplus.py [FOLDER] [--json] [humanevalplus mbppplus humanevalplus:origin mbppplus:origin]

Canonical programs have to pass, emptied ones (`pass` for a body) to fail. Those that do not are named, with the reason.
Times are wall time for all cases, each in sandboxes of its own, the canonical program's own results included.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mulligan.bench.harness.plan import open_benchmark
from mulligan.bench.harness.scoring import Scored, Setting, score_samples
from mulligan.sandbox.local import LocalSandbox

ALL = ("humanevalplus", "mbppplus", "humanevalplus:origin", "mbppplus:origin")


def programs(name: str, folder: Path, kind: str) -> list[dict[str, str]]:
    """A sample for each case: its canonical program, or one whose function does nothing."""
    _, benchmark, _ = open_benchmark(name, {}, LocalSandbox())
    found = list[dict[str, str]]()
    for case in benchmark.load([folder / benchmark.data]):
        target: Any = case.target
        empty = f"def {target['entry_point']}(*args, **named):\n    pass\n"
        found.append({"task_id": case.id, "solution": target["solution"] if kind == "canonical" else empty})
    return found


async def judged(name: str, folder: Path, kind: str) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(map(json.dumps, programs(name, folder, kind))))
        file.flush()
        began = time.perf_counter()
        scored: Scored = await score_samples(name, file.name, Setting(data=str(folder)))
    odd = [one for one in scored.judged if one.passed is not (kind == "canonical")]
    return {
        "benchmark": name,
        "programs": kind,
        "n": len(scored.judged),
        **{part: sum(one.parts.get(part) == 1 for one in scored.judged) for part in ("base", "plus")},
        "unjudged": sum(one.value is None for one in scored.judged),
        "seconds": round(time.perf_counter() - began, 1),
        "odd": {one.sample.case: one.text for one in odd},
    }


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--json"]
    names = [word for word in words if word.partition(":")[0] in ALL] or ALL
    folders = [word for word in words if word not in names]
    folder = Path(folders[0] if folders else os.environ.get("MULLIGAN_DATA", "../shared/data/programming"))
    for name in names:
        for kind in ("canonical", "emptied"):
            figures = asyncio.run(judged(name, folder, kind))
            if "--json" in sys.argv:
                print(json.dumps(figures), flush=True)
                continue
            odd: dict[str, str] = figures.pop("odd")
            print("  ".join(f"{key} {value}" for key, value in figures.items()), flush=True)
            print("".join(f"    {id}: {text}\n" for id, text in odd.items()), end="", flush=True)


if __name__ == "__main__":
    main()
