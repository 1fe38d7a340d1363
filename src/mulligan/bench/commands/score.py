"""`mulligan bench score`: judges solutions that were generated elsewhere with a benchmark's hidden tests."""

from __future__ import annotations

import asyncio
import json
import textwrap
from functools import partial
from typing import Any

import click

from mulligan.bench.harness.scoring import Scored, Setting, score_samples
from mulligan.cli.counting import Counting
from mulligan.cli.errors import UNFINISHED
from mulligan.cli.main import run
from mulligan.cli.options import BENCH_ROLES, format_option, quiet_option, settings
from mulligan.cli.terminal import emit, say
from mulligan.core.rates import rate
from mulligan.text.plain import count


@click.command("score")
@click.argument("name")
@click.option(
    "--samples",
    required=True,
    metavar="FILE",
    help="A .jsonl or .jsonl.gz file whose rows contain task_id and completion.",
)
@format_option("table", "json")
@click.option("--data", metavar="PATH", help="The benchmark's data: a file, or the folder that contains it.")
@click.option(
    "--parallel", type=int, metavar="N", help="Number of samples to judge in parallel (default: one per processor)."
)
@click.option(
    "--sandbox", default="auto", metavar="LEVEL", help="Sandbox level: auto (default), strict, or a level's name."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=settings(BENCH_ROLES),
    metavar="benchmark.KEY=VALUE",
    help="A setting of the benchmark, such as benchmark.seconds=20.",
)
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    samples: str,
    form: str,
    quiet: bool,
    settings: dict[str, dict[str, Any]],
    **options: Any,
) -> None:
    """Use benchmark NAME's hidden tests to judge solutions that were generated elsewhere."""
    if unknown := set(settings) - {"benchmark"}:
        raise click.UsageError(f"--set {min(unknown)}.…: this command accepts only benchmark.KEY=VALUE.")
    setting = Setting(settings=settings.get("benchmark", {}), **options)
    try:
        with Counting(quiet) as counting:
            scored = run(score_samples(name, samples, setting, partial(counting.at, "judging")), lambda: None)
    except asyncio.CancelledError:
        say("Interrupted: no score was kept.")
        ctx.exit(UNFINISHED)
    emit(json.dumps(scored.to_json(), ensure_ascii=False, indent=1) if form == "json" else _table(scored))


def _table(scored: Scored) -> str:
    ids = scored.ids()
    n, solved = sum(map(len, ids.values())), len(ids["solved"])
    share = rate(solved, n - len(ids["unjudged"]))
    interval = "" if share.low is None else f" (95 % interval of the rate: {share.low:.3f} to {share.high:.3f})"
    lines = [f"{scored.benchmark}: {solved} of {n} solved{interval}"]
    if len(scored.judged) > n:
        lines.append(f"{count(len(scored.judged), 'sample')}; a case is solved when any of its samples is")
    lines += [f"pass@{k}: {value:.4f}" for k, value in scored.pass_at().items()]
    lines += [f"{part} pass@{k}: {value:.4f}" for part in scored.parts() for k, value in scored.pass_at(part).items()]
    for status, cases in {**ids, "no sample": scored.missing}.items():
        if cases:
            lines.append(f"{status} ({len(cases)}):")
            lines.append(textwrap.fill(" ".join(cases), 110, initial_indent="  ", subsequent_indent="  "))
    return "\n".join(lines)
