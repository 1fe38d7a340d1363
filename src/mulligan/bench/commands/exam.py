"""`mulligan bench exam`: the exam of memories."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import click

from mulligan.app.config import load
from mulligan.app.sessions import transcripts
from mulligan.app.sessions_exam import Exam, examine
from mulligan.bench.commands._output import json_text, print_report, write_files
from mulligan.bench.commands.stream import Progress
from mulligan.bench.harness.exam import FAMILIES, MEMORIES, ORDERS, SEED, TASKS, run_exam
from mulligan.bench.harness.stream import FOLDER, Arm, read_arm, shipped_arms
from mulligan.bench.report.exam import exam_page, read_exam
from mulligan.bench.report.stream import as_csv
from mulligan.cli.counting import Counting
from mulligan.cli.errors import SOLVED, UNFINISHED
from mulligan.cli.main import run
from mulligan.cli.options import format_option, quiet_option
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import say
from mulligan.core.errors import described
from mulligan.core.protocols import TextMemory
from mulligan.hooks.project import project_id
from mulligan.text.pages import markdown

DAYS = 90
"""Sessions up to this age are replayed."""


def _split_names(ctx: click.Context, option: click.Parameter, value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


@click.command("exam")
@click.option(
    "--memories",
    default=",".join(MEMORIES),
    show_default=True,
    callback=_split_names,
    metavar="A,B,…",
    help=f"The memories: {', '.join(shipped_arms())}, or your own: ./mine.py, package.module:Class, ./mine.toml.",
)
@click.option(
    "--streams",
    "families",
    default=",".join(FAMILIES),
    show_default=True,
    callback=_split_names,
    metavar="A,B,…",
    help="The task streams. The stream `code` is also available.",
)
@click.option(
    "--tasks", type=int, default=TASKS, show_default=True, metavar="N", help="Number of tasks in each stream."
)
@click.option(
    "--orders", type=int, default=ORDERS, show_default=True, metavar="N", help="Number of different task orders."
)
@click.option("--seed", type=int, default=SEED, show_default=True, metavar="N", help="Seed for generating the streams.")
@click.option("--model", "-m", metavar="MODEL", help="The model that acts (default: the scripted reader).")
@click.option(
    "--sessions",
    type=click.Choice(["project", "all", "none"]),
    default="project",
    show_default=True,
    help=f"Which coding-agent sessions from the last {DAYS} days to replay.",
)
@click.option("--into", metavar="DIR", help="Write report.md, report.json and cases.csv to this folder.")
@format_option("table", "md", "json")
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    memories: list[str],
    families: list[str],
    tasks: int,
    orders: int,
    seed: int,
    model: str | None,
    sessions: str,
    into: str | None,
    form: str,
    quiet: bool,
) -> None:
    """Measure how much each memory helps or harms, on task streams and on your own sessions.

    A memory is a class with a learn(episode) method and a recall(task) method that returns text. Without --model, a
    scripted reader acts as the model, so the result shows only what a memory adds to the prompt.
    """
    counting = Counting(quiet)
    progress = Progress(counting)
    exam = run_exam(
        memories, families=families, tasks=tasks, orders=orders, seed=seed, model=model, hooks=progress.hooks
    )
    try:
        with counting:
            streams = run(exam, progress.interrupting)
    except asyncio.CancelledError:
        say("Interrupted. If you start the exam again, it reuses the model answers that you have paid for.")
        ctx.exit(UNFINISHED)
    replayed = {} if sessions == "none" else _replayed(memories, all_projects=sessions == "all")
    report = with_store(lambda store: read_exam(store, [stream.id for stream in streams], replayed))
    page, data = exam_page(report), report.to_json()
    if into is not None:
        rows = as_csv([row for stream in report.streams for row in stream.rows])
        write_files(Path(into), {"report.md": markdown(page), "report.json": json_text(data), "cases.csv": rows})
    print_report(page, data, form)
    ctx.exit(UNFINISHED if report.faults or any(memory.errors for memory in report.memories) else SOLVED)


def _replayed(memories: Sequence[str], *, all_projects: bool) -> dict[str, Exam]:
    """Replays the sessions on this machine with the lessons of hooks, and with each memory that is a plug-in."""
    config, project = load(), project_id(os.getcwd())
    sessions = [
        transcript
        for transcript in transcripts(since=time.time() - DAYS * 86400)
        if all_projects or (transcript.folder and project_id(transcript.folder) == project)
    ]
    if not sessions:
        say("No coding-agent sessions were found to replay. --sessions all includes all folders.")
        return {}
    exams = {"hooks": asyncio.run(examine(sessions))}
    for arm in (read_arm(memory, config) for memory in memories):
        if arm.plugin:
            try:
                with TemporaryDirectory(prefix=FOLDER) as folder:
                    exams[arm.name] = asyncio.run(examine(sessions, memory=partial(_new_memory, arm, folder)))
            except Exception as error:  # an error of the memory does not affect the rest of the exam
                say(f"The memory {arm.name} failed on your sessions: {described(error)}.")
    return exams


def _new_memory(arm: Arm, folder: str) -> TextMemory:
    return arm.make(mkdtemp(dir=folder))
