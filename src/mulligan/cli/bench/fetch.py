"""`mulligan bench fetch`: downloads the pinned data of a benchmark into the cache and checks it."""

from __future__ import annotations

import click

from mulligan.bench.harness.fetching import fetch_benchmark
from mulligan.cli.models import DownloadProgress
from mulligan.cli.terminal import emit, say
from mulligan.models.weights import silent


@click.command("fetch")
@click.argument("name")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr, only errors.")
def command(name: str, quiet: bool) -> None:
    """Fetch the data of the benchmark NAME. An interrupted fetch resumes where it stopped."""
    try:
        files = fetch_benchmark(name, silent if quiet else DownloadProgress().report)
    except KeyboardInterrupt:
        say(f"\nTo resume the download: mulligan bench fetch {name}")
        raise
    for file in files:
        emit(str(file))
