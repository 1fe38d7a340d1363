"""`mulligan fan-out`: solves the tasks of a file, several at once, and prints each result as its task ends."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from mulligan.app.config import load
from mulligan.app.plugins import parse_spec
from mulligan.bench.commands._progress import Progress
from mulligan.bench.harness.cases import Hooks
from mulligan.bench.harness.plan import FORESIGHT, BenchOptions
from mulligan.bench.harness.running import Finished, resume_benchmark, run_benchmark
from mulligan.cli.main import run
from mulligan.cli.options import BENCH_ROLES, arguments, given_options, on_option, quiet_option, record_options
from mulligan.cli.terminal import emit
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.records import Json
from mulligan.store import open_store

ENDINGS = (".jsonl", ".toml")
"""The endings of files of tasks."""
BENCHMARK_ONLY = (
    *("data", "restarts", "samples", "scale", "limit", "cases", "shuffle", "seed", "reuse", "memory", "agent_id"),
    *FORESIGHT,
)
"""Options of a benchmark run that make no sense for tasks to be solved."""


@click.command("fan-out")
@click.argument("tasks", required=False)
@click.option(
    "--resume", metavar="RUN", help="Resume this run. The results of finished tasks are kept and printed again."
)
@click.option(
    "--judge", "-e", metavar="NAME[:ARG]", help="The judge for tasks that do not specify one: model_judge, ./mine.py, …"
)
@click.option("--evaluator", hidden=True, metavar="NAME[:ARG]", help="Same as --judge.")
@click.option(
    "--check",
    "-c",
    metavar="COMMAND",
    help="A command that judges tasks that do not specify a judge: exit status 0 means that the attempt passes. "
    "{attempt} is replaced with the path of the attempt's file.",
)
@record_options(BenchOptions, roles=BENCH_ROLES, without=BENCHMARK_ONLY)
@on_option
@quiet_option
@click.pass_context
def fan_out(
    ctx: click.Context, tasks: str | None, resume: str | None, on: str | None, quiet: bool, **options: Any
) -> None:
    """Solve the tasks in the file TASKS in parallel, on one machine or several.

    TASKS is a JSON Lines file with one task per line (tasks.jsonl) or a task file for `bench run` (tasks.toml).
    Each result is written to stdout as a line of JSON as soon as the task ends. Progress goes to stderr.
    """
    if (tasks is None) == (resume is None):
        raise click.UsageError("Specify a task file, or a run to resume: --resume RUN.")
    if resume is not None and (fixed := given_options(ctx, besides=("resume", "parallel", "on", "quiet"))):
        raise click.UsageError(f"A resumed run keeps its options: omit {', '.join(fixed)}, or start a new run.")
    progress = Progress(quiet, command="mulligan fan-out", stdout=False)
    ended: asyncio.Queue[CaseResult | None] = asyncio.Queue()

    def on_case(run: BenchRun, result: CaseResult | None) -> None:
        progress.on_case(run, result)
        if result is not None:
            ended.put_nowait(result)

    async def work() -> Finished:
        hooks = Hooks(on_case=on_case, observers=(progress.on_event,), notice=progress.notice)
        async with open_store(load().store) as store, asyncio.TaskGroup() as group:
            group.create_task(_print_each(ended, store))
            try:
                if resume is not None:
                    return await resume_benchmark(resume, parallel=options["parallel"], hooks=hooks, on=on)
                assert tasks is not None
                return await run_benchmark("tasks", hooks=hooks, on=on, **_bench_options(tasks, options))
            finally:
                ended.put_nowait(None)

    try:
        ctx.exit(progress.finish(run(work(), progress.interrupting)))
    except asyncio.CancelledError:
        ctx.exit(progress.finish_early())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        progress.stop()


def _bench_options(tasks: str, options: dict[str, Any]) -> dict[str, Any]:
    """The fields of `BenchOptions` for this file and these options of the command."""
    path = Path(tasks).expanduser()
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{tasks} is not a task file: its name must end in {' or '.join(ENDINGS)}.")
    if not path.is_file():
        raise InvalidInput(f"The task file {tasks} does not exist.")
    settings: dict[str, dict[str, Any]] = dict(options["settings"])
    if (judge := _judge(options)) is not None:
        settings["benchmark"] = {**settings.get("benchmark", {}), "judge": judge}
    return {**arguments(BenchOptions, options), "data": str(path.resolve()), "settings": settings}


def _judge(options: dict[str, Any]) -> dict[str, Json] | None:
    """The judge of tasks that do not name one, in the form of a task file."""
    evaluator, check = options["judge"] or options["evaluator"], options["check"]
    if options["judge"] is not None and options["evaluator"] is not None:
        raise click.UsageError("--judge and --evaluator mean the same: pass only one.")
    if evaluator is not None and check is not None:
        raise click.UsageError("Only one can judge: use --judge or --check.")
    if check is not None:
        return {"check": check}
    if evaluator is None:
        return None
    spec = parse_spec("evaluators", evaluator)
    return {"evaluator": spec.name, **({"settings": dict(spec.settings)} if spec.settings else {})}


async def _print_each(ended: asyncio.Queue[CaseResult | None], store: Store) -> None:
    """Prints each result of the queue until None comes."""
    while (result := await ended.get()) is not None:
        emit(json.dumps(await _line(result, store), ensure_ascii=False))


async def _line(result: CaseResult, store: Store) -> dict[str, Json]:
    trials = (await store.load(result.episodes[0].episode)).trials if result.episodes else ()
    return {
        "id": result.case,
        "status": result.status,
        "output": trials[-1].attempt.output if trials else None,
        "score": result.episodes[0].score if result.episodes else None,
        "trials": len(trials),
        "episode": result.episodes[0].episode if result.episodes else None,
        "seconds": result.seconds,
        "tokens": result.usage.tokens,
        "cost": result.usage.cost,
        "text": result.text,
    }
