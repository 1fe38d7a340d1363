"""`mulligan hooks install`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from mulligan.app.sessions import transcripts
from mulligan.cli.terminal import emit, say
from mulligan.core.errors import InvalidInput
from mulligan.hooks import codex_trust, install
from mulligan.hooks.project import allow
from mulligan.sessions.agents import NAMES, CodingAgent, Scope, agent
from mulligan.text.plain import count

_PAST = 30
"""Days of past sessions that are looked for."""


@click.command(short_help="Add hooks to the settings of coding agents.")
@click.argument("agents", nargs=-1, metavar="[AGENT]...", type=click.Choice(NAMES))
@click.option("--user", is_flag=True, help="Install the hooks for all your projects (the default).")
@click.option(
    "--project", is_flag=True, help="Install the hooks only for this folder's project, in its local settings."
)
@click.option("--shared", is_flag=True, help="With --project: use the settings shared through the repository.")
@click.option("--yes", is_flag=True, help="Write the files without asking.")
@click.option(
    "--trust",
    is_flag=True,
    help="For Codex: trust the hooks without reviewing them in Codex. Without --yes, you are asked first.",
)
def command(agents: tuple[str, ...], user: bool, project: bool, shared: bool, yes: bool, trust: bool) -> None:
    """Add hooks to the settings of coding agents (by default, all installed agents), after asking for confirmation.

    AGENT is one of claude, codex, gemini, opencode, qwen, cursor and copilot.

    The command lists the files that would change. Answer d to see the changes. If stdout is not a terminal, the
    changes are always printed. Existing settings are kept. Hooks from an older version of Mulligan are replaced.
    `mulligan hooks uninstall` restores each file.
    """
    scope = chosen_scope(user, project, shared)
    if trust and "codex" not in (agents or install.present()):
        raise InvalidInput("--trust is for Codex hooks, which this command does not install.")
    found = [agent(name) for name in agents or install.present()]
    if not found:
        raise InvalidInput(f"No coding agent was found here. Specify one: {', '.join(NAMES)}.")
    folder = Path.cwd()
    changes: list[tuple[CodingAgent, install.Change]] = []
    for one in found:
        try:
            changes.append((one, install.installation(one, scope, folder)))
        except InvalidInput as error:
            if agents:
                raise
            say(f"Skipped {one.title}: {error}")
    new = [change for _, change in changes if change.diff()]
    for one, change in changes:
        if diff := change.diff():
            emit(_summary(one, change) if sys.stdout.isatty() else diff)
        else:
            say(f"{one.title}: {change.path} already contains the hooks.")
        if change.diff() and not one.tried:
            say(f"{one.title} hooks follow the agent's documentation, but were not tested.")
    if new:
        if not yes and not _agrees(new, agents):
            raise click.Abort
        for change in new:
            install.write([change], installing=True)
            say(f"Wrote {change.path}.")
        if scope != "user":
            allow(str(folder))
    if any(one.name == "codex" for one in found):
        _trust_codex(folder, yes=yes, trust=trust)
    if new:
        say("`mulligan hooks doctor` tests the hooks; `mulligan hooks uninstall` removes them.")
        if any(transcripts([one.name for one in found if one.readable], time.time() - _PAST * 86400)):
            say(f"To learn from this machine's past sessions: mulligan learn --since {_PAST}d --all-projects")


def _summary(of: CodingAgent, change: install.Change) -> str:
    """What is written, without the text of the file."""
    events = list(dict.fromkeys(hook.event for hook in of.hooks))
    what = f"{count(len(events), 'hook')} ({', '.join(events)})" if events else "a plug-in"
    kept = "" if change.before is None else "; its other contents are kept"
    return f"{of.title}: {what} in {change.path}{kept}."


def _agrees(changes: Sequence[install.Change], agents: tuple[str, ...]) -> bool:
    """Whether the user lets these files be written. Raises `InvalidInput` where nobody can be asked."""
    files = "this file" if len(changes) == 1 else f"these {len(changes)} files"
    choice = click.Choice(["y", "n", "d"], case_sensitive=False)
    try:
        while (
            answer := click.prompt(f"Write {files}? (d shows the changes)", type=choice, default="n", err=True)
        ) == "d":
            emit("".join(change.diff() for change in changes))
        return answer == "y"
    except click.Abort:
        if sys.stdin.isatty():
            raise
        again = " ".join(["mulligan hooks install", *agents, "--yes"])
        raise InvalidInput(
            "Nothing was written: without a terminal, Mulligan cannot ask for confirmation. To write without "
            f"asking: {again}"
        ) from None


def chosen_scope(user: bool, project: bool, shared: bool) -> Scope:
    """The settings that the options name."""
    if user and project:
        raise InvalidInput("Use either --user or --project.")
    if shared and not project:
        raise InvalidInput("--shared needs --project.")
    return "project" if shared else "local" if project else "user"


def _trust_codex(folder: Path, *, yes: bool, trust: bool) -> None:
    """Say what Codex needs before it runs the hooks, and write it if the user wants that."""
    try:
        waiting = [hook for hook in codex_trust.listed(folder) if hook["trustStatus"] != "trusted"]
    except InvalidInput as error:
        say(f"{error} Codex runs a hook only after you have trusted it: start codex and type /hooks.")
        return
    if not waiting:
        return
    say(f"Codex skips {len(waiting)} of these hooks until you trust them: start codex and type /hooks.")
    if yes and not trust:
        return
    config = Path(agent("codex").folder()) / "config.toml"
    change = install.trust(waiting, config)
    emit(change.diff())
    if not yes and not click.confirm(
        f"Or write this into {config} now? Codex then runs these commands without asking you to review them.",
        err=True,
    ):
        return
    install.write([change], installing=True)
    say(f"Wrote {config}.")
