"""`mulligan bench export`: writes a run of ALFWorld in the format of Reflexion's code."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from mulligan.app.config import load
from mulligan.bench.harness.summary import result_files
from mulligan.cli.terminal import emit
from mulligan.core.benchmarks import ResultFile
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
    "--start", type=click.IntRange(min=0), default=0, metavar="N", help="The first file's number (default: 0)."
)
def command(run: str, folder: Path, start: int) -> None:
    """Write the results of an ALFWorld RUN in the format that Reflexion's code uses, with one file per try."""

    async def work() -> Sequence[ResultFile]:
        config = load()
        async with open_store(config.store) as store:
            return await result_files(run, store, config, start)

    files = asyncio.run(work())
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file.name).write_text(file.text, encoding="utf-8")
        emit(f"{folder / file.name}: {file.successes} of {file.total} solved")
