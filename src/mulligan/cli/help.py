"""`mulligan help`: what `--help` says, for those who write it the other way round."""

from __future__ import annotations

import click

from mulligan.cli.terminal import emit


@click.command()
@click.argument("command", nargs=-1)
@click.pass_context
def help(ctx: click.Context, command: tuple[str, ...]) -> None:
    """What COMMAND does and takes, such as `mulligan help runs show`; without one, what commands there are."""
    assert ctx.parent is not None
    at, here = ctx.parent, ctx.parent.command
    for name in command:
        if not isinstance(here, click.Group):
            raise click.UsageError(f"{at.command_path} has no commands of its own.", at)
        found, here, _ = here.resolve_command(at, [name])
        assert here is not None
        at = click.Context(here, at, info_name=found)
    emit(here.get_help(at))
