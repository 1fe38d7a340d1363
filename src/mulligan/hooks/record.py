"""What hooks did in a project, session by session: from what failed to whether it came again."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mulligan.bank.bank import Bank
from mulligan.bank.exchange.lesson_page import LessonPage
from mulligan.core.errors import InvalidInput
from mulligan.core.home import home_path
from mulligan.core.lessons import Selection
from mulligan.core.operations import acting_as
from mulligan.core.records import Lesson
from mulligan.goals.database import FILE as GOALS
from mulligan.goals.place import Place
from mulligan.goals.state import DONE, Goals
from mulligan.hooks.journal import Failure, Journal, Session, Shown
from mulligan.hooks.journal_file import FILE
from mulligan.hooks.learning import STATES, confirm, evidence_of, reject, sessions_of
from mulligan.hooks.status import Status
from mulligan.hooks.status import status_of as read_status
from mulligan.sessions.pairs import TAG
from mulligan.text.plain import count

NEWEST = 50
"""Sessions that a record lists."""


@dataclass(frozen=True)
class LessonView:
    """A lesson of a session: the call that failed, the call that worked, and what became of the lesson.

    shown: how often it was shown in any session; again: after how many of those the same error came again, of how many
    whose end is known.
    """

    lesson: Lesson
    failed: str
    worked: str
    sessions: int
    shown: int
    again: tuple[int, int]


@dataclass(frozen=True)
class SessionView:
    """A session as the page has it.

    Attributes:
        failures: errors of which nothing was learned (yet), with how often they came.
        shown: lessons that it was shown or that were withheld, with their titles.
    """

    session: Session
    lessons: Sequence[LessonView] = ()
    failures: Sequence[Failure] = ()
    shown: Sequence[tuple[Shown, str]] = ()

    @property
    def empty(self) -> bool:
        return not (self.lessons or self.failures or self.shown)


@dataclass(frozen=True)
class GoalView:
    """A goal of coding agents.

    works: what each session did for it: the agent, the run that records it, the verdicts of its tries, and why it ended
        ("" if it has not).
    """

    label: str
    state: str
    most_tries: int
    works: Sequence[tuple[str, str, Sequence[bool | None], str]]


@dataclass(frozen=True)
class HookRecord:
    """What the journal and the bank contain about a project's coding agents.

    Attributes:
        sessions, older: the newest sessions, newest first, and the number of older ones.
        candidates: lessons that have not been confirmed, with the outputs of the failed call and the successful call.
        lessons: lessons that a person has confirmed.
        goal: the folder's goal.
    """

    status: Status
    sessions: Sequence[SessionView]
    older: int
    candidates: Sequence[tuple[Lesson, str, str]]
    lessons: Sequence[Lesson]
    goal: GoalView | None

    @property
    def summary(self) -> str:
        """The result in a sentence."""
        again, known = self.status.again()
        came = (
            f"the same error occurred again in {again} of {count(known, 'known case')}"
            if known
            else "whether they helped is not yet known"
        )
        shown = sum(one.way == "shown" for one in self.status.shown)
        learned = (
            f"Agents learned {count(self.status.kept, 'lesson')} and {count(self.status.candidates, 'candidate')} from "
            f"{count(len(self.status.sessions), 'session')}."
        )
        return (
            f"{learned} Lessons were shown {count(shown, 'time')}; {came}."
            if shown
            else f"{learned} No lessons have been shown yet."
        )

    @property
    def facts(self) -> Mapping[str, str]:
        """The properties of the record, by label."""
        status = self.status
        withheld_again, withheld = status.again("withheld")
        said = {
            "Project": LessonPage.bank_title(status.project).removeprefix("project "),
            "Bank": LessonPage.bank_title(status.bank) if status.bank != status.project else "",
            "Paused": ", ".join(one or "everywhere" for one in status.paused),
            "Same error again when withheld": f"{withheld_again} of {count(withheld, 'case')}" if withheld else "",
            "Calls denied": str(sum(one.way == "denied" for one in status.shown) or ""),
            **{f"Sub-agent {kind}": f"{kept} kept, {count(few, 'candidate')}" for kind, kept, few in status.subagents},
        }
        return {name: text for name, text in said.items() if text}

    @staticmethod
    def status_of(folder: str) -> Status | None:
        """Returns the state of hooks for this folder, or None if no hook has run. Does not create a journal."""
        return read_status(folder) if os.path.exists(os.path.join(home_path(), FILE)) else None

    @classmethod
    async def read(cls, folder: str, bank_of: Callable[[str], Bank]) -> HookRecord | None:
        """Returns the record of this folder's project, or None if no hook has run.

        Args:
            bank_of: opens a bank by its name.
        """
        status = await asyncio.to_thread(cls.status_of, folder)
        if status is None:
            return None
        lessons = await bank_of(status.bank).list(Selection(STATES, tag=TAG, limit=None))
        sessions = sorted(status.sessions, key=lambda one: -one.seen)[:NEWEST]
        failures = await asyncio.to_thread(_failures, {one.project for one in sessions})
        active = [one for one in lessons if one.state == "active"]
        return cls(
            status,
            [_session_view(one, status, lessons, failures) for one in sessions],
            len(status.sessions) - len(sessions),
            [(one, *_evidence(one)) for one in active if not (one.confirmed or one.pinned)],
            [one for one in active if one.confirmed or one.pinned],
            await asyncio.to_thread(_goal, folder),
        )

    @staticmethod
    async def review(bank: Bank, id: str, decision: str, by: str) -> None:
        """Keep or discard a candidate. by: the interface in which the person decided, for the history.

        Raises:
            InvalidInput: the decision is unknown, or the lesson is not active.
        """
        if decision not in DECISIONS:
            raise InvalidInput(f"Available: {', '.join(DECISIONS)}.")
        with acting_as(by):
            await DECISIONS[decision](bank, id)


def _goal(folder: str) -> GoalView | None:
    """The goal of this folder, or the last one; a record of goals is not made by looking."""
    if not os.path.exists(os.path.join(home_path(), GOALS)):
        return None
    with Goals(wait=1.0) as goals:
        place = Place(folder)
        goal = place.goal(goals.standing()) or goals.newest(place.folder)
        works = goals.works(goal.id) if goal else ()
        return goal and GoalView(
            goal.label,
            goal.state,
            goal.settings["trials"],
            [
                (
                    one.agent,
                    f"{one.episode}.1",
                    [
                        None if row.passed is None else bool(row.passed)
                        for row in goals.tries(goal.id, one.agent, one.session)
                        if row.state == DONE
                    ],
                    one.why,
                )
                for one in works
            ],
        )


DECISIONS = {"keep": confirm, "drop": reject}
"""What a person decides of a candidate, by its name."""


def _failures(projects: set[str]) -> Mapping[tuple[str, str], Sequence[Failure]]:
    found = dict[tuple[str, str], list[Failure]]()
    try:
        with Journal(wait=1.0) as journal:
            for project in projects:
                for one in journal.failures(project):
                    found.setdefault((one.agent, one.session), []).append(one)
    except (sqlite3.Error, OSError):  # `Status.trouble` says so
        return {}
    return found


def _session_view(
    session: Session,
    status: Status,
    lessons: Sequence[Lesson],
    failures: Mapping[tuple[str, str], Sequence[Failure]],
) -> SessionView:
    titles = {one.id: one.title for one in lessons}
    learned = [_lesson_view(one, session, status) for one in lessons if session.session in sessions_of(one)]
    mine = [one for one in status.shown if (one.agent, one.session) == (session.agent, session.session)]
    named = " ".join(one.lesson.content + one.lesson.title for one in learned)
    others = failures.get((session.agent, session.session), ())
    unnamed = [one for one in others if one.words and one.words not in named]
    return SessionView(session, learned, unnamed, [(one, titles.get(one.lesson, one.lesson)) for one in mine])


def _lesson_view(lesson: Lesson, session: Session, status: Status) -> LessonView:
    failed, worked = _evidence(lesson, session.session)
    shown = [one for one in status.shown if one.lesson == lesson.id and one.way != "withheld"]
    ends = [one.again for one in shown if one.again is not None]
    return LessonView(lesson, failed, worked, len(sessions_of(lesson)), len(shown), (sum(ends), len(ends)))


def _evidence(lesson: Lesson, session: str = "") -> tuple[str, str]:
    """The outputs of the call that failed and of the one that worked, as the session, or the last one, saw them."""
    seen = [one for one in evidence_of(lesson) if not session or one.get("session") == session] or evidence_of(lesson)
    last: Mapping[str, Any] = seen[-1] if seen else {}
    return str(last.get("fails") or ""), str(last.get("works") or "")
