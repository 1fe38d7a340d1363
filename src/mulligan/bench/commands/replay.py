"""`mulligan bench replay`: replays a published log with the log as the model, and compares."""

from __future__ import annotations

import asyncio
import json
import os

import click

from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.replay import Compared, Replayed, first_difference, replay_log
from mulligan.cli.counting import Counting
from mulligan.cli.errors import NOT_SOLVED, SOLVED, UNFINISHED
from mulligan.cli.main import run
from mulligan.cli.options import format_option, quiet_option
from mulligan.cli.terminal import emit, say
from mulligan.cli.words import count
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.text.pages import Block, Fence, Heading, Line, markdown, plain


@click.command("replay")
@click.argument("file")
@click.option(
    "--trials",
    "-n",
    type=int,
    metavar="N",
    help="The max_iters of the log (default: 5, or the length of its longest episode).",
)
@click.option("--parallel", type=int, metavar="N", help="Episodes to run in parallel (default: one per processor).")
@click.option("--sandbox", default="auto", metavar="LEVEL", help="auto (default), strict, or the name of a level.")
@format_option("table", "json", "md", help="Output format (md is Markdown).")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context, file: str, trials: int | None, parallel: int | None, sandbox: str, form: str, quiet: bool
) -> None:
    """Replay the published episodes in FILE, and show where the replay differs from the log.

    Exit status: 0 if everything agrees, 1 if something differs, 2 if FILE is not such a log.
    """
    many = os.cpu_count() or 1 if parallel is None else parallel
    try:
        with Counting(quiet) as shown:
            hooks = Hooks(on_case=_Progress(shown).case)
            replaying = replay_log(file, trials=trials, parallel=many, sandbox=sandbox, hooks=hooks)
            found = run(replaying, lambda: shown.say("stopping"))
    except asyncio.CancelledError:
        say("Interrupted: nothing was compared. Start it again.")
        ctx.exit(UNFINISHED)
    if form == "json":
        emit(json.dumps(found.to_json(), ensure_ascii=False, indent=1))
    else:
        emit((markdown if form == "md" else plain)(_page(found, file)).rstrip("\n"))
    ctx.exit(SOLVED if found.agreeing == len(found.compared) else NOT_SOLVED)


class _Progress:
    def __init__(self, shown: Counting) -> None:
        self._shown, self._done = shown, 0

    def case(self, run: BenchRun, result: CaseResult | None) -> None:
        if result is None:
            self._shown.say(f"run {run.id}: {count(len(run.cases), 'episode')}")
        else:
            self._done += 1
            self._shown.at("replaying", self._done, len(run.cases))


def _page(found: Replayed, file: str) -> list[Block]:
    blocks: list[Block] = [Heading(1, f"Replay of {file}")]
    for one in found.compared:
        blocks += [] if one.agrees else _differences(one)
    n = len(found.compared)
    blocks.append(Line(f"{found.agreeing} of {n} agree in tests, number of trials, feedback text and verdict."))
    return [*blocks, Line(f"Recorded as {found.run}: mulligan runs show {found.run}")]


def _differences(one: Compared) -> list[Block]:
    """The first differing lines of each difference of an episode."""
    blocks: list[Block] = [Heading(2, f"{one.case} differs ({one.episode})")]
    for parting in one.partings:
        expected, got = first_difference(parting.expected, parting.got)
        blocks.append(Line(parting.hint, parting.where))
        blocks.append(Fence(f"log:    {expected}\nreplay: {got}"))
    return blocks
