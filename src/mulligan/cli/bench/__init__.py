"""`mulligan bench`: benchmarks, fetched, run, reported. Each subcommand is a file here, imported when it is needed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click


class Lazy(click.Group):
    """Its commands are the files of this folder, but for those that begin with `_`; each has a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(file.stem for file in Path(__file__).parent.glob("[!_]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return import_module(f"mulligan.cli.bench.{cmd_name}").command


@click.group(cls=Lazy)
def bench() -> None:
    """Benchmarks over the loop: cases with hidden targets, judged when the episode is over."""
