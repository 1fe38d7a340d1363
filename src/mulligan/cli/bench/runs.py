"""`mulligan bench runs`: lists the recorded benchmark runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from mulligan.app.config import load
from mulligan.bench.harness.plan import STREAM, options_of_today
from mulligan.cli.terminal import emit, say
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.store import open_store


@click.command("runs")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest first.")
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="A JSON list for programs."
)
def command(limit: int, form: str) -> None:
    """List the benchmark runs, newest first."""

    async def found() -> list[dict[str, Any]]:
        async with open_store(load().store) as store:
            return [facts(run, await store.benches.results(run.id)) for run in await store.benches.runs(limit)]

    runs = asyncio.run(found())
    if form == "json":
        emit(json.dumps(runs, ensure_ascii=False, indent=2))
        return
    for run in runs:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run["created"]))
        how = f"{run['ended']} of {run['cases']} ended, {run['solved']} solved"
        if run["benchmark"].startswith(STREAM):
            tasks = run["benchmark"].removeprefix(STREAM)
            emit(f"{run['run']}  {when}  {tasks}  a stream: mulligan bench stream --resume {run['run']}")
            continue
        method = " with ".join(name for name in (run["method"], run["strategy"]) if name) or "-"
        emit(f"{run['run']}  {when}  {run['benchmark']}  {method}  {how}")
    if not runs:
        say("No benchmark run is recorded here yet. Start one with: mulligan bench run NAME")


def facts(run: BenchRun, results: Sequence[CaseResult]) -> dict[str, Any]:
    options = options_of_today(run.options)
    counts: Counter[str] = Counter(result.status for result in results)
    return {
        "run": run.id,
        "benchmark": run.benchmark,
        "method": options.get("method"),
        "strategy": options.get("strategy"),
        "model": run.options.get("model"),
        "created": run.created,
        "cases": len(run.cases),
        "ended": len(results),
        **{status: counts[status] for status in ("solved", "failed", "unjudged", "error")},
    }
