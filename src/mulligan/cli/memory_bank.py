"""What every command of `mulligan memory` shares: whose lessons, which bank, and how values of options are read."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mulligan.app.config import read_text
from mulligan.cli.terminal import standard_input
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.text.json_lines import parsed

if TYPE_CHECKING:
    from mulligan.bank.bank import Bank


T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

EVERY = "*"
_ID = "Whose lessons: an agent's id; without it, the unnamed agent's."
_ALL = f"The lessons of all agents, for reading only; the same as --agent-id '{EVERY}'."


def agent_options(command: F) -> F:
    """--agent-id and --all-agents, on the group and on each of its commands; the command's own goes before."""

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
    """The agent that was named, EVERY for all; None where none was."""
    return click.get_current_context().meta.get(_KEY)


def reading() -> str | None:
    """The agent_id to read with: None is all agents."""
    named = named_agent()
    return None if named == EVERY else named or ""


def writing() -> str:
    """The agent_id to write with. Raises `InvalidInput` where all were named."""

    if named_agent() == EVERY:
        raise InvalidInput("This changes lessons, and a change is of one agent: name it with --agent-id NAME.")
    return named_agent() or ""


def with_bank(agent_id: str | None, work: Callable[[Bank], Awaitable[T]], **given: Any) -> T:
    """`work` with the bank of this agent, which is closed afterwards. What is queued meanwhile is begun with."""
    import asyncio

    from mulligan.app.memory import open_bank

    async def main() -> T:
        bank = open_bank(agent_id, **{key: value for key, value in given.items() if value is not None})
        try:
            return await work(bank)
        finally:
            await bank.close()

    return asyncio.run(main())


def json_of(file: str, what: str) -> Json:
    """The JSON in a file, or of standard input for "-". Raises `InvalidInput` with the line of what is wrong."""

    path = Path("standard input" if file == "-" else file)
    return parsed(path, standard_input(what) if file == "-" else read_text(path))


def dumped(value: Json) -> str:
    """As text that changes no terminal: control characters are escaped."""
    return json.dumps(value, ensure_ascii=False, indent=2).replace("\x7f", "\\u007f")


def time_of(text: str | None) -> float | None:
    """A time such as 2026-01-31, 2026-01-31T12:00, 2026-01-31T12:00Z, or seconds since the epoch. Without a zone it is
    that of this machine. Raises `InvalidInput`."""

    if text is None:
        return None
    try:
        return float(text) if text.replace(".", "", 1).isdigit() else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise InvalidInput(f"{text!r} is no time such as 2026-01-31, 2026-01-31T12:00Z or 1769860800.") from None


def threshold_of(text: str | None) -> float | str | None:
    """A number, else the name of a preset; the bank says what cannot be."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text
