"""Runs the study of what memory costs, or resumes it: `python studies/price/run.py`.

Each code base is a stream of its own, found again in the store by its seed, arms and model, so the same command resumes
after a kill. It uses the store of the working folder's configuration: give it one of its own (`MULLIGAN_HOME`).
README.md says what was fixed beforehand; `fixed.json` holds the digests of the tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mulligan.app.config import load
from mulligan.bench.harness.plan import STREAM, open_benchmark
from mulligan.bench.harness.stream import StreamChoice, resume_stream, run_stream
from mulligan.core.benchmarks import BenchRun
from mulligan.core.codec import digest
from mulligan.core.protocols import Store
from mulligan.sandbox.local import LocalSandbox
from mulligan.store import open_store

HERE = Path(__file__).parent
BENCHMARK = "stream:code"
MODEL = "local:qwen2.5-coder-1.5b"
SEEDS = (149, 151, 157, 163, 167, 173, 179, 181)
"""Of the code bases: the eight primes after 139, the last that an earlier start of this study had fixed."""
ARMS = ("none", "default")
RIVALS, RIVAL_SEEDS = ("none", "history", "none-x3"), (149, 151)
"""Arms that run beside on two of them. The requests of `none` were answered already, and are not asked again."""
DRIFT_SEEDS = (191, 193, 197, 199)
"""Of the code bases whose conventions all change after a third of the tasks, unannounced."""


def settings(seed: int) -> dict[str, Any]:
    if seed in DRIFT_SEEDS:
        return {"seed": seed, "tasks": 36, "drift": 13, "announce": False, "all_change": True, "kinds": 12}
    return {"seed": seed, "tasks": 36, "drift": "middle", "announce": True, "kinds": 12}


def task_digest(seed: int) -> str:
    """The same for the same tasks, with their hidden targets."""
    _, benchmark, _ = open_benchmark(BENCHMARK, settings(seed), LocalSandbox())
    return digest([[case.id, case.task.prompt, dict(case.task.inputs), case.target] for case in benchmark.load([])])


async def ran(store: Store, seed: int, arms: Sequence[str], model: str) -> BenchRun:
    for run in await store.benches.runs(1000):
        if run.benchmark == f"{STREAM}{BENCHMARK}":
            choice = StreamChoice.of(run.options)
            table: Mapping[str, Any] = (choice.base.settings or {}).get("benchmark", {})
            names = [arm.name for arm in choice.arms]
            if (table.get("seed"), names, choice.base.model) == (seed, [*arms], model):
                return await resume_stream(run.id, store=store)
    given = {"benchmark": settings(seed)}
    return await run_stream(BENCHMARK, arms=arms, orders=1, model=model, store=store, settings=given)


async def everything(model: str, seeds: Sequence[int]) -> None:
    fixed: dict[str, str] = json.loads((HERE / "fixed.json").read_text("utf-8"))
    for seed in seeds:
        if fixed[str(seed)] != task_digest(seed):
            raise SystemExit(f"The tasks of code base {seed} are not those that were fixed.")
    address = load().store
    async with open_store(address) as store:
        rivals = [seed for seed in RIVAL_SEEDS if seed in seeds]
        for seed, arms in [*((seed, ARMS) for seed in seeds), *((seed, RIVALS) for seed in rivals)]:
            run = await ran(store, seed, arms, model)
            print(f"code base {seed}, {', '.join(arms)}: stream {run.id} is whole", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Runs the study of what memory costs, or resumes it.")
    parser.add_argument("--model", default=MODEL, help=f"default: {MODEL}")
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        choices=(*SEEDS, *DRIFT_SEEDS),
        default=SEEDS,
        help="code bases of this process (default: the eight that change in the middle)",
    )
    parser.add_argument("--fix", action="store_true", help="write fixed.json instead, before any model sees a task")
    given = parser.parse_args()
    if given.fix:
        digests = {str(seed): task_digest(seed) for seed in (*SEEDS, *DRIFT_SEEDS)}
        (HERE / "fixed.json").write_text(f"{json.dumps(digests, indent=1)}\n", encoding="utf-8")
    else:
        asyncio.run(everything(given.model, given.seeds))
