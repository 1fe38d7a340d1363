"""`mulligan bench runs`: lists the recorded benchmark runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from mulligan.bench.harness.plan import STREAM, options_of_today
from mulligan.cli.options import limit_option
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import columns, emit, newest, say
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.protocols import Store
from mulligan.text.figures import when

HEADINGS = ("run", "when", "benchmark", "method", "result")


@click.command("runs")
@limit_option(20)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    help="Output format.",
)
def command(limit: int, form: str) -> None:
    """List the benchmark runs, newest first."""

    async def read(store: Store) -> list[dict[str, Any]]:
        runs = newest(await store.benches.runs(limit + 1), limit)
        return [facts(run, await store.benches.results(run.id)) for run in runs]

    runs = with_store(read)
    if form == "json":
        emit(json.dumps(runs, ensure_ascii=False, indent=2))
        return
    if runs:
        emit(columns([HEADINGS, *(_cells(run) for run in runs)], shorten=(3, 2)))
    else:
        say("No benchmark runs recorded here yet. Start one with: mulligan bench run NAME")


def _cells(run: dict[str, Any]) -> tuple[str, ...]:
    began = when(run["created"])
    if run["benchmark"].startswith(STREAM):
        tasks = run["benchmark"].removeprefix(STREAM)
        return run["run"], began, tasks, "a stream", f"mulligan bench report {run['run']}"
    method = " with ".join(name for name in (run["method"], run["strategy"]) if name) or "-"
    result = f"{run['ended']} of {run['cases']} ended, {run['solved']} solved"
    return run["run"], began, run["benchmark"], method, result


def facts(run: BenchRun, results: Sequence[CaseResult]) -> dict[str, Any]:
    """A run of the list, as JSON."""
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
