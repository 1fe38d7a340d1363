"""How fast `rust_tests` judges HumanEval-rs: all 156 items in one run, each compiled and run in the sandbox.

    python perf/rust.py [humaneval-rs.jsonl] [--json]

Items with a solution of our own (rust_solutions.rs) have to pass. The others get the body `unimplemented!()`, which has
to compile and to fail every test. The reference's executor took 3.7 s for an item (0.27 items/s).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mulligan.core.records import Attempt, Episode, Feedback, Task, Trial
from mulligan.evaluators.rust_tests import RustTests
from mulligan.sandbox.local import LocalSandbox
from mulligan.text.programs import program

REFERENCE = 0.27


def solutions() -> dict[str, str]:
    """Our own, by the name of their item."""
    parts = (Path(__file__).parent / "rust_solutions.rs").read_text(encoding="utf-8").split("\n//// ")[1:]
    return {name: code for name, _, code in (part.partition("\n") for part in parts)}


def ended(feedback: Feedback) -> str:
    """Of an item: passed, failed, refused (the code does not compile) or unfit (a test of its own does not)."""
    if feedback.passed:
        return "passed"
    if "does not compile, so" in feedback.text or "cannot be compiled" in feedback.text:
        return "refused"
    return "unfit" if "does not compile with the code" in feedback.text else "failed"


async def run(rows: list[dict[str, Any]]) -> tuple[dict[str, Feedback], float]:
    """The feedback by item, and the seconds that it took."""
    sandbox, own = LocalSandbox(), solutions()
    gate = asyncio.Semaphore(os.cpu_count() or 1)

    async def judge(row: dict[str, Any]) -> tuple[str, Feedback]:
        code = own.get(str(row["name"])) or "    unimplemented!()\n}\n"
        code = program(code, row["prompt"], "rs", is_code=True)  # as the benchmarks do
        episode = Episode(row["name"], Task(row["prompt"]), trials=(Trial(1, Attempt(code)),))
        async with gate:
            return row["name"], await RustTests(row["test"], sandbox=sandbox, seconds=10).evaluate(episode)

    RustTests.ready()
    started = time.perf_counter()
    found = await asyncio.gather(*map(judge, rows))
    return dict(found), time.perf_counter() - started


def main() -> None:
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    folder = Path(os.environ.get("MULLIGAN_DATA", "../shared/data"))
    file = Path(named[0]) if named else folder / "programming" / "humaneval-rs.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found, seconds = asyncio.run(run(rows))
    counts = Counter(map(ended, found.values()))
    rate = len(rows) / seconds
    ours = solutions().keys() & found.keys()
    right = sum(found[name].passed is True for name in ours)
    wrong = sorted(n for n, f in found.items() if f.passed is not (n in ours) or ended(f) in ("refused", "unfit"))
    figures = {
        "items": len(rows), "seconds": round(seconds, 2), "items_per_second": round(rate, 2),
        "times_the_reference": round(rate / REFERENCE, 1), **counts, "own_solutions": len(ours), "of_them_right": right,
    }  # fmt: skip
    if "--json" in sys.argv:
        print(json.dumps(figures))
    else:
        print("\n".join(f"{name:20} {value}" for name, value in figures.items()))
    for name in wrong:
        print(f"\nnot as expected: {name}\n{found[name].text}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
