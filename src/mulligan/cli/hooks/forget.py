"""`mulligan hooks forget`."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import click

from mulligan.app.sessions import alone, project_bank
from mulligan.cli.terminal import emit
from mulligan.cli.words import count
from mulligan.core.errors import InvalidInput, NotFound, StoreError
from mulligan.core.lessons import Selection
from mulligan.hooks.journal import Journal
from mulligan.hooks.learning import STATES, evidence_of, sessions_of
from mulligan.hooks.project import USER
from mulligan.hooks.recall import store_file
from mulligan.sessions.pairs import TAG
from mulligan.sessions.records import as_record
from mulligan.store import open_store

WAIT = 120.0
"""Seconds to wait for a process that learns."""


@click.command("forget", short_help="Remove a session's records and the lessons learned only from it.")
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def command(session: str, yes: bool) -> None:
    """Remove SESSION's records and the lessons learned only from it. The first few characters of the session's id are
    enough.

    Mulligan does not learn from this session again unless you run `mulligan learn FILE --forgotten`. The agent's own
    transcript is kept. `mulligan hooks status --json` lists the session ids.
    """
    with Journal() as journal:
        parts = journal.sessions_like(session)  # main agents come first
        taught = asyncio.run(_teachers(session))  # also those whose transcript was learned from by hand
        found = dict([*((one[0], one[1]) for one in taught), *((part.session, part.agent) for part in parts[::-1])])
        if not session or not found:
            raise NotFound(f"No session id begins with {session!r}. To list the sessions: mulligan hooks status --json")
        if len(found) > 1:
            raise InvalidInput(
                f"Several session ids begin with {session!r}: {', '.join(sorted(found))}. Use more characters of "
                "the id."
            )
        ((whole, agent),) = found.items()
        banks = {USER, *(part.project for part in parts), *(bank for _, _, bank in taught)} - {""}
        if not yes:
            lessons = asyncio.run(_taught(banks, whole, remove=False))
            click.confirm(f"Forget the session {whole} and {count(len(lessons), 'lesson')}?", abort=True)
        try:
            with alone(WAIT):  # a process that has read the session already may keep lessons of it until it ends
                journal.forget(agent, whole)
                lessons = asyncio.run(_taught(banks, whole, remove=True))
        except sqlite3.Error as error:
            raise StoreError(f"The session cannot be forgotten now: {error}. Try again later.") from error
    emit(f"Session {whole} is forgotten, with {count(len(lessons), 'lesson')}.")


async def _teachers(prefix: str) -> set[tuple[str, str, str]]:
    """The sessions that taught a lesson and whose id begins so, each with its coding agent and a bank."""
    async with open_store(store_file()) as store:
        lessons = await store.memory.lessons.list(None, Selection(STATES, tag=TAG, limit=None))
    seen = [(one, lesson.agent_id) for lesson in lessons for one in evidence_of(lesson)]
    found = {(str(one.get("session", "")), str(one.get("agent", "")), bank) for one, bank in seen}
    return {one for one in found if one[0].startswith(prefix) and one[1]}


async def _taught(banks: Iterable[str], session: str, *, remove: bool) -> Sequence[str]:
    """The lessons that this session alone taught: the project, its sub-agents, and what was kept for all projects."""
    return [id for bank in banks for id in await _taught_in(bank, session, remove=remove)]


async def _taught_in(bank_id: str, session: str, *, remove: bool) -> Sequence[str]:
    """The lessons that this session alone taught; removed for good, and the evidence of the others with it."""
    async with project_bank(bank_id) as bank:
        about = [one for one in await bank.list(Selection(STATES, tag=TAG, limit=None)) if session in sessions_of(one)]
        alone = [one.id for one in about if sessions_of(one) == {session}]
        if remove:
            for lesson in about:
                if lesson.id not in alone:
                    await bank.redact(lesson.id, lambda context: _without(context, session))
            if alone:
                await bank.purge(alone)
    return alone


def _without(context: Mapping[str, Any], session: str) -> dict[str, Any]:
    calls = [call for call in _listed(context, "calls") if str(call).rpartition("/")[0] != session]
    seen = [one for one in _listed(context, "seen") if as_record(one).get("session") != session]
    return {**context, "calls": calls, "seen": seen}


def _listed(context: Mapping[str, Any], name: str) -> list[Any]:
    value = context.get(name)
    return cast(list[Any], value) if isinstance(value, list) else []
