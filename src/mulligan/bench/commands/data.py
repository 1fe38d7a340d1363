"""`mulligan bench list` and `mulligan bench fetch`: the benchmarks, and their data."""

from __future__ import annotations

import json

import click

from mulligan.bench.harness.fetching import fetch_benchmark
from mulligan.bench.harness.listing import Listed, list_benchmarks
from mulligan.cli.counting import Counting
from mulligan.cli.models import downloading
from mulligan.cli.options import format_option, quiet_option
from mulligan.cli.terminal import drawn, emit, say


@click.command("list")
@format_option("table", "json")
def listing(form: str) -> None:
    """List the benchmarks with their subsets and methods, and show whether their data has been downloaded."""

    benchmarks = list_benchmarks()
    if form == "json":
        emit(json.dumps([benchmark.to_json() for benchmark in benchmarks], ensure_ascii=False, indent=1))
    else:
        emit(drawn(["\n\n".join(map(_entry, benchmarks))], [(r"\S+$", "bold")]))


def _entry(benchmark: Listed) -> str:
    """A benchmark in lines. Its cuts say only what differs from the benchmark."""
    lines = [benchmark.name, f"  {benchmark.title}", f"  data: {benchmark.folder or benchmark.missing}"]
    for cut in benchmark.cuts:
        details = [cut.title] if cut.title != benchmark.title else []
        if (cut.folder, cut.missing) != (benchmark.folder, benchmark.missing):
            details.append(cut.folder or cut.missing)
        lines.append(f"  {cut.name}: {'; '.join(details)}".removesuffix(": "))
    lines.append("  methods:")
    lines += [f"    {name}: {summary}".removesuffix(": ") for name, summary in benchmark.methods.items()]
    return "\n".join(lines)


@click.command("fetch")
@click.argument("name")
@quiet_option
def fetch(name: str, quiet: bool) -> None:
    """Download the data for benchmark NAME. An interrupted download continues where it stopped."""
    try:
        with Counting(quiet) as counting:
            files = fetch_benchmark(name, downloading(counting))
    except KeyboardInterrupt:
        say(f"\nTo resume the download: mulligan bench fetch {name}")
        raise
    for file in files:
        emit(str(file))
