"""Grading throughput: the 164 HumanEval items with their canonical solutions, full isolation, two at a time.

    python perf/grading.py [../shared/data/programming/HumanEval.jsonl.gz]

Prints items per second and CPU milliseconds per item: of the grading process and of all it started, the sandbox's
supervisors included (they are adopted and waited for, so that none is missed; Linux only).
"""

import asyncio
import ctypes
import gzip
import json
import os
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
PR_SET_CHILD_SUBREAPER = 36


async def graded(rows: list[dict[str, Any]], sandbox: LocalSandbox) -> list[Feedback]:
    waiting = asyncio.Semaphore(WORKERS)

    async def one(row: dict[str, Any]) -> Feedback:
        async with waiting:
            tests = UnitTests(f"{row['test']}\n\ncheck({row['entry_point']})\n", sandbox=sandbox)
            attempt = Attempt(row["prompt"] + row["canonical_solution"])
            return await tests.evaluate(Episode("perf", Task(""), trials=(Trial(1, attempt),)))

    return await asyncio.gather(*map(one, rows))


def run(path: Path) -> None:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    sandbox = LocalSandbox()
    started = time.perf_counter()
    verdicts = asyncio.run(graded(rows, sandbox))
    seconds = time.perf_counter() - started
    outside = sum(not verdict.notes for verdict in verdicts)
    print(f"isolation: {sandbox.level}; {WORKERS} workers; {outside} of {len(rows)} by the outside path")
    print(f"verdicts: {dict(Counter(str(verdict.passed) for verdict in verdicts))}")
    print(f"{len(rows) / seconds:.1f} items/s (load average {os.getloadavg()[0]:.1f})", flush=True)


def main(path: Path) -> None:
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if not os.fork():
        run(path)
        sys.exit()
    try:
        while True:
            os.wait()
    except ChildProcessError:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{1000 * (used.ru_utime + used.ru_stime) / 164:.1f} ms CPU per item, start of Python included")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
