"""`mulligan bench stream`: what a memory is worth, measured on a stream of tasks against none and other memories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import BenchOptions
from mulligan.bench.harness.running import Finished
from mulligan.bench.harness.stream import CONTROLS, Leg, StreamHooks, resume_stream, run_stream, shipped_arms
from mulligan.bench.report import plot
from mulligan.bench.report.stream import StreamReport, as_csv, learning_curves, read_stream, stream_page
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.main import run
from mulligan.cli.options import BENCH_ROLES, arguments, format_option, given_options, quiet_option, record_options
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import emit, say
from mulligan.cli.words import count
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import InvalidInput
from mulligan.text.pages import markdown, plain

OF_ARMS = (
    *("restarts", "samples", "scale", "cases", "shuffle", "parallel", "reuse", "memory", "agent_id"),
    *("foresight", "check_before", "checks"),
)
"""Options of a benchmark run that the arms and orders of a stream set."""


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
@click.option("--orders", type=int, default=5, show_default=True, metavar="N", help="Number of orders of the cases.")
@click.option(
    "--control",
    "controls",
    type=click.Choice(CONTROLS),
    multiple=True,
    help="Add a control for each memory: a bank of unrelated tasks, or one that stops learning after the first phase.",
)
@click.option("--unrelated", metavar="TASKS", help="The unrelated tasks for that control.")
@record_options(BenchOptions, roles=BENCH_ROLES, without=OF_ARMS)
@click.option("--into", metavar="DIR", help="Write cases.csv, curve.svg and report.md into this folder.")
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
    **given: Any,
) -> None:
    """Run the cases of TASKS as a stream, once for each of several memories, which learn as they go.

    TASKS is a benchmark or a file of tasks. The report says how much each memory gained over none, at what
    cost, and how certain that is.
    """
    if (tasks is None) == (resume is None):
        raise click.UsageError("Name a benchmark or a file of tasks, or a stream to resume: --resume ID.")
    if resume is not None and (fixed := given_options(ctx, besides=("resume", "into", "form", "quiet"))):
        raise click.UsageError(f"A resumed stream keeps its options: leave out {', '.join(fixed)}.")
    shown = Counting(quiet)
    progress = Progress(shown)

    async def work() -> BenchRun:
        if resume is not None:
            return await resume_stream(resume, hooks=progress.hooks)
        options = arguments(BenchOptions, given)
        assert tasks is not None
        named = [arm.strip() for arm in arms.split(",") if arm.strip()]
        chosen: dict[str, Any] = {"arms": named, "orders": orders, "controls": controls, "unrelated": unrelated}
        return await run_stream(tasks, **chosen, hooks=progress.hooks, **options)

    try:
        with shown:
            stream = run(work(), progress.interrupting)
    except asyncio.CancelledError:
        say(f"Interrupted. Resume it with: {_resume(progress.stream)}" if progress.stream else "Nothing was started.")
        ctx.exit(UNFINISHED)
    report = with_store(lambda store: read_stream(store, stream.id))
    if into is not None:
        write(report, Path(into))
    _show(report, form)
    if errors := sum(arm.errors for arm in report.arms):
        say(f"{errors} cases ended with an error and are excluded from the means; to retry them: {_resume(stream.id)}")
    elif into is None and not quiet:
        say(f"rows, curve and report as files: {_resume(stream.id)} --into DIR")
    ctx.exit(UNFINISHED if errors else SOLVED)


@contextmanager
def writing_into(folder: Path) -> Generator[None]:
    """Creates the folder. Raises `InvalidInput` where it, or a file in it, cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InvalidInput(f"The report cannot be written into {folder}: {error.strerror or error}.") from error


def write(report: StreamReport, folder: Path) -> None:
    """Writes the rows, the curve and the report."""
    with writing_into(folder):
        (folder / "cases.csv").write_text(as_csv(report.rows), encoding="utf-8")
        picture = plot.write(learning_curves(report), folder / "curve.svg", folder)
        (folder / "report.md").write_text(markdown(stream_page(report, picture)), encoding="utf-8")
    say(f"{folder}: cases.csv, curve.svg, report.md")


def _show(report: StreamReport, form: str) -> None:
    if form == "json":
        emit(json.dumps(report.to_json(), ensure_ascii=False, indent=2, allow_nan=False))
    else:
        emit({"table": plain, "md": markdown}[form](stream_page(report)).rstrip())


def _resume(id: str) -> str:
    return f"mulligan bench stream --resume {id}"


class Progress:
    """A line for each leg that ends; on a terminal, a last one for the case that ended, with the time left."""

    def __init__(self, counting: Counting) -> None:
        self._shown, self._begun, self.stream = counting, False, ""
        self.hooks = StreamHooks(self._begin, self._on_leg, Hooks(on_case=self._on_case, notice=lambda _: None))

    def _begin(self, stream: BenchRun) -> None:
        self.stream = stream.id
        legs = count(len(stream.cases), "leg")
        self._shown.say(f"stream {stream.id}: {legs}; if it is interrupted: {_resume(stream.id)}")

    def _on_leg(self, leg: Leg, number: int, of: int, finished: Finished | None) -> None:
        self._leg, self._number, self._of = leg, number, of
        self._begun, self._ended = False, 0
        if finished is not None:
            scores = [one.episodes[0].score for one in finished.results if one.episodes and one.status != "error"]
            known = [score for score in scores if score is not None]
            mean = f", mean score {sum(known) / len(known):.3f}" if known else ""
            solved = sum(result.solved for result in finished.results)
            self._shown.say(f"{number} of {of}: {leg.label}: {solved} of {len(finished.results)} solved{mean}")

    def _on_case(self, run: BenchRun, result: CaseResult | None) -> None:
        """Count a case. Those that ended in an earlier process come before the None, and took no time in this one."""
        if result is None:
            self._begun = True
        elif run.id != self._leg.run:
            self._shown.doing(f"filling the bank of {self._leg.label}: case {result.position} of {len(run.cases)}")
        else:
            self._ended += 1
            if not self._begun:
                self._shown.skip(1)
            done, total = (self._number - 1) * len(run.cases) + self._ended, self._of * len(run.cases)
            step = f"leg {self._number} of {self._of}, {self._leg.label}, case {result.position}"
            self._shown.at(step, done, total)

    def interrupting(self) -> None:
        self._shown.say("stopping once the current steps are recorded; interrupt again to end at once")
