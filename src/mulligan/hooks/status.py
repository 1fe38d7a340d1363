"""What the hooks have seen, shown and learned in a project, and what went wrong."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from threading import Thread
from typing import cast

from mulligan.core.home import home, home_path
from mulligan.hooks import OVERTIME
from mulligan.hooks.journal import MAX_ERRORS, FailedCommand, Journal, Session, Shown
from mulligan.hooks.project import PREFIX, project_of
from mulligan.hooks.recall import Known, Reader, store_file
from mulligan.hooks.swallowed import Swallowed, fallback_errors
from mulligan.sessions.records import inner_list
from mulligan.store.sqlite.file_errors import disk_problem
from mulligan.text.plain import count

BANK_TIMEOUT = 5.0
"""Seconds that the bank has to answer. A thread that waits for a disk that hangs cannot be ended, only left."""
LISTED_ERRORS = 10
"""Errors that a status lists."""
WEEK = 7 * 86400.0
STALE = 90 * 86400.0
"""Seconds after which a candidate that was not seen again may go."""
MIN_USELESS_SHOWINGS = 3
"""Showings without any use after which a lesson may go."""


@dataclass(frozen=True)
class Figures:
    """What hooks did in a project, as far as the journal goes back.

    Attributes:
        failures: commands that failed.
        fixed: failures whose error an earlier lesson was about.
        shown: those of `fixed` at which that lesson was shown.
        done: those of `shown` after which the session did what the lesson says.
        starts: sessions that were shown rules at their start.
        rules: rules that these sessions were shown.
        needed: those of `rules` whose error then occurred in the session.
        late: hooks that reached their time limit in the last week, in any project.
        learned: lessons of the last week: id, title, and who judged them.
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
        project: the project of the folder.
        bank: the agent id of the bank; the project's own, unless it was bound to another.
        store: the file of the bank.
        paused: the folders in which hooks do nothing.
        sessions: those of the project, and of its sub-agents with banks of their own.
        kept, candidates: how many lessons the bank has.
        subagents: the types of sub-agents that have a bank of their own, each with its kept lessons and candidates.
        shown: what was shown or withheld in the project, also by sub-agents.
        frequent: the most frequent errors: words, how often they occurred, in how many sessions.
        errors: errors that hooks kept from their agents, the newest first.
        figures: what hooks did.
        notice: why the folder does not use the lessons of the project that it names; "" if it does.
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
    figures: Figures = Figures()
    notice: str = ""
    trouble: str = ""

    def again(self, way: str = "shown") -> tuple[int, int]:
        """Count what was shown (or withheld) at a failure and has a known outcome: how often the error came again, and
        all."""
        outcomes = [
            one.again for one in self.shown if one.way == way and one.moment == "failure" and one.again is not None
        ]
        return sum(outcomes), len(outcomes)


def status_of(folder: str) -> Status:
    """The state of hooks for this folder. Raises nothing: what is wrong is in `trouble`."""
    project = project_of(os.path.abspath(folder))
    id = PREFIX + project.id
    status = Status(id, id, store_file(), notice=project.notice, errors=tuple(fallback_errors()[:LISTED_ERRORS]))
    try:
        with Journal(wait=1.0) as journal:
            journal.set("checked", "1")  # whether it can be written
            bank = journal.bank_of(id)
            subagent_banks = journal.banks_of_subagents(bank)
            banks = (bank, *subagent_banks)
            frequent = sorted((row for name in banks for row in journal.frequent(name, 5)), key=lambda row: -row[2])
            errors = journal.errors(MAX_ERRORS)
            failures = journal.failed_commands(bank)
            status = replace(
                status,
                bank=bank,
                paused=tuple(journal.paused()),
                sessions=tuple(session for name in banks for session in journal.sessions(project=name)),
                shown=tuple(shown for name in banks for shown in journal.shown(name)),
                frequent=tuple((words, often, sessions) for _, words, often, sessions in frequent[:5]),
                errors=tuple(sorted(chain(errors[:LISTED_ERRORS], status.errors), reverse=True)[:LISTED_ERRORS]),
            )
    except (sqlite3.Error, OSError) as error:
        disk = disk_problem(home()) if isinstance(error, sqlite3.Error) else ""
        why = f"the disk of {home_path()} is {disk} ({error})" if disk else str(error)
        return replace(status, trouble=f"The journal of hooks cannot be used, so nothing is shown or learned: {why}.")
    late = sum(OVERTIME in error.what and error.at > time.time() - WEEK for error in errors)
    answers: list[Status] = []
    thread = Thread(target=lambda: answers.append(_with_lessons(status, subagent_banks, failures, late)), daemon=True)
    thread.start()
    thread.join(BANK_TIMEOUT)
    silent = f"The bank {status.store} does not respond, so nothing is shown. Its disk may be hanging."
    return answers[0] if answers else replace(status, trouble=silent)


