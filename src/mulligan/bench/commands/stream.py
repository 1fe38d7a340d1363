"""`mulligan bench stream`: what a memory is worth, measured on a stream of tasks against none and other memories."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from mulligan.bench.commands._output import print_report, write_files
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import FORESIGHT, BenchOptions
from mulligan.bench.harness.running import Finished
from mulligan.bench.harness.stream import CONTROLS, Leg, StreamHooks, resume_stream, run_stream, shipped_arms
from mulligan.bench.report.stream import StreamReport, as_csv, learning_curves, read_stream, stream_page
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.main import run
from mulligan.cli.options import BENCH_ROLES, arguments, format_option, given_options, quiet_option, record_options
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import say
from mulligan.cli.words import count
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.text.pages import Picture, markdown

SET_BY_ARMS = ("restarts", "samples", "scale", "cases", "shuffle", "parallel", "reuse", "memory", "agent_id")
"""Options of a benchmark run that a stream does not have, because its arms and orders set them."""


@click.command("stream")
@click.argument("tasks", required=False)
@click.option(
    "--resume", metavar="ID", help="Resume this stream. Finished cases are kept, and you do not pay for them again."
)
@click.option(
    "--arms",
    default="none,lessons",
    show_default=True,
    metavar="A,B,…",
    help=f"The memories to compare: {', '.join(shipped_arms())}, or ./mine.toml.",
)
@click.option("--orders", type=int, default=5, show_default=True, metavar="N", help="Number of different case orders.")
@click.option(
    "--control",
    "controls",
    type=click.Choice(CONTROLS),
    multiple=True,
    help="Add a control for each memory: a bank that learned from unrelated tasks, or one that stops learning after "
    "the first phase.",
)
@click.option("--unrelated", metavar="TASKS", help="The tasks that the control `unrelated` learns from.")
@record_options(BenchOptions, roles=BENCH_ROLES, without=(*SET_BY_ARMS, *FORESIGHT))
@click.option("--into", metavar="DIR", help="Write cases.csv, curve.svg and report.md to this folder.")
@format_option("table", "md", "json")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    tasks: str | None,
    resume: str | None,
    arms: str,
    orders: int,
    controls: tuple[str, ...],
    unrelated: str | None,
    into: str | None,
    form: str,
    quiet: bool,
    **options: Any,
) -> None:
    """Run the cases in TASKS as a stream, once for each memory, and let the memories learn as they go.

    TASKS is a benchmark or a task file. The report shows how much each memory gained compared with no
    memory, what it cost, and how certain the result is.
    """
    if (tasks is None) == (resume is None):
        raise click.UsageError("Specify a benchmark or a task file, or a stream to resume: --resume ID.")
    if resume is not None and (fixed := given_options(ctx, besides=("resume", "into", "form", "quiet"))):
        raise click.UsageError(f"A resumed stream keeps its options: omit {', '.join(fixed)}.")
    counting = Counting(quiet)
    progress = Progress(counting)

    async def work() -> BenchRun:
        if resume is not None:
            return await resume_stream(resume, hooks=progress.hooks)
        assert tasks is not None
        return await run_stream(
            tasks,
            arms=[arm.strip() for arm in arms.split(",") if arm.strip()],
            orders=orders,
            controls=controls,
            unrelated=unrelated,
            hooks=progress.hooks,
            **arguments(BenchOptions, options),
        )

    try:
        with counting:
            stream = run(work(), progress.interrupting)
    except asyncio.CancelledError:
        resume_with = f"Interrupted. Resume it with: {_resume_command(progress.stream)}"
        say(resume_with if progress.stream else "Nothing was started.")
        ctx.exit(UNFINISHED)
    report = with_store(lambda store: read_stream(store, stream.id))
    if into is not None:
        _write(report, Path(into))
    print_report(stream_page(report), report.to_json(), form)
    if errors := sum(arm.errors for arm in report.arms):
        say(
            f"Excluded from the means because of errors: {count(errors, 'case')}. To retry: "
            f"{_resume_command(stream.id)}"
        )
    elif into is None and not quiet:
        say(f"To write rows, curve and report to files: {_resume_command(stream.id)} --into DIR")
    ctx.exit(UNFINISHED if errors else SOLVED)


def _write(report: StreamReport, folder: Path) -> None:
    curve = learning_curves(report).svg(alone=True)
    picture = Picture("Learning curve", "curve.svg", "image/svg+xml", curve.encode())
    page = markdown(stream_page(report, picture))
    write_files(folder, {"cases.csv": as_csv(report.rows), "curve.svg": curve, "report.md": page})


def _resume_command(id: str) -> str:
    return f"mulligan bench stream --resume {id}"


class Progress:
    """Shows a line for each leg that ends; on a terminal, also the last case that ended, and the time left."""

    def __init__(self, counting: Counting) -> None:
        self._counting, self.stream = counting, ""
        self._leg: Leg | None = None
        self._number, self._legs, self._ended = 0, 0, 0
        self._after_old_cases = False
        self.hooks = StreamHooks(self._begin, self._on_leg, Hooks(on_case=self._on_case, notice=lambda _: None))

    def _begin(self, stream: BenchRun) -> None:
        self.stream = stream.id
        legs = count(len(stream.cases), "leg")
        self._counting.say(f"stream {stream.id}: {legs}; if it is interrupted: {_resume_command(stream.id)}")

    def _on_leg(self, leg: Leg, number: int, legs: int, finished: Finished | None) -> None:
        self._leg, self._number, self._legs = leg, number, legs
        self._ended, self._after_old_cases = 0, False
        if finished is not None:
            marks = [result.episodes[0] for result in finished.results if result.episodes and result.status != "error"]
            scores = [mark.score for mark in marks if mark.score is not None]
            mean = f", mean score {sum(scores) / len(scores):.3f}" if scores else ""
            solved = sum(result.solved for result in finished.results)
            self._counting.say(f"{number} of {legs}: {leg.label}: {solved} of {len(finished.results)} solved{mean}")

    def _on_case(self, run: BenchRun, result: CaseResult | None) -> None:
        """Counts a case. A resumed leg reports its old cases first, then None: the time estimate ignores them."""
        assert self._leg is not None
        if result is None:
            self._after_old_cases = True
        elif run.id != self._leg.run:
            self._counting.doing(f"filling the bank of {self._leg.label}: case {result.position} of {len(run.cases)}")
        else:
            self._ended += 1
            if not self._after_old_cases:
                self._counting.skip(1)
            done, total = (self._number - 1) * len(run.cases) + self._ended, self._legs * len(run.cases)
            step = f"leg {self._number} of {self._legs}, {self._leg.label}, case {result.position}"
            self._counting.at(step, done, total)

    def interrupting(self) -> None:
        self._counting.say("Stopping once the current steps are recorded; interrupt again to stop immediately")
