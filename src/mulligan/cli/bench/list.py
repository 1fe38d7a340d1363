"""`mulligan bench list`: lists the benchmarks."""

from __future__ import annotations

import json

import click

from mulligan.bench.harness.listing import Listed, listed
from mulligan.cli.options import format_option
from mulligan.cli.terminal import emit


@click.command("list")
@format_option("table", "json")
def command(form: str) -> None:
    """List the benchmarks, their cuts and methods, and whether their data is here."""

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
        emit("\n\n".join(map(entry, found)))
