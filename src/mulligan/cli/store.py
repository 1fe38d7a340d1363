"""`mulligan store`: shows, backs up, restores, copies and sets up the store."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path

import click

from mulligan.app import backup as library
from mulligan.app.config import load
from mulligan.cli.groups import Group
from mulligan.cli.stores import with_store
from mulligan.cli.terminal import columns, emit, say
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.store import file_of, open_store, parse_address
from mulligan.store.moving import Moved, move
from mulligan.store.state import state


@click.group(cls=Group)
def store() -> None:
    """Inspect, back up, copy and set up the store of runs and lessons."""


@store.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Copy the store to a new FILE, even while servers and commands are using it."""
    library.back_up(load(), file)
    emit(f"{file}  {file.stat().st_size:,} bytes")


@store.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="If a store already exists, rename it first.")
def restore(file: Path, replace: bool) -> None:
    """Restore the store from the backup FILE, except for data erased since the backup was made."""
    done = asyncio.run(library.restore(load(), file, replace=replace))
    if done.lessons or done.episodes:
        _say_erased(done.lessons, done.episodes)
    if done.replaced:
        say(f"The earlier store was renamed to {done.replaced}: remove it once you no longer need it.")
    emit(str(load().store))


@store.command()
@click.argument("files", nargs=-1, type=click.Path(dir_okay=False, path_type=Path))
def erase_again(files: tuple[Path, ...]) -> None:
    """Repeat earlier erasures after a database has been restored with its own tools.

    Each machine records its erasures in a file in its MULLIGAN_HOME. This machine's file is always read. Pass the other
    machines' files as FILES.
    """
    _say_erased(*asyncio.run(library.erase_again(load(), files)))


def _say_erased(lessons: int, episodes: int) -> None:
    erased = f"{count(lessons, 'lesson')} and {count(episodes, 'episode')}"
    say(f"{erased} erased again, because they had been erased after the backup was made.")


@store.command()
@click.argument("address")
@click.option("--role", metavar="NAME", default="", help="The role that the server uses, created if it does not exist.")
@click.option(
    "--bank",
    "--agent-id",
    "agent_id",
    metavar="NAME",
    help="The role serves only this agent.",
)
@click.option("--all-banks", "--all-agents", "all_agents", is_flag=True, help="The role serves all agents.")
def setup(address: str, role: str, agent_id: str | None, all_agents: bool) -> None:
    """Create or upgrade the tables at ADDRESS, and give a database role access to them.

    ADDRESS, such as postgresql://owner@host/name, contains the role that owns the tables. Commands and servers use a
    different role.
    """
    if parse_address(address)[0] != "postgresql":
        raise InvalidInput(f"{address!r} needs no setup: only PostgreSQL stores do, such as postgresql://me@host/db")
    if bool(role) != (all_agents or agent_id is not None) or (all_agents and agent_id is not None):
        raise InvalidInput("A role serves one agent or all: with --role, add --bank NAME or --all-banks.")
    require("A store in PostgreSQL needs psycopg", "psycopg", "postgres")
    from mulligan.store.postgresql.schema import setup as make

    ran = make(address, role, agent=agent_id)
    say(f"The tables are up to date ({count(ran, 'migration')} ran)." if ran else "The tables were up to date.")
    if role:
        say(f"The role {role} may serve {'all agents' if agent_id is None else f'the agent {agent_id!r}'}.")


@store.command()
@click.option("--from", "source", metavar="ADDRESS", required=True, help="The store to copy.")
@click.option(
    "--to", "target", metavar="ADDRESS", required=True, help="An empty store, or the target of an interrupted copy."
)
def migrate(source: str, target: str) -> None:
    """Copy an entire store to another store of any kind and compare every row. An interrupted copy continues where it
    stopped.

    While the copy runs, nothing else may write to either store. In PostgreSQL, the role must serve all agents.
    """

    def tell(moved: Moved) -> None:
        if moved.compared:
            say(f"{moved.table}: {moved.copied} copied, {moved.compared} equal")

    if (file := file_of(source)) and not file.is_file():
        raise InvalidInput(
            f"There is no store at {file}, so there is nothing to copy. Specify an existing store with --from."
        )

    async def main() -> int:
        async with open_store(source) as here, open_store(target) as there:
            return sum(one.compared for one in await move(here, there, tell))

    say(f"Equal in both stores: {count(asyncio.run(main()), 'row')}.")


@store.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Show the store's version, size, contents and pending jobs, and give advice."""
    found = with_store(state)
    if as_json:
        emit(json.dumps(asdict(found), ensure_ascii=False, indent=2))
        return
    rows = [*found.engine.items(), *((name, str(n)) for name, n in found.totals.items())]
    waiting = ", ".join(f"{n} {status}" for status, n in found.queue.items()) or "empty"
    emit(columns([*rows, ("queue", waiting), ("leases", f"{found.leases} ({found.expired} expired)")], heading=False))
    for advice in found.advice:
        say(advice)
