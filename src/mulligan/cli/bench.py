"""`mulligan bench`: benchmarks, fetched, run, reported. Each subcommand is a file of its own, imported when needed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

_FILE = "bench_{}.py"
"""Each subcommand is such a file of this folder, with a click command `command` in it."""


class Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        here = Path(__file__).parent.glob(_FILE.format("*"))
        return sorted(path.stem.removeprefix("bench_") for path in here)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return import_module(f"mulligan.cli.bench_{cmd_name}").command


@click.group(cls=Lazy)
def bench() -> None:
    """Benchmarks over the loop: cases with hidden targets, judged when the episode is over."""
