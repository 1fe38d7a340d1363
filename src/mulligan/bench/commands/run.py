"""`mulligan bench run`: runs the cases of a benchmark, several at once, or resumes a run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mulligan.app.config import load
from mulligan.bench.commands._progress import Progress
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import BenchOptions
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.bench.harness.summary import check_summary, write_summary
from mulligan.cli.main import run
from mulligan.cli.options import (
    BENCH_ROLES,
    arguments,
    given_options,
    on_option,
    quiet_option,
    record_options,
    together,
)
from mulligan.store import open_store

MIND2WEB_SETTINGS = ("split", "scores_pickle", "top_k", "prompt_template")
"""Settings of a benchmark that have an option with the same name."""
mind2web_options = together(
    click.option(
        "--split",
        metavar="NAME",
        help="For Mind2Web: the test split, test_task (default), test_website or test_domain.",
    ),
    click.option("--scores-pickle", metavar="FILE", help="For Mind2Web: the candidates' scores."),
    click.option(
        "--top-k", type=int, metavar="K", help="For Mind2Web: the number of candidates per step (default: 50)."
    ),
    click.option("--prompt-template", metavar="FILE", help="For Mind2Web: a file with your own example messages."),
)


@click.command("run")
@click.argument("name", required=False)
@click.option(
    "--resume", metavar="RUN", help="Resume this run. Finished cases are kept, and you do not pay for them again."
)
@record_options(BenchOptions, roles=BENCH_ROLES)
@on_option
@mind2web_options
@click.option(
    "--format", "form", type=click.Choice(["line", "json"]), default="line", help="Format of the result on stdout."
)
@click.option(
    "--output-dir", metavar="DIR", help="Write the benchmark's own metrics, such as Mind2Web's, to this folder."
)
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    name: str | None,
    resume: str | None,
    on: str | None,
    form: str,
    output_dir: str | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Run the cases of benchmark NAME or of a task file (mine.toml)."""
    if (name is None) == (resume is None):
        raise click.UsageError("Specify a benchmark, or a run to resume: --resume RUN.")
    if resume is not None and (
        fixed := given_options(ctx, besides=("resume", "parallel", "on", "output_dir", "form", "quiet"))
    ):
        raise click.UsageError(f"A resumed run keeps its options: omit {', '.join(fixed)}, or start a new run.")
    progress = Progress(quiet, form == "json")
    hooks = Hooks(on_case=progress.on_case, observers=(progress.on_event,), notice=progress.notice)

    async def work() -> Finished:
        if output_dir is not None:
            check_summary(await _benchmark_of(resume) if resume is not None else str(name))
        if resume is not None:
            return await resume_benchmark(resume, parallel=options["parallel"], hooks=hooks, on=on)
        choice: dict[str, Any] = {**arguments(BenchOptions, options), "settings": _all_settings(options)}
        assert name is not None
        return await run_benchmark(name, hooks=hooks, on=on, **choice)

    async def write(finished: Finished, folder: Path) -> None:
        async with open_store(load().store) as store:
            for line in await write_summary(finished, store, folder):
                progress.notice(line)

    try:
        finished = run(work(), progress.interrupting)
        status = progress.finish(finished)
        if output_dir is not None:
            asyncio.run(write(finished, Path(output_dir)))
        ctx.exit(status)
    except asyncio.CancelledError:
        ctx.exit(progress.finish_early())
    finally:
        progress.stop()


def _all_settings(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings of --set, and those with an option of their own."""
    of_benchmark = {name: options[name] for name in MIND2WEB_SETTINGS if options[name] is not None}
    settings: dict[str, dict[str, Any]] = dict(options["settings"])
    return {**settings, "benchmark": {**settings.get("benchmark", {}), **of_benchmark}} if of_benchmark else settings


async def _benchmark_of(run: str) -> str:
    async with open_store(load().store) as store:
        return (await store.benches.run(run)).benchmark
