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
from mulligan.bench.harness.plan import BenchOptions
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
OF_BENCHMARKS = (
    *("data", "restarts", "samples", "scale", "limit", "cases", "shuffle", "seed", "reuse", "memory", "agent_id"),
    *("foresight", "check_before", "checks"),
)
"""Options of a benchmark run that are of no use for tasks that are to be solved."""


@click.command("fan-out")
@click.argument("tasks", required=False)
@click.option("--resume", metavar="RUN", help="Resume this run. Finished tasks are kept, and printed again.")
@click.option(
    "--judge", "-e", metavar="NAME[:ARG]", help="The judge for tasks that do not name one: model_judge, ./mine.py, …"
)
@click.option("--evaluator", hidden=True, metavar="NAME[:ARG]", help="The same as --judge.")
@click.option(
    "--check", "-c", metavar="COMMAND", help="A check for such tasks: status 0 passes; {attempt} is the attempt's file."
)
@record_options(BenchOptions, roles=BENCH_ROLES, without=OF_BENCHMARKS)
@on_option
@quiet_option
@click.pass_context
def fan_out(
    ctx: click.Context, tasks: str | None, resume: str | None, on: str | None, quiet: bool, **given: Any
) -> None:
    """Solve each task in the file TASKS, several at a time, on this machine or on many.

    TASKS has one task per line, as JSON (tasks.jsonl), or is a file of tasks for `bench run` (tasks.toml). Each
    result goes to stdout as a line of JSON, as soon as its task ends; progress goes to stderr.
    """
    if (tasks is None) == (resume is None):
        raise click.UsageError("Name a file of tasks, or a run to resume: --resume RUN.")
    if resume is not None and (fixed := given_options(ctx, besides=("resume", "parallel", "on", "quiet"))):
        raise click.UsageError(f"A resumed run keeps its options: leave out {', '.join(fixed)}, or start a new one.")
    progress = Progress(quiet, command="mulligan fan-out", stdout=False)
    ended: asyncio.Queue[CaseResult | None] = asyncio.Queue()

    def case(run: BenchRun, result: CaseResult | None) -> None:
        progress.case(run, result)
        if result is not None:
            ended.put_nowait(result)

    async def work() -> Finished:
        hooks = Hooks(on_case=case, observers=(progress.saw,), notice=progress.notice)
        async with open_store(load().store) as store, asyncio.TaskGroup() as group:
            group.create_task(_print_each(ended, store))
            try:
                if resume is not None:
                    return await resume_benchmark(resume, parallel=given["parallel"], hooks=hooks, on=on)
                assert tasks is not None
                return await run_benchmark("tasks", hooks=hooks, on=on, **_options(tasks, given))
            finally:
                ended.put_nowait(None)

    try:
        ctx.exit(progress.ended(run(work(), progress.interrupting)))
    except asyncio.CancelledError:
        ctx.exit(progress.interrupted())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        progress.stop()


def _options(tasks: str, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of `BenchOptions` for this file."""
    path = Path(tasks).expanduser()
    if path.suffix not in ENDINGS:
        raise InvalidInput(f"{tasks} is not a file of tasks: its name must end in {' or '.join(ENDINGS)}.")
    if not path.is_file():
        raise InvalidInput(f"The file of tasks {tasks} does not exist.")
    options = {**arguments(BenchOptions, given), "data": str(path.resolve())}
    settings: dict[str, dict[str, Any]] = dict(given["settings"])
    if (judge := _judge(given)) is not None:
        settings["benchmark"] = {**settings.get("benchmark", {}), "judge": judge}
    return {**options, "settings": settings}


def _judge(given: dict[str, Any]) -> dict[str, Json] | None:
    """Who judges tasks that name no judge, as a task file would say it."""
    evaluator, check = given["judge"] or given["evaluator"], given["check"]
    if given["judge"] is not None and given["evaluator"] is not None:
        raise click.UsageError("--judge and --evaluator mean the same: pass only one.")
    if evaluator is not None and check is not None:
        raise click.UsageError("Only one can judge: give --judge or --check.")
    if check is not None:
        return {"check": check}
    if evaluator is None:
        return None
    spec = parse_spec("evaluators", evaluator)
    return {"evaluator": spec.name, **({"settings": dict(spec.settings)} if spec.settings else {})}


async def _print_each(ended: asyncio.Queue[CaseResult | None], store: Store) -> None:
    """Print each result that comes, until None comes."""
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
