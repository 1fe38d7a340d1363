"""`mulligan bench list` and `mulligan bench fetch`: which benchmarks there are, and their pinned data."""

from __future__ import annotations

import json

import click

from mulligan.bench.harness.fetching import fetch_benchmark
from mulligan.bench.harness.listing import Listed, listed
from mulligan.cli.counting import Counting
from mulligan.cli.models import downloading
from mulligan.cli.options import format_option, quiet_option
from mulligan.cli.terminal import drawn, emit, say


@click.command("list")
@format_option("table", "json")
def listing(form: str) -> None:
    """List the benchmarks, their cuts and methods, and whether their data is downloaded."""

    def entry(one: Listed) -> str:
        lines = [one.name, f"  {one.title}", f"  data: {one.folder or one.missing}"]
        for cut in one.cuts:
            details = [cut.title] if cut.title != one.title else []
            details += [cut.folder or cut.missing] if cut.folder != one.folder or cut.missing != one.missing else []
            lines.append(": ".join([f"  {cut.name}", *(["; ".join(details)] if details else [])]))
        lines.append("  methods:")
        lines += [f"    {name}: {summary}".removesuffix(": ") for name, summary in one.methods.items()]
        return "\n".join(lines)

    found = listed()
    if form == "json":
        emit(json.dumps([one.to_json() for one in found], ensure_ascii=False, indent=1))
    else:
        emit(drawn(["\n\n".join(map(entry, found))], [(r"\S+$", "bold")]))


@click.command("fetch")
@click.argument("name")
@quiet_option
def fetch(name: str, quiet: bool) -> None:
    """Download the data of the benchmark NAME. An interrupted download continues where it stopped."""
    try:
        with Counting(quiet) as shown:
            files = fetch_benchmark(name, downloading(shown))
    except KeyboardInterrupt:
        say(f"\nTo resume the download: mulligan bench fetch {name}")
        raise
    for file in files:
        emit(str(file))
