"""`mulligan bench export`: writes a run in the reference's format."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from mulligan.app.config import load
from mulligan.bench.alfworld._env_results import EnvResult, env_results, file_name, rendered
from mulligan.cli.terminal import emit
from mulligan.store import open_store


@click.command("export")
@click.argument("run")
@click.option(
    "--env-results",
    "folder",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for env_results_trial_0.json, …",
)
@click.option(
    "--start", type=click.IntRange(min=0), default=0, metavar="N", help="The number of the first file (default: 0)."
)
def command(run: str, folder: Path, start: int) -> None:
    """Write the results of an ALFWorld RUN in the format of Reflexion's code: one file for each try."""

    async def work() -> Sequence[Sequence[EnvResult]]:
        config = load()
        async with open_store(config.store) as store:
            return await env_results(run, store, config)

    trials = asyncio.run(work())
    folder.mkdir(parents=True, exist_ok=True)
    for number, results in enumerate(trials, start):
        file = folder / file_name(number)
        file.write_text(rendered(results), encoding="utf-8")
        emit(f"{file}: {sum(each.is_success for each in results)} of {len(results)} solved")
