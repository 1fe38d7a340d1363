"""`mulligan bench`: benchmarks, fetched, run, reported. Each subcommand is a file here, imported when it is needed."""

from __future__ import annotations

from importlib import import_module

import click

COMMANDS = {
    "export": "Write the results of an ALFWorld RUN as the reference's files: one for each trial.",
    "fetch": "Fetch the data of the benchmark NAME.",
    "list": "The benchmarks, their cuts and methods, and whether their data is here.",
    "replay": "Replay the published episodes in FILE, and say where the engine and the log part.",
    "report": "Figures of one RUN or several; each further one is compared with the first, over their common cases.",
    "run": "Run the cases of the benchmark NAME, or of a file of tasks (mine.toml).",
    "runs": "The runs of benchmarks, newest first.",
    "score": "Judge solutions made elsewhere by the hidden tests of the benchmark NAME.",
}
"""Each is a file of this folder with a click command `command`. The line beside it is the first of its help, so that
`mulligan bench --help` imports none of them."""


class Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"mulligan.cli.bench.{cmd_name}").command


@click.group(cls=Lazy)
def bench() -> None:
    """Benchmarks over the loop: cases with hidden targets, judged when the episode is over."""
