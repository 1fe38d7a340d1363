"""Does reflecting help a small local model on HumanEval? Four strategies over the 41 items of `cases.py`.

    pip install -c constraints.txt ".[local]"
    mulligan models pull qwen2.5-coder-1.5b
    setsid nohup python studies/humaneval/run.py --into DIR &

`simple` is one attempt; `resample`, `immediate-refinement` and `reflexion` have three each, driven by tests that the
model writes itself; the hidden tests judge afterwards. All take the same seed, and each takes the answers that the same
request already had (`reuse`), so that first attempts and internal tests are the same in all four.

Everything is in DIR: the store, `state.json`, and in the end `report.md`, `report.json`, `curve.svg` and `gallery/`.
A study that was killed is started again by the same command, and goes on where it was. `--report` only writes the
report of what there is. Tokens per second are of the calls that were really made, over the wall time of the runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from cases import CASES, SEED, STRATEGIES, TRIALS

from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import choice_of
from mulligan.bench.harness.running import resume_benchmark, run_benchmark
from mulligan.bench.report.figures import as_json, make_report, read_run
from mulligan.bench.report.gallery import write_gallery
from mulligan.bench.report.page import page
from mulligan.bench.report.plot import by_tries, write
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import LeaseLost
from mulligan.store.sqlite import SqliteStore
from mulligan.text.pages import markdown, plain

LEASE_WAIT = 90.0
"""Seconds that a run's lease may outlive the process that was killed, with room to spare."""


