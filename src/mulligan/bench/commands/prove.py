"""`mulligan bench prove`."""

from __future__ import annotations

import asyncio
import shlex
import time
from pathlib import Path
from typing import Any

import click

from mulligan.bench.commands._output import print_report, write_files
from mulligan.bench.harness.drafting import draft as draft_tasks
from mulligan.bench.harness.proof import PLAN, Plan, Proof, Row, Run, clear_killed, read_proof
from mulligan.bench.report.proof import proof_page, proof_report
from mulligan.bench.report.stream import as_csv
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.main import run
from mulligan.cli.options import format_option, given_options
from mulligan.cli.terminal import say
from mulligan.cli.words import count
from mulligan.core.home import home
from mulligan.sandbox.local import LocalSandbox
from mulligan.text.pages import markdown


@click.command("prove", short_help="Compare a coding agent with and without this project's lessons.")
@click.argument("tasks", required=False, metavar="TASKS.toml")
@click.option("--agent", metavar="COMMAND", help="The coding agent, such as 'command:claude -p' (as for solve).")
@click.option("--repeats", type=int, default=1, show_default=True, metavar="N", help="Number of runs per task and arm.")
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed for the random order of the arms."
)
@click.option(
    "--seconds",
    type=float,
    default=600,
    show_default=True,
    metavar="S",
    help="Time limit for each run and each check, in seconds.",
)
@click.option(
    "--into", type=Path, metavar="DIR", help="Folder for the rows and the report (default: in Mulligan's home)."
)
@click.option(
    "--resume", type=Path, metavar="DIR", help="Resume the comparison in this folder. Finished runs are kept."
)
@click.option("--report", type=Path, metavar="DIR", help="Only report on the comparison in this folder.")
@click.option(
    "--draft",
    type=Path,
    metavar="FILE",
    help="Draft tasks from this project's lessons, for you to complete.",
)
@format_option("table", "md", "json")
@click.pass_context
def command(
    ctx: click.Context,
    tasks: str | None,
    into: Path | None,
    resume: Path | None,
    report: Path | None,
    draft: Path | None,
    form: str,
    **options: Any,
) -> None:
    """Run a coding agent on the tasks in TASKS.toml with and without this project's lessons, and compare the results.

    Each run is a session in a fresh copy of the project. The agent's hooks must be installed for this user. They run in
    both arms, but the bank is empty in one of them, and neither arm learns. The task's check judges each run. The
    report shows paired differences with intervals, and the smallest difference that could have been detected.
    """
    if sum(source is not None for source in (tasks, resume, report, draft)) != 1:
        raise click.UsageError("Specify a task file, or use --resume DIR, --report DIR or --draft FILE.")
    if draft is not None:
        if ignored := given_options(ctx, besides=("draft",)):
            raise click.UsageError(f"--draft runs nothing: omit {', '.join(ignored)}.")
        _draft(draft)
        return
    if tasks is None and (fixed := given_options(ctx, besides=("resume", "report", "form"))):
        what = "A report has no other options" if report else "A resumed comparison keeps its options"
        raise click.UsageError(f"{what}: omit {', '.join(fixed)}.")
    proof = Proof.open(report.resolve(), LocalSandbox()) if report else _compare(tasks, resume or into, **options)
    if proof is None:
        ctx.exit(UNFINISHED)
    figures = proof_report(proof.plan, proof.rows())
    page = proof_page(figures)
    if report is None:
        write_files(proof.into, {"runs.csv": as_csv(figures.rows, Row), "report.md": markdown(page)})
    print_report(page, figures.to_json(), form)
    ctx.exit(SOLVED if len(figures.rows) == figures.planned else UNFINISHED)


def _compare(tasks: str | None, folder: Path | None, **options: Any) -> Proof | None:
    """Begins a proof of these tasks, or continues the one in the folder. Returns None if it was interrupted."""
    proofs = home() / "proofs"
    into = (folder or proofs / time.strftime("%Y%m%d-%H%M%S")).resolve()
    if killed := clear_killed({into, *(proof.resolve() for proof in proofs.glob("*"))}):
        say(f"Removed leftovers of {count(killed, 'session')} from killed comparisons.")

    counting = Counting()

    async def work() -> Proof:
        if tasks is None:
            proof = Proof.open(into, LocalSandbox())
        else:
            plan = _plan(Path(tasks), **options)
            proof = await Proof.begin(
                plan, into, LocalSandbox(), lambda task: counting.doing(f"trying the check of {task.name}")
            )
        total = sum(1 for _ in proof.plan.runs())
        counting.say(f"{count(len(proof.plan.tasks), 'task')}, {count(total, 'run')}, in {into}")
        await proof.run(lambda session, row: _show_session(counting, session, row, total))
        return proof

    try:
        with counting:
            return run(work(), lambda: counting.say("Interrupting: the current run is not kept."))
    except asyncio.CancelledError:
        begun = (into / PLAN).exists()
        say(f"Interrupted. Resume it with: mulligan bench prove --resume {into}" if begun else "Nothing was started.")
        return None


def _plan(file: Path, *, agent: str | None, **options: Any) -> Plan:
    if not agent:
        raise click.UsageError("Specify the coding agent, for example --agent 'command:claude -p'.")
    tasks, mode = read_proof(file)
    return Plan(tasks, agent.removeprefix("command:"), mode=mode, **options)


def _show_session(counting: Counting, session: Run, row: Row | None, total: int) -> None:
    """Shows a session that begins, or one that has ended with this row."""
    if row is None:
        counting.at(f"run {session.n}, {session.name}", session.n - 1, total)
        return
    calls = "calls unknown" if row.calls is None else f"{count(row.calls, 'call')}, {row.failed} failed"
    result = f"{'solved' if row.solved else 'not solved'}, {calls}, {count(row.shown, 'lesson')}, {row.seconds:.0f} s"
    halted = f" ({row.halted})" if row.halted else ""
    counting.say(f"{session.n} of {total}: {session.name}: {result}{halted}")


def _draft(file: Path) -> None:
    written = draft_tasks(Path.cwd(), file)
    say(f"Drafted {count(written, 'task')} in {file}: read the comment above each, and complete it. Then, for example:")
    say(f"  mulligan bench prove {shlex.quote(str(file))} --agent 'command:claude -p'")
