"""The command `mulligan`: finds the subcommand that was asked for, and turns every error into a line and a status."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from mulligan.cli.terminal import prepare

COMMANDS = {
    "init": "Begin a project in FOLDER (default: here).",
    "add": "Write a new agent or skill called NAME, which works as it is.",
    "lint": "Check a project, an agent, a skill or one of their files.",
    "run": "Run AGENT on TASK.",
    "solve": "Try TASK, judge, reflect, and try again.",
    "demo": "Run the example that ships: a function to be written, and the tests that judge it.",
    "runs": "See recorded runs, go on with one, export one, remove some.",
    "bench": "Benchmarks over the loop: cases with hidden targets, judged when the episode is over.",
    "memory": "The bank: lessons that agents have learned, kept and found again.",
    "learn": "Learn lessons from the transcript in FILE (-: standard input), and print their ids and titles.",
    "graph": "Graph databases: a sample to try, loading from files, and asking by hand.",
    "ask-graph": "Answer QUESTION from a graph database: write a query, run it, look at the rows, and mend it.",
    "models": "See, pull and remove weights of local models and embedders; see remote providers.",
    "doctor": "What works here (sandbox, store, models), and what mends the rest.",
    "schema": "Print the JSON Schema of a file format, for editors.",
    "serve": "Serve reflexion-thinking and the memory tools to MCP clients.",
    "help": "What COMMAND does and takes, such as `mulligan help runs show`; without one, what commands there are.",
}
"""Each is a file of this folder with a click command of the same name (ask_graph for ask-graph), imported when it is
needed. The line beside it is the first of its help, so that `mulligan --help` imports none of them."""


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

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
    try:
        status: Any = cli.main(arguments, prog_name="mulligan", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        from mulligan.cli.errors import UNFINISHED

        click.echo("Interrupted.", err=True)
        status = UNFINISHED
    except Exception as error:
        from mulligan.cli.errors import report  # not above: `--help` is quick

        status = report(error)
    sys.exit(status or 0)
