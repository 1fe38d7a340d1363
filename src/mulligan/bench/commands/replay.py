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
    help="The log's max_iters (default: 5, or the length of its longest episode if that is greater).",
)
@click.option(
    "--parallel", type=int, metavar="N", help="Number of episodes to run in parallel (default: one per processor)."
)
@click.option(
    "--sandbox", default="auto", metavar="LEVEL", help="Sandbox level: auto (default), strict, or a level's name."
)
@format_option("table", "json", "md", help="Output format (md is Markdown).")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context, file: str, trials: int | None, parallel: int | None, sandbox: str, form: str, quiet: bool
) -> None:
    """Replay the published episodes in FILE and show where the replay differs from the log.

    Exit status: 0 if everything agrees, 1 if something differs, 2 if FILE is not a log that can be replayed, 3 if the
    replay was interrupted or failed.
    """
    at_once = (os.cpu_count() or 1) if parallel is None else parallel
    try:
        with Counting(quiet) as counting:
            hooks = Hooks(on_case=_Progress(counting).on_case)
            replaying = replay_log(file, trials=trials, parallel=at_once, sandbox=sandbox, hooks=hooks)
            replayed = run(replaying, lambda: counting.say("Stopping."))
    except asyncio.CancelledError:
        say("Interrupted before anything was compared. Start the replay again.")
        ctx.exit(UNFINISHED)
    if form == "json":
        emit(json.dumps(replayed.to_json(), ensure_ascii=False, indent=1))
    else:
        write = markdown if form == "md" else plain
        emit(write(_page(replayed, file)).rstrip("\n"))
    ctx.exit(SOLVED if replayed.agreeing == len(replayed.compared) else NOT_SOLVED)


class _Progress:
    """Shows how many episodes were replayed."""

    def __init__(self, counting: Counting) -> None:
        self._counting, self._done = counting, 0

    def on_case(self, run: BenchRun, result: CaseResult | None) -> None:
        if result is None:
            self._counting.say(f"run {run.id}: {count(len(run.cases), 'episode')}")
        else:
            self._done += 1
            self._counting.at("replaying", self._done, len(run.cases))


def _page(replayed: Replayed, file: str) -> list[Block]:
    blocks: list[Block] = [Heading(1, f"Replay of {file}")]
    for episode in replayed.compared:
        if not episode.agrees:
            blocks += _differences(episode)
    n = len(replayed.compared)
    blocks.append(Line(f"{replayed.agreeing} of {n} agree in tests, number of trials, feedback text and verdict."))
    return [*blocks, Line(f"Recorded as {replayed.run}: mulligan runs show {replayed.run}")]


def _differences(episode: Compared) -> list[Block]:
    """The first differing lines of each difference of an episode."""
    blocks: list[Block] = [Heading(2, f"{episode.case} differs ({episode.episode})")]
    for parting in episode.partings:
        expected, got = first_difference(parting.expected, parting.got)
        blocks.append(Line(parting.hint, parting.where))
        blocks.append(Fence(f"log:    {expected}\nreplay: {got}"))
    return blocks