def _with_lessons(
    status: Status, subagent_banks: Sequence[str], failures: Sequence[FailedCommand], late: int
) -> Status:
    """The state with the figures that need the lessons of the bank."""
    try:
        kept, candidates = _numbers(status.bank)
        subagents = tuple((name.removeprefix(f"{status.bank}#"), *_numbers(name)) for name in subagent_banks)
        figures = _figures(status, failures, late)
        return replace(status, kept=kept, candidates=candidates, subagents=subagents, figures=figures)
    except (sqlite3.Error, OSError) as error:
        return replace(status, trouble=f"The bank {status.store} cannot be read, so nothing is shown: {error}.")


def _figures(status: Status, failures: Sequence[FailedCommand], late: int) -> Figures:
    now = time.time()
    with closing(Reader(status.bank, wait=1.0)) as reader:
        lessons = reader.lessons()
    known_from: dict[str, float] = {}
    for lesson in lessons:
        for digest in lesson.digests:
            known_from[digest] = min(_known_from(lesson), known_from.get(digest, now))
    fixed = [failure for failure in failures if known_from.get(failure.digest, now) < failure.at]
    showings = {
        (showing.session, digest): showing
        for showing in status.shown
        if showing.way == "shown"
        for digest in showing.digests
    }
    shown = [showings[key] for failure in fixed if (key := (failure.session, failure.digest)) in showings]
    rules = [showing for showing in status.shown if showing.way == "shown" and showing.moment == "start"]
    return Figures(
        failures=len(failures),
        fixed=len(fixed),
        shown=len(shown),
        done=sum(showing.done for showing in shown),
        starts=len({rule.session for rule in rules}),
        rules=len(rules),
        needed=sum(rule.again is True for rule in rules),
        late=late,
        learned=tuple(
            (lesson.id, lesson.title, judged_by(lesson)) for lesson in lessons if lesson.created > now - WEEK
        ),
        prune=tuple(
            (lesson.id, lesson.title, why) for lesson in lessons if (why := _may_go(lesson, status.shown, now))
        ),
    )


def _known_from(lesson: Known) -> float:
    """When a lesson's error was first seen, which may be before the lesson: old sessions can be read later."""
    times = [sighting.get("at") for sighting in inner_list(lesson.context, "seen")]
    return min([lesson.created, *(float(at) for at in times if isinstance(at, int | float) and at)])


def judged_by(lesson: Known) -> str:
    """Who judged a lesson: a model or a person, else "rules"."""
    judged = lesson.context.get("judged")
    by = cast(Mapping[str, object], judged).get("by") if isinstance(judged, dict) else None
    return str(by or "rules")


def _may_go(lesson: Known, shown: Sequence[Shown], now: float) -> str:
    """Why a lesson may go; "" if it should stay. A pinned lesson stays."""
    if lesson.pinned:
        return ""
    showings = [showing for showing in shown if showing.lesson == lesson.id and showing.way == "shown"]
    at_failures = [showing for showing in showings if showing.moment == "failure" and showing.again is not None]
    in_vain = all(showing.again for showing in at_failures) and not any(showing.done for showing in showings)
    if in_vain and len(at_failures) >= MIN_USELESS_SHOWINGS:
        return f"shown at {count(len(at_failures), 'failure')}, and the error occurred again each time"
    last = max([lesson.created, *(showing.at for showing in showings)])
    if not lesson.kept and now - last > STALE:
        return f"a candidate not seen for {count(int((now - last) / 86400), 'day')}"
    return ""


def _numbers(bank: str) -> tuple[int, int]:
    """How many kept lessons and candidates a bank has."""
    with closing(Reader(bank, wait=1.0)) as reader:
        return reader.numbers()
