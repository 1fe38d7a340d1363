"""Which banks a command of `mulligan memory` reads, and which one it changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mulligan.app.backup import erasures_file
from mulligan.app.config import load
from mulligan.app.editing import person
from mulligan.cli.terminal import clean, say
from mulligan.core.errors import AmbiguousId, InvalidInput, NotFound, StoreError
from mulligan.core.home import home
from mulligan.core.operations import acting_as
from mulligan.hooks.journal import Journal
from mulligan.hooks.journal_file import FILE as JOURNAL
from mulligan.hooks.project import PREFIX, USER, project_of
from mulligan.hooks.recall import store_file
from mulligan.store import file_of, open_store

if TYPE_CHECKING:
    from mulligan.app.memory import Bank

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

EVERY = "*"
_BANK = (
    "Use this agent's bank. Without this option, the default bank is used, and read-only commands also use the "
    "project's bank."
)
_ALL = f"Read all agents' banks (same as --bank '{EVERY}')."


def agent_options(command: F) -> F:
    """Adds --bank and --all-banks to the group or a command; the command's own options win."""

    def note(ctx: click.Context, option: click.Parameter, value: str | bool | None) -> None:
        if value:
            ctx.meta[_KEY] = EVERY if value is True else value
        elif value == "":
            ctx.meta[_KEY] = ""

    for option in (
        click.option(
            "--all-banks", "--all-agents", "all_agents", is_flag=True, expose_value=False, callback=note, help=_ALL
        ),
        click.option("--bank", "--agent-id", "agent_id", metavar="NAME", expose_value=False, callback=note, help=_BANK),
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
        raise InvalidInput("This command changes lessons, which belong to one bank: specify the bank with --bank NAME.")
    return named_agent() or ""


def project_agent(folder: str = "") -> str:
    """The agent that was named, else that of the project of this folder (default: the working folder)."""
    if named_agent() is not None:
        return writing()
    project = project_of(folder or os.getcwd())
    if project.notice:
        say(clean(project.notice))
    with Journal() as journal:
        return journal.bank_of(PREFIX + project.id)


def banks_here() -> Sequence[str]:
    """The banks that count in the working folder: the unnamed agent's, and those that hooks of coding agents use."""
    if not (home() / JOURNAL).exists():
        return ("",)
    project = PREFIX + project_of(os.getcwd()).id
    with Journal() as journal:
        bank = journal.bank_of(project)
        return tuple(dict.fromkeys(("", bank, *journal.banks_of_subagents(bank), USER)))


def library():  # pyright gives it the type of the module
    from mulligan.app import memory as library  # with numpy

    return library


def with_bank(agent_id: str | None, work: Callable[[Bank], Awaitable[T]], **given: Any) -> T:
    """Run `work` with the bank of this agent, and close the bank afterwards."""

    async def main() -> T:
        async with _opened(agent_id, **given) as bank:
            if bank.notice:
                say(clean(bank.notice))
            return await work(bank)

    return _run(main())


def for_bank(
    whose: Callable[[], str | None], *, of: str = "", look: Look | None = None
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Turns a function of a bank into a command with --bank and --all-banks.

    Args:
        whose: gives the agent_id.
        of: the argument with an id. Where no bank was named, the bank that has it is used.
        look: the agent whose bank has an id; None: that of a lesson.
    """

    def made(command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @wraps(command)
        def run(*, model: str | None = None, **given: Any) -> None:
            async def work(bank: Bank) -> None:
                await command(bank, **given)

            agent = whose()
            ids: Any = given.get(of) or ()
            if ids and named_agent() is None:
                id = ids if isinstance(ids, str) else ids[0]
                _run(_with_the_bank_of(id, look or _of_lesson, work, model=model))
            else:
                with_bank(agent, work, model=model)

        return agent_options(run)

    return made


def for_banks(command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Turns a function of several banks into a command with --bank and --all-banks. Without these, the banks are those
    that count in the working folder."""

    @wraps(command)
    def run(**given: Any) -> None:
        async def main() -> None:
            async with AsyncExitStack() as stack:
                if named_agent() == EVERY:
                    agents = every_bank()
                else:
                    agents = banks_here() if named_agent() is None else [writing()]
                banks = [await stack.enter_async_context(_opened(agent)) for agent in agents]
                for notice in {bank.notice for bank in banks} - {""}:
                    say(clean(notice))
                await command(banks, **given)

        _run(main())

    return agent_options(run)


# --- where banks are --------------------------------------------------------------------------------------------------

_HOOKS = f"{EVERY}hooks"
"""In place of an agent_id: all banks in the store of hooks."""

Look = Callable[["Bank", str], Awaitable[str]]


async def _of_lesson(bank: Bank, id: str) -> str:
    return (await bank.get(id)).agent_id


async def of_recall(bank: Bank, id: str) -> str:
    return (await bank.receipt(id)).agent_id or ""


async def of_lesson_or_recall(bank: Bank, id: str) -> str:
    try:
        return await _of_lesson(bank, id)
    except NotFound:
        return await of_recall(bank, id)


async def of_work(bank: Bank, id: str) -> str:
    id = id.removeprefix("extract_")
    found = next((one.agent_id for one in await bank.pending() if one.id == id), None)
    if found is None:
        raise NotFound(f"There is no pending job {id!r} in this bank.")
    return found


async def _with_the_bank_of(id: str, look: Look, work: Callable[[Bank], Awaitable[None]], **given: Any) -> None:
    """Runs `work` with the bank that has this id: of those that count here, else of all."""
    for agent in (*banks_here(), *every_bank()):
        async with _opened(agent, **given) as bank:
            try:
                owner = await look(bank, id)
            except AmbiguousId:
                raise
            except NotFound:
                continue
            except StoreError:
                if agent in (None, _HOOKS):  # a role of a database that may not read all banks
                    continue
                raise
            if owner == bank.agent_id:
                await work(bank)
                return
        async with _opened(owner, **given) as bank:
            await work(bank)
            return
    async with _opened("", **given) as bank:
        await work(bank)  # says in its own words that there is none


def every_bank() -> Sequence[str | None]:
    """All banks of each store in which lessons may be."""
    return (None, _HOOKS) if _apart() else (None,)


def _opened(agent_id: str | None, **given: Any) -> Bank:
    """The bank of this agent. Those of hooks are in the store of hooks, and their facts are of no named project."""
    of_hooks = agent_id is not None and (agent_id.startswith(PREFIX) or agent_id in (USER, _HOOKS))
    given = {key: value for key, value in given.items() if value is not None}
    if of_hooks:
        given = {"project": "", **({"store": open_store(store_file()).memory} if _apart() else {}), **given}
    bank = library().open_bank(None if agent_id == _HOOKS else agent_id, **given)
    if of_hooks and "store" in given:
        bank.erasures = erasures_file(store_file())
    return bank


def _apart() -> bool:
    """Whether hooks keep their banks in another store than the one that is configured here."""
    here = file_of(load().store)
    return os.path.exists(store_file()) and (not here or os.path.realpath(here) != os.path.realpath(store_file()))


def _run(main: Any) -> Any:
    with acting_as(f"cli {person()}"):
        return asyncio.run(main)