@dataclass
class Clock:
    """What a strategy took so far, over all processes: wall seconds, and the calls and tokens really made."""

    file: Path
    strategy: str
    _since: float = field(default_factory=time.monotonic)

    def keep(self, run: str = "", usage: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Written whole, then put in place: a kill leaves the old state or the new one."""
        state = read_state(self.file)
        mine = state.setdefault(self.strategy, {"run": "", "seconds": 0.0, "calls": 0, "in": 0, "out": 0})
        now = time.monotonic()
        mine["seconds"] = round(mine["seconds"] + now - self._since, 3)
        self._since = now
        mine["run"] = run or mine["run"]
        if usage:
            mine["calls"] += usage.get("calls", 1)
            mine["in"] += usage.get("input_tokens", 0)
            mine["out"] += usage.get("output_tokens", 0)
        whole = self.file.with_suffix(".new")
        whole.write_text(json.dumps(state, indent=2), encoding="utf-8")
        os.replace(whole, self.file)
        return mine


def read_state(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", file=sys.stderr, flush=True)


@dataclass
class Study:
    """One strategy after the other. model: a name, or an object. items: of `CASES`, in their order."""

    into: Path
    model: Any
    data: str | None = None
    items: int = len(CASES)
    strategies: Sequence[str] = STRATEGIES
    trials: int = TRIALS

    async def run(self) -> str:
        self.into.mkdir(parents=True, exist_ok=True)
        store = SqliteStore(self.into / "study.db")
        try:
            for strategy in self.strategies:
                await self._patiently(store, strategy)
            return await self.report(store)
        finally:
            await store.close()

    async def _patiently(self, store: SqliteStore, strategy: str) -> None:
        """Waits for the lease of a process that was killed to run out."""
        until = time.monotonic() + LEASE_WAIT
        while True:
            try:
                return await self._one(store, strategy)
            except LeaseLost as error:
                if time.monotonic() > until:
                    raise
                say(f"{strategy}: {error} Waiting for it.")
                await asyncio.sleep(5)

    async def _one(self, store: SqliteStore, strategy: str) -> None:
        clock = Clock(self.into / "state.json", strategy)
        known = await self._known(store, strategy)
        if known is not None and await self._ended(store, known):
            say(f"{strategy}: {known.id} has ended")
            return

        def on_case(run: BenchRun, result: CaseResult | None) -> None:
            mine = clock.keep(run.id)
            if result is not None:
                rate = mine["out"] / mine["seconds"] if mine["seconds"] else 0.0
                told = f"{result.case} {result.status}, trials {[len(one.scores) for one in result.episodes]}"
                why = f": {result.text[:200]!r}" if result.status == "error" else ""
                say(f"{strategy} {result.position}/{len(run.cases)}: {told}, {rate:.1f} tokens out/s{why}")

        def on_step(key: str, request: Any, result: Any, recorded: bool) -> None:
            if not recorded and "/model." in f"/{key}" and isinstance(result, dict):
                clock.keep(usage=result.get("usage"))

        hooks = Hooks(on_case=on_case, on_step=on_step)
        given = None if isinstance(self.model, str) else self.model
        if known is not None:
            say(f"{strategy}: going on with {known.id}")
            await resume_benchmark(known.id, model=given, store=store, hooks=hooks)
            return
        limited = {} if strategy == "simple" else {"trials": self.trials}
        await run_benchmark(
            "humaneval",
            model=self.model,
            store=store,
            hooks=hooks,
            method=strategy,
            data=self.data,
            cases=CASES[: self.items],
            seed=SEED,
            reuse=True,
            **limited,
        )

    async def _known(self, store: SqliteStore, strategy: str) -> BenchRun | None:
        """The run of this strategy, from the store itself: the state may have been written a moment too late."""
        found = [run for run in await store.benches.runs(1000) if choice_of(run.options).method == strategy]
        if len(found) > 1:
            raise SystemExit(f"{self.into} holds {len(found)} runs of {strategy}: take a folder of its own.")
        if found and found[0].cases != tuple(CASES[: self.items]):
            raise SystemExit(f"{self.into} holds a run of {strategy} over other items: take a folder of its own.")
        return found[0] if found else None

    async def _ended(self, store: SqliteStore, run: BenchRun) -> bool:
        results = await store.benches.results(run.id)
        return len(results) == len(run.cases) and all(result.status != "error" for result in results)

    async def report(self, store: SqliteStore) -> str:
        runs = [run for strategy in self.strategies if (run := await self._known(store, strategy))]
        begun = [one for run in runs if (one := await read_run(store, run.id)).results]
        if not begun:
            return "No case has ended yet."
        report = make_report(begun, every_pair=True)
        blocks = page(report, write(by_tries(report), self.into / "curve.svg", self.into))
        speed = self.speed()
        (self.into / "report.md").write_text(f"{markdown(blocks)}\n## Speed\n\n{speed}\n", encoding="utf-8")
        (self.into / "report.json").write_text(json.dumps(as_json(report), indent=2), encoding="utf-8")
        write_gallery(str(self.into / "gallery"), [run.recorded for run in report.runs], "md", False, [])
        return f"{plain(blocks)}\nSpeed\n-----\n\n{speed}\n"

    def speed(self) -> str:
        lines = ["| strategy | wall | calls made | tokens in/s | tokens out/s |", "|---|---:|---:|---:|---:|"]
        for strategy, took in read_state(self.into / "state.json").items():
            seconds = took["seconds"] or float("inf")
            rates = f"{took['in'] / seconds:.1f} | {took['out'] / seconds:.1f}"
            lines.append(f"| {strategy} | {took['seconds'] / 60:.1f} min | {took['calls']} | {rates} |")
        return "\n".join(lines)


async def only_report(study: Study) -> str:
    store = SqliteStore(study.into / "study.db")
    try:
        return await study.report(store)
    finally:
        await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, required=True, help="the folder that holds all of the study")
    parser.add_argument("--model", default="local:qwen2.5-coder-1.5b")
    parser.add_argument("--data", help="the data, if MULLIGAN_DATA does not say where it is")
    parser.add_argument("--items", type=int, default=len(CASES), help="only the first N items, to try it")
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    parser.add_argument("--report", action="store_true", help="only write the report of what there is")
    given = parser.parse_args()
    study = Study(given.into.resolve(), given.model, given.data, given.items, given.strategies.split(","), given.trials)
    print(asyncio.run(only_report(study) if given.report else study.run()))
