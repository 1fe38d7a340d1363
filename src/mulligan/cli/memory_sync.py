"""`mulligan memory sync`: share a bank as a folder of Markdown files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mulligan.cli.errors import NOT_SOLVED
from mulligan.cli.memory import memory
from mulligan.cli.memory_banks import for_bank, writing
from mulligan.cli.memory_words import SHORT
from mulligan.cli.terminal import clean, columns, emit, one_line, say
from mulligan.cli.words import count

if TYPE_CHECKING:
    from mulligan.app.memory import Bank


@memory.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--ours", multiple=True, metavar="ID", help="In a conflict, keep the bank's version. Repeatable.")
@click.option("--theirs", multiple=True, metavar="ID", help="In a conflict, keep the file's version. Repeatable.")
@for_bank(writing)
async def sync(bank: Bank, folder: Path, ours: Sequence[str], theirs: Sequence[str]) -> None:
    """Synchronise the bank with Markdown files in DIR, one per lesson, so that you can share it through git.

    If a lesson has changed on one side since the last sync, the change is copied to the other side. If it has changed
    on both sides, both versions are kept, and the exit status is 1. New lessons from files are quarantined, lessons
    whose files are missing are retired, and secrets are masked. Commit, push and pull in DIR yourself.
    """
    from mulligan.app.memory_sync import sync as sync_folder  # with numpy, which the help of the group needs not

    changes = await sync_folder(bank, folder, ours=ours, theirs=theirs)
    if changes:
        emit(columns([(one.outcome, one.id[:SHORT], one.file, one_line(one.title, 60)) for one in changes]))
    for one in changes:
        if one.why:
            say(clean(one.why))
    done = Counter(one.outcome for one in changes)
    if done["received"]:
        say("Received lessons are quarantined: mulligan memory list --quarantined, then release ID")
    if done["conflict"]:
        say(
            f"{count(done['conflict'], 'lesson')} changed in the bank and in {clean(str(folder))}. To compare them: "
            "mulligan memory show ID. Then make both versions identical, or sync with --ours ID (the bank) or --theirs "
            "ID (the file)."
        )
    said = ", ".join(f"{n} {outcome}" for outcome, n in done.items())
    say(said or "Nothing has changed.")
    if done["conflict"] or done["left"]:
        click.get_current_context().exit(NOT_SOLVED)
