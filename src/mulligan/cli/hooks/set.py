"""`mulligan hooks set`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.cli.terminal import emit
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.hooks.journal import OWN, SETTINGS, Journal


@click.command("set")
@click.argument("name", required=False)
@click.argument("value", required=False)
def command(name: str | None, value: str | None) -> None:
    """Set NAME to VALUE, or list the settings.

    needed: sessions in which something is seen until it is no candidate any more. withhold: the share of the lessons
    that a draw withholds, so that what they are worth can be measured. days: how long what was noted of a session is
    kept. evidence: for how many days the outputs that a lesson rests on are kept. why: who says why a command failed
    that was overcome: none, ask (the agent, when it stops, once in a session), a model such as openai:gpt-4o-mini, or
    the command line of an agent, such as "command:claude -p". subagents: whose lessons sub-agents read and add to:
    project, or own (a bank for each type of sub-agent in a project).
    """
    with Journal() as journal:
        if name is None or value is None:
            emit("\n".join(f"{one} = {journal.setting(one)}" for one in SETTINGS))
            return
        if name not in SETTINGS:
            raise UnknownName("setting of hooks", name, SETTINGS)
        journal.set(name, kept := _checked(name, value))
    emit(f"{name} = {kept}")


def _checked(name: str, value: str) -> str:
    """The value as it is kept. Raises `InvalidInput`."""
    if name == "why":
        from mulligan.app.reasons import checked

        return checked(value, Path.cwd())
    if name == "subagents":
        if value not in ("project", OWN):
            raise InvalidInput(f"subagents is project or {OWN}, not {value}.")
        return value
    _, least, most = SETTINGS[name]
    wrong = InvalidInput(f"{name} is a number from {least:g} to {most:g}, not {value}.")
    try:
        number = float(value)
    except ValueError:
        raise wrong from None
    if not least <= number <= most:
        raise wrong
    return f"{number:g}"
