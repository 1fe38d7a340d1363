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
from mulligan.hooks.journal import Journal, Session
from mulligan.hooks.learning import STATES, sessions_of
from mulligan.hooks.pairs import TAG
from mulligan.hooks.project import USER

WAIT = 120.0
"""Seconds to wait for a process that learns."""


@click.command("forget")
@click.argument("session")
@click.option("--yes", is_flag=True, help="Do it without a question.")
def command(session: str, yes: bool) -> None:
    """Remove what is noted of SESSION, and the lessons that it alone taught. The beginning of its id is enough.

    It is never learned from again. The agent's own transcript stays.
    """
    with Journal() as journal:
        found: dict[str, Session] = {}
        for one in journal.sessions_like(session):  # that of the main agent comes first
            found.setdefault(one.session, one)
        if not found:
            raise NotFound(f"No session begins with {session!r}. mulligan hooks status --json lists them.")
        if len(found) > 1:
            raise InvalidInput(f"Several sessions begin with {session!r}: {', '.join(sorted(found))}.")
        ((whole, one),) = found.items()
        parts = [part for part in journal.sessions_like(whole) if part.session == whole]  # and its sub-agents
        banks = {USER, *(part.project for part in parts)} - {""}
        if not yes:
            lessons = asyncio.run(_taught(banks, whole, remove=False))
            click.confirm(f"Forget the session {whole} and {count(len(lessons), 'lesson')}?", abort=True)
        try:
            with alone(WAIT):  # a process that has read the session already may keep lessons of it until it ends
                journal.forget(one.agent, whole)
                lessons = asyncio.run(_taught(banks, whole, remove=True))
        except sqlite3.Error as error:
            raise StoreError(f"The session cannot be forgotten now: {error}. Try again later.") from error
    emit(f"Session {whole} is forgotten, with {count(len(lessons), 'lesson')}.")


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
    seen = [one for one in _listed(context, "seen") if one.get("session") != session]
    return {**context, "calls": calls, "seen": seen}


def _listed(context: Mapping[str, Any], name: str) -> list[Any]:
    value = context.get(name)
    return cast(list[Any], value) if isinstance(value, list) else []
