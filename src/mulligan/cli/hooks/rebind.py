"""`mulligan hooks rebind`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.app.config import load, project_here
from mulligan.cli.terminal import emit
from mulligan.cli.words import count
from mulligan.hooks.journal import Journal
from mulligan.hooks.project import PREFIX, allow, project_id
from mulligan.hooks.recall import Reader


@click.command("rebind", short_help="Make this project use another bank.")
@click.argument("bank", required=False)
@click.option(
    "--folder",
    default=".",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="A folder in the project (default: the working folder).",
)
def command(bank: str | None, folder: str) -> None:
    """Make this project use the bank named BANK, such as the one it used before its address changed.

    Without BANK, the project uses its own bank again, which it shares with other folders of the same repository. The
    other bank keeps its lessons.
    """
    there = Path(folder).absolute()
    if not bank:
        project_here(load(there), there, allowed=True)
        allow(str(there))
    project = project_id(str(there))
    if bank and ":" not in bank:
        bank = PREFIX + bank
    reader = Reader(bank or project, wait=1.0)
    try:
        if bank not in (None, "", project) and not reader.knows(bank):
            click.confirm(f"There is no bank {bank} here yet. Use it anyway?", abort=True, err=True)
        kept, candidates = reader.numbers()
    finally:
        reader.close()
    with Journal() as journal:
        journal.bind(project, bank or project)
    lessons = f"{kept} kept, {count(candidates, 'candidate')}"
    emit(f"{project} uses {bank or 'its own bank'} in new sessions. Lessons in it: {lessons}.")
