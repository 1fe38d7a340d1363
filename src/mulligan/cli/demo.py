"""`mulligan demo`: runs the shipped example with the small model, or with a model or agent that is named."""

from __future__ import annotations

from functools import partial

import click

from mulligan.app.demo import demo as library
from mulligan.cli.conduct import conduct
from mulligan.cli.options import progress_options


@click.command()
@click.option("--model", metavar="MODEL", help="local (default: fetches 98 MB once), PROVIDER:NAME, scripted:FILE, …")
@click.option("--actor", metavar="COMMAND", help='A coding agent tries instead: "command:claude -p".')
@progress_options
@click.pass_context
def demo(ctx: click.Context, model: str | None, actor: str | None, quiet: bool, as_json: bool, trace: bool) -> None:
    """Run the example that ships: a function to be written, and the tests that judge it.

    The small local model usually fails its first trial and passes its second. Ends as `mulligan solve` does.
    """
    work = partial(library, model=model, actor=actor)
    ctx.exit(conduct(work, quiet=quiet, as_json=as_json, trace=trace))
