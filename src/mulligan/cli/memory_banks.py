"""Which bank a command of `mulligan memory` reads or changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mulligan.app.editing import person
from mulligan.cli.terminal import clean, say
from mulligan.core.errors import InvalidInput
from mulligan.core.operations import acting_as

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

EVERY = "*"
_ID = "The agent whose lessons to use (default: the unnamed agent)."
_ALL = f"Use the lessons of all agents, for reading only; the same as --agent-id '{EVERY}'."


def agent_options(command: F) -> F:
    """Adds --agent-id and --all-agents to the group or a command; the command's own options win."""

    def note(ctx: click.Context, option: click.Parameter, value: str | bool | None) -> None:
        if value:
            ctx.meta[_KEY] = EVERY if value is True else value
        elif value == "":
            ctx.meta[_KEY] = ""

    for option in (
        click.option("--all-agents", is_flag=True, expose_value=False, callback=note, help=_ALL),
        click.option("--agent-id", metavar="NAME", expose_value=False, callback=note, help=_ID),
    ):
        command = option(command)
    return command


_KEY = "mulligan.memory.agent"


def named_agent() -> str | None:
    """The agent that was named; `EVERY` for all, None if none was."""
    return click.get_current_context().meta.get(_KEY)


def reading() -> str | None:
    """The agent_id to read with; None means all agents."""
    named = named_agent()
    return None if named == EVERY else named or ""


def writing() -> str:
    """The agent_id to write with. Raises `InvalidInput` where all agents were named."""
    if named_agent() == EVERY:
        raise InvalidInput("This changes lessons, which belong to one agent: name it with --agent-id NAME.")
    return named_agent() or ""


def library():  # pyright gives it the type of the module
    from mulligan.app import memory as library  # with numpy

    return library


def with_bank(agent_id: str | None, work: Callable[[Bank], Awaitable[T]], **given: Any) -> T:
    """Run `work` with the bank of this agent, and close the bank afterwards."""

    async def main() -> T:
        bank = library().open_bank(agent_id, **{key: value for key, value in given.items() if value is not None})
        try:
            if bank.notice:
                say(clean(bank.notice))
            return await work(bank)
        finally:
            await bank.close()

    with acting_as(f"cli {person()}"):
        return asyncio.run(main())


def for_bank(
    whose: Callable[[], str | None],
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turns a function of a bank into a command with --agent-id and --all-agents. whose: gives the agent_id."""

    def made(command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(command)
        def run(*, model: str | None = None, **given: Any) -> None:
            with_bank(whose(), lambda bank: command(bank, **given), model=model)

        return agent_options(run)

    return made
