"""`mulligan demo`: runs the example of this package with the small local model, or with a named model or agent."""

from __future__ import annotations

from functools import partial

import click

from mulligan.app.demo import demo as library
from mulligan.cli.conduct import conduct
from mulligan.cli.options import progress_options


@click.command()
@click.option("--model", metavar="MODEL", help="local (default: fetches 98 MB once), PROVIDER:NAME, scripted:FILE, …")
@click.option("--actor", metavar="COMMAND", help='A coding agent that tries instead: "command:claude -p".')
@progress_options
@click.pass_context
def demo(ctx: click.Context, model: str | None, actor: str | None, quiet: bool, as_json: bool, trace: bool) -> None:
    """Run the built-in example: write a function that passes its tests.

    The small local model usually fails its first trial and passes its second. Ends as `mulligan solve` does.
    """
    work = partial(library, model=model, actor=actor)
    ctx.exit(conduct(work, quiet=quiet, as_json=as_json, trace=trace))
