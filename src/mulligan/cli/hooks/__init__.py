"""`mulligan hooks`: the group of commands for the hooks of coding agents.

Each file of this folder is a subcommand of the same name, with a click command called `command`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click


class FolderGroup(click.Group):
    """A group whose subcommands are the files of this folder, imported when they are called or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return import_module(f"mulligan.cli.hooks.{cmd_name}").command


@click.group(cls=FolderGroup)
def hooks() -> None:
    """Coding agents learn: their hooks recall lessons when something fails, and learn from sessions.

    Begin with `mulligan hooks install`, which shows what it changes and asks, then `mulligan hooks doctor`.
    """
