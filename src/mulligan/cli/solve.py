"""`mulligan solve`: tries one task until it is solved or a limit is reached."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from mulligan.app.options import SolveOptions
from mulligan.cli.options import arguments, progress_options, record_options
from mulligan.cli.terminal import standard_input


@click.command()
@click.argument("task")
@record_options(SolveOptions)
@progress_options
@click.pass_context
def solve(ctx: click.Context, task: str, quiet: bool, as_json: bool, trace: bool, **given: Any) -> None:
    """Try TASK, judge the result, reflect on it, and try again.

    The next try sees the judge's findings and the newest lesson. With --strategy evidence, no lessons are written.
    `mulligan docs strategies` compares the strategies.

    TASK is a sentence, a folder with task.md and tests.py (or evaluate.toml), or - for standard input. The best attempt
    is written to stdout, progress to stderr. Without --tests, --check or --judge, the model that you name also acts as
    the judge.

    A command-line agent sees the check's output. It receives lessons only if you name a reflector or a model.

    Exit status: 0 if solved, 1 if not solved, 2 for invalid input, 3 if interrupted, over budget or stopped by an error
    (you can resume the run), 4 if the result could not be judged.
    """
    from mulligan.app.solve import solve as library
    from mulligan.cli.watch import Watch, mention_keys
    from mulligan.core.records import Task

    if not quiet and not as_json:
        mention_keys(given["actor"], given["model"])
    work = partial(library, Task(standard_input("task")) if task == "-" else task, **arguments(SolveOptions, given))
    ctx.exit(Watch(quiet, as_json, trace).conduct(work))
