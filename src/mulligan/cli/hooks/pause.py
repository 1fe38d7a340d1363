"""`mulligan hooks pause`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from mulligan.cli.terminal import emit
from mulligan.core.errors import InvalidInput
from mulligan.hooks.journal import Journal
from mulligan.hooks.journal_file import EVERYWHERE


@click.command("pause", short_help="Pause hooks in a folder, or everywhere.")
@click.argument("folder", required=False)
def command(folder: str | None) -> None:
    """Pause the hooks in FOLDER and its subfolders (default: everywhere) until you run `hooks resume`."""
    if folder and not Path(folder).is_dir():
        raise InvalidInput(f"{folder} is not a folder. If you omit the folder, hooks are paused everywhere.")
    with Journal() as journal:
        journal.pause(folder or EVERYWHERE)
    where, resume = (f"in {Path(folder).resolve()}", f" {shlex.quote(folder)}") if folder else ("everywhere", "")
    emit(f"Hooks are paused {where}. To end the pause: mulligan hooks resume{resume}")
