"""`mulligan hooks set`."""

from __future__ import annotations

from pathlib import Path

import click

from mulligan.cli.terminal import emit
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.hooks.journal import Journal
from mulligan.hooks.journal_file import OWN, SETTINGS


@click.command("set", short_help="Change a setting, or list the settings.")
@click.argument("name", required=False)
@click.argument("value", required=False)
def command(name: str | None, value: str | None) -> None:
    """Set NAME to VALUE. Without VALUE, print the current value. Without NAME, print all settings.

    \b
    needed     how many sessions must agree before a
               candidate becomes a kept lesson
    why        who explains what a session taught: none;
               ask (at the end of a turn, the agent
               explains why a command failed and, over
               MCP, judges candidates); a model, such as
               openai:gpt-4o-mini; or a command, such as
               "command:claude -p"
    tokens     how many tokens a model or command may
               use per day
    withhold   the share of lessons withheld at random, to
               measure what they are worth
    days       how many days a session's records are kept
    evidence   how many days the evidence for lessons is
               kept
    subagents  which lessons sub-agents use: project, or
               own (a separate bank for each type of
               sub-agent in a project)
    """
    if name is not None and name not in SETTINGS:
        raise UnknownName("hook setting", name, SETTINGS)
    with Journal() as journal:
        if name is None or value is None:
            emit("\n".join(f"{one} = {journal.setting(one)}" for one in ([name] if name else SETTINGS)))
            return
        journal.set(name, kept := _checked(name, value))
    emit(f"{name} = {kept}")


def _checked(name: str, value: str) -> str:
    """The value as it is kept. Raises `InvalidInput`."""
    if name == "why":
        from mulligan.app.session_judge import checked

        return checked(value, Path.cwd())
    if name == "subagents":
        if value not in ("project", OWN):
            raise InvalidInput(f"'subagents' must be project or {OWN}, not {value}.")
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
