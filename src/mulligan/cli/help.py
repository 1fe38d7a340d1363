"""`mulligan help COMMAND`: the same as `mulligan COMMAND --help`."""

from __future__ import annotations

import click

from mulligan.cli.terminal import emit


@click.command()
@click.argument("command", nargs=-1)
@click.pass_context
def help(ctx: click.Context, command: tuple[str, ...]) -> None:
    """Show the help of COMMAND, such as `mulligan help runs show`; without one, list the commands."""
    assert ctx.parent is not None
    at, here = ctx.parent, ctx.parent.command
    for name in command:
        if not isinstance(here, click.Group):
            raise click.UsageError(f"{at.command_path} has no commands of its own.", at)
        found, here, _ = here.resolve_command(at, [name])
        assert here is not None
        at = click.Context(here, at, info_name=found)
    emit(here.get_help(at))
