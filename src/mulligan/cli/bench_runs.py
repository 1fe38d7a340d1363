"""`mulligan bench runs`: the runs of benchmarks that are recorded here."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import click

from mulligan.cli.terminal import emit, say


@click.command("runs")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest first.")
def command(limit: int) -> None:
    """The runs of benchmarks, newest first."""
    from mulligan.app.config import load
    from mulligan.store.sqlite import SqliteStore

    async def lines() -> list[str]:
        store = SqliteStore(load().database)
        try:
            found = list[str]()
            for run in await store.benches.runs(limit):
                results = await store.benches.results(run.id)
                solved = sum(result.solved for result in results)
                when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created))
                strategy = cast(str | None, run.options.get("strategy")) or "-"
                how = f"{len(results)} of {len(run.cases)} ended, {solved} solved"
                found.append(f"{run.id}  {when}  {run.benchmark}  {strategy}  {how}")
            return found
        finally:
            await store.close()

    rows = asyncio.run(lines())
    for row in rows:
        emit(row)
    if not rows:
        say("No benchmark was run here yet: mulligan bench run NAME")
