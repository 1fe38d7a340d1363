"""What hooks have seen, shown and learned in a project, and what went wrong."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from threading import Thread
from typing import cast

from mulligan.core.home import home, home_path
from mulligan.hooks.journal import Journal, Session, Shown
from mulligan.hooks.project import PREFIX, project_of
from mulligan.hooks.recall import Known, Reader, store_file
from mulligan.hooks.swallowed import Swallowed, fallback_errors
from mulligan.store.sqlite.database import disk_problem

ANSWERING = 5.0
"""Seconds within which the bank answers. What waits for a disk that hangs cannot be ended, only left."""


NEWEST = 10
"""Errors that a status lists."""

WEEK, STALE = 7 * 86400.0, 90 * 86400.0
"""Seconds in which lessons count as new, and after which one that is not seen again may go."""
USELESS = 3
"""Showings without any use after which a lesson may go."""


@dataclass(frozen=True)
class Figures:
    """What hooks did in a project, as far as the journal goes back.

    Attributes:
        failures: commands that failed.
        fixed: of these, those whose error an earlier lesson was about.
        shown, done: of these, those at which one was shown, and after which the session did what it says.
        starts, rules, needed: sessions that were shown rules at their start; these rules; and those of which the error
            came in the session.
        late: hooks of the last week that ended at their limit.
        learned: lessons of the last week: id, title, and by whom they were judged.
        prune: lessons that may go: id, title, and why.
    """

    failures: int = 0
    fixed: int = 0
    shown: int = 0
    done: int = 0
    starts: int = 0
    rules: int = 0
    needed: int = 0
    late: int = 0
    learned: tuple[tuple[str, str, str], ...] = ()
    prune: tuple[tuple[str, str, str], ...] = ()


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
        figures: what hooks did; see `Figures`.
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
    figures: Figures = field(default_factory=lambda: Figures())
    notice: str = ""
    trouble: str = ""

    def again(self, way: str = "shown") -> tuple[int, int]:
        """Lessons that were shown at a failure (or withheld) and whose outcome is known: those after which the same
        error came again, and all."""
        known = [
            one.again for one in self.shown if one.way == way and one.moment == "failure" and one.again is not None
        ]
        return sum(known), len(known)


def status_of(folder: str) -> Status:
    """The state of hooks for this folder. Raises nothing: what is wrong is in `trouble`."""
    here = project_of(os.path.abspath(folder))
    project = PREFIX + here.id
    status = Status(project, project, store_file(), notice=here.notice, errors=tuple(fallback_errors()[:NEWEST]))
    try:
        with Journal(wait=1.0) as journal:
            journal.set("checked", "1")  # whether it can be written
            bank = journal.bank_of(project)
            own = journal.banks_of_subagents(bank)
            banks = (bank, *own)
            frequent = sorted((one for each in banks for one in journal.frequent(each, 5)), key=lambda one: -one[2])
            newest: list[Swallowed] = sorted(chain(journal.errors(NEWEST), status.errors), reverse=True)[:NEWEST]
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
        return replace(status, kept=kept, candidates=candidates, subagents=subagents, figures=_figures(status))
    except (sqlite3.Error, OSError) as error:
        return replace(status, trouble=f"The bank {status.store} cannot be read, so nothing is shown: {error}.")


def _figures(status: Status) -> Figures:
    now = time.time()
    with closing(Reader(status.bank, wait=1.0)) as reader:
        lessons = reader.lessons()
    with Journal(wait=1.0) as journal:
        failures = journal.failed_commands(status.bank, 0.0)
        late = sum("took longer" in one.what and one.at > now - WEEK for one in journal.errors(1000))
    since: dict[str, float] = {}
    for one in lessons:
        for digest in one.digests:
            since[digest] = min(_known_since(one), since.get(digest, now))
    fixed = [one for one in failures if since.get(one[1], now) < one[2]]
    shown = {(one.session, digest): one for one in status.shown if one.way == "shown" for digest in one.digests}
    met = [one for session, digest, _ in fixed if (one := shown.get((session, digest)))]
    rules = [one for one in status.shown if one.way == "shown" and one.moment == "start"]
    return Figures(
        len(failures),
        len(fixed),
        len(met),
        sum(one.done for one in met),
        len({one.session for one in rules}),
        len(rules),
        sum(one.again is True for one in rules),
        late,
        tuple((one.id, one.title, judged_by(one)) for one in lessons if one.created > now - WEEK),
        tuple((one.id, one.title, why) for one in lessons if (why := _may_go(one, status.shown, now))),
    )


def _known_since(lesson: Known) -> float:
    """When a lesson was there: sessions of long ago may have been read later."""
    seen = lesson.context.get("seen")
    times = [
        cast(Mapping[str, object], one).get("at")
        for one in cast(list[object], seen if isinstance(seen, list) else [])
        if isinstance(one, dict)
    ]
    return min([lesson.created, *(float(at) for at in times if isinstance(at, int | float) and at)])


def judged_by(lesson: Known) -> str:
    """By whom a lesson was judged; "rules" where it was nobody else."""
    judged = lesson.context.get("judged")
    by = cast(Mapping[str, object], judged).get("by") if isinstance(judged, dict) else None
    return str(by or "rules")


def _may_go(lesson: Known, shown: Sequence[Shown], now: float) -> str:
    """Why a lesson may go; "" if it should stay, as what a person pinned does."""
    mine = [one for one in shown if one.lesson == lesson.id and one.way == "shown"]
    at_failures = [one for one in mine if one.moment == "failure" and one.again is not None]
    if lesson.pinned:
        return ""
    if len(at_failures) >= USELESS and all(one.again for one in at_failures) and not any(one.done for one in mine):
        return f"shown at {len(at_failures)} failures, and the error occurred again each time"
    last = max([lesson.created, *(one.at for one in mine)])
    if not lesson.kept and now - last > STALE:
        return f"a candidate not seen for {int((now - last) / 86400)} days"
    return ""


def _numbers(bank: str) -> tuple[int, int]:
    with closing(Reader(bank, wait=1.0)) as reader:
        return reader.numbers()
