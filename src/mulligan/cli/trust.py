"""`mulligan trust`: show what a project would run or redirect, and allow it once."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mulligan.app.trust import VARIABLE
from mulligan.app.trusting import Asked, asked
from mulligan.cli.terminal import columns, emit, one_line, say
from mulligan.core.errors import InvalidInput


@click.command()
@click.argument("folder", default=".")
@click.option("--print", "prints", is_flag=True, help=f"Print the hash for {VARIABLE} instead of asking.")
@click.option("--revoke", is_flag=True, help="Stop trusting the project.")
def trust(folder: str, prints: bool, revoke: bool) -> None:
    """Show what the project in FOLDER (default: the working folder) would run or redirect, and ask whether you trust
    it.

    FOLDER may also be an agent's folder. Until you trust the project, its plug-ins, addresses, models, stores and .env
    are not used. You are asked again when any of these change.
    """
    found = asked(Path(folder))
    if revoke:
        say(f"{found.folder} is no longer trusted." if found.revoke() else f"{found.folder} was not trusted.")
        return
    _show(found)
    if found.unsafe:
        raise InvalidInput(f"{found.folder} cannot be trusted: {found.unsafe}.")
    if prints:
        emit(found.hashes)
    elif not found.open:
        say(f"{found.folder} has no settings or agents that need your trust.")
        say("To check an agent in another folder: mulligan trust FOLDER")
    elif not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        raise InvalidInput(
            "Only a person at a terminal can trust a project: run mulligan trust there. In CI and containers, set "
            f"{VARIABLE} to the value that mulligan trust --print shows."
        )
    elif click.confirm("Do you trust this?", default=False, err=True):
        found.trust()
        say(f"{found.folder} is trusted until any of this changes.")
    else:
        raise click.Abort


def _show(found: Asked) -> None:
    """Prints each thing that would run or redirect on a line of stderr."""
    rows = [(part.folder, item) for part in found.parts for item in part.items]
    lines = [(one_line(_where(found, at, item.name), 80), one_line(item.shown, 160)) for at, item in rows]
    if found.bank is not None:
        lines.append((one_line(str(found.bank), 80), "the bank that the repository brought"))
    if lines:
        say(f"{one_line(str(found.folder), 300)} would run or redirect:")
        say(columns(lines, heading=False, inset=2))
    if found.broken:
        names = ", ".join(path.name for path in found.broken)
        say(one_line(f"Not read, because of errors that mulligan lint shows: {names}", 300))
    if found.ignored:
        say(one_line(f"Never read from .env: {', '.join(found.ignored)}", 300))


def _where(found: Asked, at: Path, name: str) -> str:
    return name if at == found.folder else f"{at.name}: {name}"
