"""`mulligan hooks resume`."""

from __future__ import annotations

import click

from mulligan.cli.terminal import emit
from mulligan.core.errors import NotFound
from mulligan.hooks.journal import EVERYWHERE, Journal


@click.command("resume")
@click.argument("folder", required=False)
def command(folder: str | None) -> None:
    """Take back `hooks pause FOLDER`; without FOLDER, `hooks pause`."""
    with Journal() as journal:
        taken_back = journal.resume(folder or EVERYWHERE)
        left = [one or "everywhere" for one in journal.paused()]
    if not taken_back:
        here = f"Hooks are not paused in {folder}" if folder else "Hooks are not paused everywhere"
        raise NotFound(f"{here}. Paused: {', '.join(left) or 'nowhere'}.")
    emit(f"Hooks work again. Still paused: {', '.join(left)}." if left else "Hooks work again.")
