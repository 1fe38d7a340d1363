"""`mulligan hooks resume`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.cli.terminal import emit
from mulligan.core.errors import NotFound
from mulligan.hooks.journal import Journal
from mulligan.hooks.journal_file import EVERYWHERE


@click.command("resume", short_help="End a pause.")
@click.argument("folder", required=False)
def command(folder: str | None) -> None:
    """End the pause in FOLDER or, without FOLDER, the pause that applies everywhere. Other pauses stay in effect."""
    with Journal() as journal:
        taken_back = journal.resume(folder or EVERYWHERE)
        left = [f"in {one}" if one else "everywhere" for one in journal.paused()]
    where = f"in {Path(folder).resolve()}" if folder else "everywhere"
    still = f"Paused {' and '.join(left)}: mulligan hooks resume{' FOLDER' * (left != ['everywhere'])} ends the pause."
    if not taken_back:
        raise NotFound(f"Hooks are not paused {where}. {still if left else 'No pause is in effect.'}")
    emit(f"The pause {where} has ended. {still}" if left else "Hooks are active again.")
