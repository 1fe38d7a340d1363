"""Coding agents in this project: each session from what failed to whether it came again, and candidates to review."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.bank.exchange.lesson_page import bank_title
from mulligan.core.home import home_path
from mulligan.core.lessons import Selection
from mulligan.core.operations import acting_as
from mulligan.hooks.journal import FILE, Failure, Journal, Session, Shown
from mulligan.hooks.learning import STATES, confirm, evidence_of, reject, sessions_of
from mulligan.hooks.status import Status, status_of
from mulligan.pages import count
from mulligan.plugins import InvalidInput, Lesson
from mulligan.sessions.pairs import TAG
from mulligan.studio.rendering import Studio, render, studio_of
from mulligan.studio.safety import form_of

NEWEST = 50
"""Sessions that the page lists."""


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
class ProjectRecord:
    """What the journal and the bank have of a project's sessions."""

    lessons: Sequence[Lesson] = ()
    failures: Mapping[tuple[str, str], Sequence[Failure]] = field(
        default_factory=dict[tuple[str, str], Sequence[Failure]]
    )


async def hooks(request: Request) -> Response:
    """What `mulligan hooks status` says, session by session. A journal that is absent is not made by looking."""
    studio = studio_of(request)
    status = await asyncio.to_thread(current, studio)
    if status is None:
        return render(request, "hooks.html", found=None)
    bank = studio.chosen_bank(status.bank)
    lessons = await bank.list(Selection(STATES, tag=TAG, limit=None))
    sessions = sorted(status.sessions, key=lambda one: -one.seen)[:NEWEST]
    known = ProjectRecord(lessons, await asyncio.to_thread(_failures, {one.project for one in sessions}))
    candidates = [one for one in lessons if one.state == "active" and not (one.confirmed or one.pinned)]
    return render(
        request,
        "hooks.html",
        found=status,
        summary=_summary(status),
        facts=_facts(status),
        sessions=[_session_view(one, status, known) for one in sessions],
        older=len(status.sessions) - len(sessions),
        candidates=[(one, *_evidence(one)) for one in candidates],
        kept=[one for one in lessons if one.state == "active" and (one.confirmed or one.pinned)],
        bank=status.bank,
    )


def current(studio: Studio) -> Status | None:
    """The state of hooks in the project of this studio; None where no hook has run."""
    return status_of(str(studio.root)) if os.path.exists(os.path.join(home_path(), FILE)) else None


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


def _session_view(session: Session, status: Status, known: ProjectRecord) -> SessionView:
    titles = {one.id: one.title for one in known.lessons}
    learned = [_lesson_view(one, session, status) for one in known.lessons if session.session in sessions_of(one)]
    mine = [one for one in status.shown if (one.agent, one.session) == (session.agent, session.session)]
    named = " ".join(one.lesson.content + one.lesson.title for one in learned)
    failures = [
        one for one in known.failures.get((session.agent, session.session), ()) if one.words and one.words not in named
    ]
    return SessionView(session, learned, failures, [(one, titles.get(one.lesson, one.lesson)) for one in mine])


def _lesson_view(lesson: Lesson, session: Session, status: Status) -> LessonView:
    failed, worked = _evidence(lesson, session.session)
    shown = [one for one in status.shown if one.lesson == lesson.id and one.way != "withheld"]
    ends = [one.again for one in shown if one.again is not None]
    return LessonView(lesson, failed, worked, len(sessions_of(lesson)), len(shown), (sum(ends), len(ends)))


def _evidence(lesson: Lesson, session: str = "") -> tuple[str, str]:
    """The outputs of the call that failed and of the one that worked, as the session, or the last one, saw them."""
    seen = [one for one in evidence_of(lesson) if not session or one.get("session") == session] or evidence_of(lesson)
    last: Mapping[str, Any] = cast(Mapping[str, Any], seen[-1]) if seen else {}
    return str(last.get("fails") or ""), str(last.get("works") or "")


def _summary(status: Status) -> str:
    """The result in a sentence."""
    again, known = status.again()
    came = f"the same error occurred again after {again} of {known}" if known else "whether it helped is not known yet"
    shown = sum(one.way == "shown" for one in status.shown)
    return (
        f"{count(len(status.sessions), 'session')} taught {count(status.kept, 'lesson')} and "
        f"{count(status.candidates, 'candidate')}; lessons were shown {count(shown, 'time')}, and {came}."
    )


def _facts(status: Status) -> Mapping[str, str]:
    withheld_again, withheld = status.again("withheld")
    said = {
        "Project": bank_title(status.project).removeprefix("project "),
        "Bank": bank_title(status.bank) if status.bank != status.project else "",
        "Paused": ", ".join(one or "everywhere" for one in status.paused),
        "Same error again when withheld": f"{withheld_again} of {withheld}" if withheld else "",
        "Calls denied": str(sum(one.way == "denied" for one in status.shown) or ""),
        **{f"Sub-agent {kind}": f"{kept} kept, {count(few, 'candidate')}" for kind, kept, few in status.subagents},
    }
    return {name: text for name, text in said.items() if text}


# --- the review of candidates -------------------------------------------------------------------------------------


async def review(request: Request) -> Response:
    """Keeps or drops a candidate, as `mulligan memory review` does."""
    studio, form = studio_of(request), form_of(request)
    do = REVIEW.get(form.get("do", ""))
    if do is None:
        raise InvalidInput(f"Available: {', '.join(REVIEW)}.")
    bank = await studio.bank_of(form.get("id", ""))
    with acting_as("studio"):
        await do(bank, form["id"])
    return RedirectResponse("/hooks#candidates", 303)


REVIEW = {"keep": confirm, "drop": reject}
"""What a person decides of a candidate, by the names that forms have for it."""

routes = [Route("/hooks", hooks), Route("/hooks", review, methods=["POST"])]
