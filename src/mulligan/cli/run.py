"""`mulligan run`: runs an agent that is defined in files on one task."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from mulligan.app.options import RunOptions
from mulligan.app.recipe import read_file
from mulligan.app.run import run as library
from mulligan.cli.options import arguments, progress_options, record_options
from mulligan.cli.terminal import standard_input
from mulligan.cli.watch import Watch
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Task


@click.command()
@click.argument("agent")
@click.argument("task", required=False)
@click.option(
    "--input",
    "file",
    metavar="FILE",
    help="Read the task from FILE. If you also pass TASK, FILE provides input for that task.",
)
@record_options(RunOptions)
@progress_options
@click.pass_context
def run(ctx: click.Context, agent: str, task: str | None, file: str | None, **given: Any) -> None:
    """Run AGENT on TASK.

    AGENT is the name of an agent in agents/, the path to an agent's folder, or a built-in agent: code-improver,
    answerer or writer. TASK is a sentence, or - for standard input. The result is written to stdout, progress to
    stderr.

    Exit status: 0 if solved (or, without a judge, finished), 1 if not solved, 2 for invalid input, 3 if interrupted,
    over budget or stopped by an error (you can resume the run), 4 if the result could not be judged.
    """
    what = _task(task, file)
    work = partial(library, agent, what, **arguments(RunOptions, given))
    ctx.exit(Watch(given["quiet"], given["as_json"], given["trace"]).conduct(work))


def _task(task: str | None, file: str | None) -> str | Task:
    """Returns the task from the sentence or the file. With both, the file's text is an input with the file's name."""
    if task == "-" and file == "-":
        raise InvalidInput("Standard input can be the task or the input, but not both: pass one of them another way.")
    sentence = standard_input("task") if task == "-" else task
    text = None if file is None else standard_input("input") if file == "-" else read_file(file, "input file").strip()
    if text is None and sentence is None:
        hint = " To read it from standard input, pass -." if not sys.stdin.isatty() else ""
        raise InvalidInput(f'Specify the task: mulligan run AGENT "what to do", or --input FILE.{hint}')
    if text is not None and not text:
        raise InvalidInput(f"The input {file} is empty.")
    if sentence is None:
        return Task(text or "")
    name = "input" if file == "-" else Path(file or "").name
    return sentence if text is None else Task(sentence, {name: text})
