"""The command `mulligan`: finds the subcommand that was asked for, and turns every error into a line and a status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from mulligan.cli.terminal import prepare

COMMANDS = (
    "init",
    "add",
    "lint",
    "run",
    "solve",
    "demo",
    "runs",
    "bench",
    "memory",
    "learn",
    "graph",
    "ask-graph",
    "models",
    "doctor",
    "schema",
    "serve",
    "help",
)
"""Each is a file of this folder with a click command of the same name (ask_graph for ask-graph), imported when it is
needed."""


class Lazy(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            from difflib import get_close_matches  # click looks among the commands that are loaded, and none is

            if near := get_close_matches(args[0], COMMANDS, n=1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        return getattr(import_module(f"mulligan.cli.{name}"), name)


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mulligan", message="%(prog)s %(version)s")
def cli() -> None:
    """Second tries for language agents that have learned from the first."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs the command and ends the process with its status: see docs/cli.md. Never shows a traceback unasked."""
    prepare()
    sys.exit(_status(arguments))


def _status(arguments: Sequence[str] | None) -> int:
    try:
        ended: Any = cli.main(arguments, prog_name="mulligan", standalone_mode=False)
        return ended or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        from mulligan.cli.errors import UNFINISHED

        click.echo("Interrupted.", err=True)
        return UNFINISHED
    except Exception as error:
        from mulligan.cli.errors import report  # not above: `--help` is quick

        return report(error)
