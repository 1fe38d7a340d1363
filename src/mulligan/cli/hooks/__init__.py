"""`mulligan hooks`: the group of commands for the hooks of coding agents.

Each file of this folder is a subcommand of the same name, with a click command called `command`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from mulligan.cli.commands import FORMER_COMMANDS, with_examples
from mulligan.cli.groups import Group
from mulligan.core.errors import StoreError
from mulligan.core.home import home_path


class FolderGroup(Group):
    """A group whose subcommands are the files of this folder, imported when they are called or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if not file.stem.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in FORMER_COMMANDS["hooks"]:
            module, name = FORMER_COMMANDS["hooks"][cmd_name]
            return getattr(import_module(f"mulligan.{module}"), name)
        if cmd_name not in self.list_commands(ctx):
            return None
        return with_examples(import_module(f"mulligan.cli.hooks.{cmd_name}").command, f"hooks {cmd_name}")

    def invoke(self, ctx: click.Context) -> Any:
        with journal_in_use():
            return super().invoke(ctx)


@contextmanager
def journal_in_use() -> Generator[None]:
    """Raises `StoreError`, which names Mulligan's home, where what hooks note there cannot be read or written."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if isinstance(error, OSError) and not str(error.filename).startswith(home_path()):
            raise
        busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
        do = "Try again later." if busy else "Make the folder writable, or set MULLIGAN_HOME to another."
        raise StoreError(f"The hooks' records in {home_path()} cannot be used: {error}. {do}") from error


@click.group(cls=FolderGroup)
def hooks() -> None:
    """Install and inspect the hooks that let coding agents learn.

    Start with `mulligan hooks install`, which shows the changes and asks for confirmation. Then run
    `mulligan hooks doctor`.
    """
