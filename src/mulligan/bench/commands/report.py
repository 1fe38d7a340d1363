"""`mulligan bench report`: prints the figures of benchmark runs, and writes their learning curve and gallery."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from mulligan.bench.commands._output import json_text
from mulligan.bench.harness.plan import is_stream
from mulligan.bench.report.figures import Recorded, as_json, make_report, read_run
from mulligan.bench.report.gallery import targets_of, write_gallery
from mulligan.bench.report.page import page, summary
from mulligan.bench.report.plot import by_tries, check_ending, write
from mulligan.bench.report.stream import StreamReport, read_stream, stream_page
from mulligan.cli.options import format_option
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import drawn, page_text, put, say
from mulligan.core.protocols import Store
from mulligan.core.records import Json
from mulligan.text.pages import Block, markdown, plain
from mulligan.text.web_pages import html

STYLES = ((r"(Run|Solved) ", "bold"), (r"(Cost|All tables)", "dim"), (r"SCRIPTED", "yellow"))
"""The styles of the summary on a terminal, by patterns of its lines."""


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@format_option("table", "json", "md", "html", help="Output format (md is Markdown, and html is a single file).")
@click.option("--full", is_flag=True, help="Print all tables, not just the result.")
@click.option("-o", "--output", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option("--plot", metavar="FILE", help="Write the learning curve to FILE as SVG.")
@click.option(
    "--gallery", metavar="PATH", help="Write a gallery of the unsolved cases to a .md or .html file, or to a folder."
)
@click.option("--all", "every", is_flag=True, help="Include all cases in the gallery, even solved ones.")
@click.option("--show-targets", is_flag=True, help="Show hidden targets and score explanations in the gallery.")
def command(
    runs: tuple[str, ...],
    form: str,
    full: bool,
    output: str | None,
    plot: str | None,
    gallery: str | None,
    every: bool,
    show_targets: bool,
) -> None:
    """Report the figures for one or more runs and compare each run with the first.

    The command can also report on a single stream.
    """
    if (every or show_targets) and gallery is None:
        raise click.UsageError("--all and --show-targets need --gallery PATH.")
    if plot is not None:
        check_ending(plot)

    async def read_one_stream(store: Store) -> StreamReport | None:
        return await read_stream(store, runs[0]) if is_stream(await store.benches.run(runs[0])) else None

    async def read_runs(store: Store) -> list[Recorded]:
        return [await read_run(store, run) for run in runs]

    if len(runs) == 1 and (stream := with_store(read_one_stream)):
        if plot or gallery:
            raise click.UsageError(
                f"{runs[0]} is a stream. To write its curve: mulligan bench stream --resume ID --into DIR"
            )
        put(_rendered(stream_page(stream), stream.to_json(), form, output), output)
        return

    recorded = with_store(read_runs)
    report = make_report(recorded)
    targets = [targets_of(record.run) for record in recorded] if show_targets else []
    picture = write(by_tries(report), Path(plot), Path(output or ".").parent) if plot else None
    if plot is not None:
        say(f"Wrote {plot}")
    if form == "table" and not full and output is None:
        put(drawn(plain(summary(report)).splitlines(), STYLES), output)
        say(f"All tables: mulligan bench report {' '.join(runs)} --full")
    else:
        put(_rendered(page(report, picture), as_json(report), form, output), output)
    if gallery is not None:
        say(write_gallery(gallery, recorded, "html" if form == "html" else "md", every, targets))


def _rendered(blocks: Sequence[Block], data: Json, form: str, output: str | None) -> str:
    """The whole report in a format. output: the file that it is written to, if it is not printed."""
    if form == "json":
        return json_text(data)
    if form == "html":
        return html("Benchmark report", blocks)
    if form == "md":
        return markdown(blocks)
    return plain(blocks) if output else page_text(blocks)
