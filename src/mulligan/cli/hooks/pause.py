"""`mulligan hooks pause`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.cli.terminal import emit
from mulligan.hooks.journal import EVERYWHERE, Journal


@click.command("pause")
@click.argument("folder", required=False)
def command(folder: str | None) -> None:
    """Let hooks do nothing in FOLDER and below it (default: anywhere), until `hooks resume`."""
    with Journal() as journal:
        journal.pause(folder or EVERYWHERE)
    emit(f"Hooks are paused {f'in {Path(folder).resolve()}' if folder else 'everywhere'}.")
