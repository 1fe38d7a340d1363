"""What hooks have seen, shown and learned in a project, and what went wrong."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from threading import Thread

from mulligan.core.home import home, home_path
from mulligan.hooks.journal import Journal, Session, Shown, Swallowed, fallback_errors
from mulligan.hooks.project import PREFIX, project_of
from mulligan.hooks.recall import Reader, store_file
from mulligan.store.sqlite.database import disk_problem

ANSWERING = 5.0
"""Seconds within which the bank answers. What waits for a disk that hangs cannot be ended, only left."""


@dataclass(frozen=True)
class Status:
    """The state of hooks for a folder.

    Attributes:
        bank: the agent id of the bank; the project's own, unless it was bound to another.
        store: the file of the bank.
        kept, candidates: lessons in the bank.
        subagents: the types of sub-agents that have a bank of their own, each with its kept lessons and candidates. The
            other fields have what they did, too.
        shown: what was shown or withheld in this project.
        frequent: the errors that came most often: words, how often, in how many sessions.
        errors: what hooks kept from their agents, the newest first.
        notice: why the folder does not use the lessons of the project that it names, and how it does; "" if it does.
        trouble: why the journal or the store cannot be used now; "" if they can.
    """

    project: str
    bank: str
    store: str
    paused: tuple[str, ...] = ()
    sessions: tuple[Session, ...] = ()
    kept: int = 0
    candidates: int = 0
    subagents: tuple[tuple[str, int, int], ...] = ()
    shown: tuple[Shown, ...] = ()
    frequent: tuple[tuple[str, int, int], ...] = ()
    errors: tuple[Swallowed, ...] = ()
    notice: str = ""
    trouble: str = ""

    def again(self, way: str = "shown") -> tuple[int, int]:
        """Lessons that were shown at a failure (or withheld) and whose outcome is known: those after which the same
        error came again, and all."""
        known = [
            one.again for one in self.shown if one.way == way and one.moment == "failure" and one.again is not None
        ]
        return sum(known), len(known)


def status_of(folder: str, *, errors: int = 10) -> Status:
    """The state of hooks for this folder. Raises nothing: what is wrong is in `trouble`."""
    here = project_of(os.path.abspath(folder))
    project = PREFIX + here.id
    status = Status(project, project, store_file(), notice=here.notice, errors=tuple(fallback_errors()[:errors]))
    try:
        with Journal(wait=1.0) as journal:
            journal.set("checked", "1")  # whether it can be written
            bank = journal.bank_of(project)
            own = journal.banks_of_subagents(bank)
            banks = (bank, *own)
            frequent = sorted((one for each in banks for one in journal.frequent(each, 5)), key=lambda one: -one[2])
            newest: list[Swallowed] = sorted(chain(journal.errors(errors), status.errors), reverse=True)[:errors]
            status = Status(
                project,
                bank,
                status.store,
                tuple(journal.paused()),
                tuple(session for each in banks for session in journal.sessions(project=each)),
                shown=tuple(shown for each in banks for shown in journal.shown(each)),
                frequent=tuple((words, often, sessions) for _, words, often, sessions in frequent[:5]),
                errors=tuple(newest),
                notice=here.notice,
            )
    except (sqlite3.Error, OSError) as error:
        disk = disk_problem(home()) if isinstance(error, sqlite3.Error) else ""
        why = f"the disk of {home_path()} is {disk} ({error})" if disk else str(error)
        return replace(status, trouble=f"The journal of hooks cannot be used, so nothing is shown or learned: {why}.")
    found: list[Status] = []
    counting = Thread(target=lambda: found.append(_with_lessons(status, own)), daemon=True)
    counting.start()
    counting.join(ANSWERING)
    silent = f"The bank {status.store} does not answer, so nothing is shown: its disk may hang."
    return found[0] if found else replace(status, trouble=silent)


def _with_lessons(status: Status, own: Sequence[str]) -> Status:
    """The state with the numbers of lessons; own: the banks of sub-agents."""
    try:
        kept, candidates = _numbers(status.bank)
        subagents = tuple((each.removeprefix(f"{status.bank}#"), *_numbers(each)) for each in own)
        return replace(status, kept=kept, candidates=candidates, subagents=subagents)
    except sqlite3.Error as error:
        return replace(status, trouble=f"The bank {status.store} cannot be read, so nothing is shown: {error}.")


def _numbers(bank: str) -> tuple[int, int]:
    with closing(Reader(bank, wait=1.0)) as reader:
        return reader.numbers()
