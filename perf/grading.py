"""Grading throughput: the 164 HumanEval items with their canonical solutions, full isolation, two at a time.

    python perf/grading.py [../shared/data/programming/HumanEval.jsonl.gz]

Prints items per second and CPU milliseconds per item (our process and all its children).
"""

import asyncio
import gzip
import json
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.unit_tests import UnitTests
from mulligan.sandbox.local import LocalSandbox

DATA = Path(__file__).parent.parent.parent / "shared/data/programming/HumanEval.jsonl.gz"
WORKERS = 2


def cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


async def graded(rows: list[dict[str, Any]], sandbox: LocalSandbox) -> list[Feedback]:
    waiting = asyncio.Semaphore(WORKERS)

    async def one(row: dict[str, Any]) -> Feedback:
        async with waiting:
            tests = UnitTests(f"{row['test']}\n\ncheck({row['entry_point']})\n", sandbox=sandbox)
            attempt = Attempt(row["prompt"] + row["canonical_solution"])
            return await tests.evaluate(Episode("perf", Task(""), trials=(Trial(1, attempt),)))

    return await asyncio.gather(*map(one, rows))


def main(path: Path) -> None:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    sandbox = LocalSandbox()
    started, used = time.perf_counter(), cpu()
    verdicts = asyncio.run(graded(rows, sandbox))
    seconds, used = time.perf_counter() - started, cpu() - used
    outside = sum(not verdict.notes for verdict in verdicts)
    print(f"isolation: {sandbox.level}; {WORKERS} workers; {outside} of {len(rows)} by the outside path")
    print(f"{dict(Counter(str(verdict.passed) for verdict in verdicts))}")
    print(f"{len(rows) / seconds:.1f} items/s, {1000 * used / len(rows):.1f} ms CPU per item")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
