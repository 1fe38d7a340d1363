"""The commands of `mulligan memory` that take lessons in and out, and look after what is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mulligan.bank.exchange.files import archives_from_json
from mulligan.bank.exchange.lesson_page import markdown
from mulligan.cli.memory_bank import EVERY, agent_options, dumped, named_agent, reading, with_bank, writing
from mulligan.cli.terminal import clean, emit, put, say
from mulligan.cli.words import count
from mulligan.core.errors import ModelError
from mulligan.core.lessons import Finding

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank


@click.command("import")
@click.argument("file")
@agent_options
def import_(file: str) -> None:
    """Take in the lessons in FILE: an export of ours, a memories.json of ReasoningBank-MCP, a memory.jsonl of the
    official memory server.

    They go to the agents that the file names; with --agent-id, all to that one. Read whole and checked before anything
    is kept; what is there already is not taken in twice.
    """
    import asyncio

    from mulligan.app.memory_transfer import import_file

    agent = None if named_agent() in (None, EVERY) else writing()
    done = asyncio.run(import_file(Path(file), agent))
    for note in done.notes:
        say(clean(note))
    if done.lessons:
        emit("\n".join(done.lessons))
    for n, what in ((done.known, "known already"), (done.quarantined, "held back: mulligan memory list --quarantined")):
        if n:
            say(f"{count(n, 'lesson')} {what}")
    say(f"{count(len(done.lessons), 'lesson')} taken in from {file} ({done.format})")


@click.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "md"]),
    default="json",
    show_default=True,
    help="json has everything and can be imported, md is for reading.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
@agent_options
def export(form: str, output: str | None) -> None:
    """The lessons of all states, with their histories, links and recalls."""
    import asyncio

    from mulligan.app.memory_transfer import export as library

    everything = asyncio.run(library(reading()))
    text = clean(markdown(archives_from_json(everything))) if form == "md" else dumped(everything)
    put(text, output)


@click.command("import-config")
@click.argument("file")
def import_config(file: str) -> None:
    """The config.yaml of ReasoningBank-MCP in FILE as a mulligan.toml, on stdout; what of it has no place here, on
    stderr."""
    from mulligan.app.memory_upstream import import_config as library

    text, notes = library(Path(file))
    emit(text)
    for note in notes:
        say(clean(f"note: {note}"))


@click.command()
@agent_options
def reembed() -> None:
    """Make vectors for all lessons that have none of the embedder in force."""
    from mulligan.app.memory_transfer import reembed as library

    why_not = with_bank(writing(), library)
    if why_not:
        raise ModelError(f"No vectors could be made: {why_not}")
    say("Every lesson has its vector.")


@click.command()
@click.option("--mend", is_flag=True, help="Put right what can be put right.")
@click.pass_context
def verify(ctx: click.Context, mend: bool) -> None:
    """Check the file that the lessons are kept in. Ends with 1 when something is wrong with it."""

    async def work(bank: Bank) -> list[Finding]:
        return list(await bank.verify(mend=mend))

    found = with_bank(None, work)
    for one in found:
        about = f"{one.id}: " if one.id else ""
        emit(clean(f"{'mended' if one.mended else 'wrong'}  {about}{one.what}"))
    wrong = sum(not one.mended for one in found)
    if wrong and not mend:
        say("mulligan memory verify --mend puts right what can be put right.")
    elif not found:
        say("All is well.")
    ctx.exit(1 if wrong else 0)


@click.command()
@click.option("--seconds", type=float, metavar="S", help="Begin nothing new after S seconds.")
@click.option("--model", metavar="MODEL", help="Who thinks; without one, the one of [memory] or MULLIGAN_MODEL.")
def work(seconds: float | None, model: str | None) -> None:
    """Do the work that was accepted and is not done, whoever accepted it."""

    async def do(bank: Bank) -> None:
        done = await bank.work(seconds)
        left = len(await bank.pending())
        say(f"{count(done, 'piece')} of work done{f', {left} not: mulligan memory pending' if left else ''}")

    with_bank(None, do, model=model)


COMMANDS = (import_, export, import_config, reembed, verify, work)
