"""`mulligan hooks uninstall`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.cli.hooks.install import chosen_scope
from mulligan.cli.terminal import emit, say
from mulligan.hooks import doctor, install
from mulligan.sessions.agents import NAMES, agent


@click.command(short_help="Remove the hooks and restore the settings files.")
@click.argument("agents", nargs=-1, metavar="[AGENT]...", type=click.Choice(NAMES))
@click.option("--user", is_flag=True, help="Remove only the hooks in your user settings.")
@click.option("--project", is_flag=True, help="Remove only the hooks in the local settings of this folder's project.")
@click.option("--shared", is_flag=True, help="With --project: remove the hooks shared through the repository.")
@click.option("--yes", is_flag=True, help="Write the files without asking.")
def command(agents: tuple[str, ...], user: bool, project: bool, shared: bool, yes: bool) -> None:
    """Remove the hooks and restore the settings files.

    By default, the command checks all agents' user and project settings. If a file has changed since the
    hooks were installed, only Mulligan's entries are removed.
    """
    scopes = [chosen_scope(user, project, shared)] if user or project or shared else None
    changes = [
        change
        for name, scope, path, text in install.installations(Path.cwd())
        if (not agents or name in agents) and (scopes is None or scope in scopes)
        for change in [install.removal(path, text)]
        if change.after != change.before
    ]
    if not changes:
        say("No Mulligan hooks were found in the settings.")
        for one in map(agent, agents or NAMES):
            if place := doctor.plug_in(one, Path.cwd()):
                say(f"{one.title} has Mulligan's plug-in: {place}.")
        return
    for change in changes:
        emit(change.diff())
        if change.note:
            say(change.note)
    if not yes:
        many = "this file" if len(changes) == 1 else f"these {len(changes)} files"
        click.confirm(f"Change {many}?", abort=True, err=True)
    for change in changes:
        install.write([change], installing=False)
        say(f"{'Removed' if change.after is None else 'Wrote'} {change.path}.")
