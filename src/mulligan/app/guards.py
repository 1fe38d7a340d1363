"""Turns a lesson into a guard, and says what the guard would have stopped in recorded calls.

A guard needs an entry in the journal of this machine besides the lesson's mark in the bank: an import, a copied store
or a shared bank may bring a mark, but never a guard.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mulligan.app.sessions import adopt_marks, transcripts
from mulligan.bank.bank import Bank
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.records import Json, Lesson
from mulligan.hooks.guard_proposals import proposal
from mulligan.hooks.guards import stops
from mulligan.hooks.journal import Journal
from mulligan.hooks.learning import confirm, confirmable, events_since, sessions_of
from mulligan.hooks.project import project_id
from mulligan.hooks.recall import DENY
from mulligan.sessions.agents import is_shell
from mulligan.sessions.pairs import CORRECTION
from mulligan.text.plain import one_line
from mulligan.text.secrets import mask

MAX_PATTERN = 200
"""Characters of a pattern: a person reads all of it before a guard is set."""
MIN_CALLS = 3000
"""How many recorded calls a guard must let pass before it is proposed."""
_MAX_CALLS = 10_000
"""How many recorded calls are read, newest sessions first."""


@dataclass(frozen=True)
class Trial:
    """What a guard would have done in the recorded calls of a project.

    Attributes:
        calls: how many calls there are.
        met: how many it would have stopped in the sessions that taught the lesson.
        wrong: the calls that it would have stopped in other sessions, to which the user did not object.
    """

    pattern: str
    calls: int = 0
    met: int = 0
    wrong: tuple[str, ...] = ()

    @property
    def is_proposed(self) -> bool:
        return self.calls >= MIN_CALLS and not self.wrong


class Record:
    """The calls that coding agents made in a project, from their transcripts. bank: the id of the project's bank."""

    def __init__(self, journal: Journal, bank: str) -> None:
        self._journal, self._bank = journal, bank
        self._calls: list[tuple[str, str, bool]] | None = None

    def trial(self, lesson: Lesson, pattern: str) -> Trial:
        if self._calls is None:
            self._calls = list(self._read())
        teachers, met, wrong = sessions_of(lesson), 0, list[str]()
        for session, command, shell in self._calls:
            if stops(pattern, command, shell=shell):
                if session in teachers:
                    met += 1
                else:
                    wrong.append(command)
        return Trial(pattern, len(self._calls), met, tuple(wrong))

    def _read(self) -> Iterator[tuple[str, str, bool]]:
        banks: dict[str, str] = {}
        count = 0
        for session in sorted(transcripts(), key=lambda one: -one.at):
            if session.folder not in banks:
                banks[session.folder] = self._journal.bank_of(project_id(session.folder)) if session.folder else ""
            if banks[session.folder] != self._bank:
                continue
            try:
                events, _ = events_since(session.agent, session.session, session.path, {}, folder=session.folder)
            except (OSError, ValueError, MulliganError):
                continue
            for event in events:
                if event.is_call and event.command:
                    count += 1
                    yield session.session, event.command, is_shell(event.tool, session.agent)
            if count >= _MAX_CALLS:
                return


def pattern_of(lesson: Lesson) -> str:
    """The pattern of the guard that a lesson proposes; "" if it proposes none."""
    return proposal(lesson.title, lesson.content)


def may_be_proposed(lesson: Lesson) -> bool:
    """Whether a review proposes a guard by itself: only for a confirmed correction by the user."""
    return CORRECTION in lesson.tags and lesson.confirmed and bool(pattern_of(lesson))


async def guardable(bank: Bank, id: str) -> tuple[Lesson, str]:
    """The lesson, and the pattern of the guard that it can become.

    Raises:
        InvalidInput: The lesson was not learned here, is not active, or names no command that can be shown completely.
    """
    lesson = await bank.get(id)
    if "author" in lesson.context or lesson.origin.kind == "imported":
        raise InvalidInput(
            f"Lesson {lesson.id} was not learned here, so it cannot become a guard. Add your own lesson."
        )
    lesson = await confirmable(bank, id)
    if not (pattern := pattern_of(lesson)):
        raise InvalidInput(f"Lesson {lesson.id} contains no command. Edit it, and put the command in backticks.")
    if one_line(mask(pattern), MAX_PATTERN) != pattern:
        raise InvalidInput(
            f"The command in lesson {lesson.id} cannot be displayed unchanged, so it cannot become a guard: edit "
            f"the lesson, and put a plain command of at most {MAX_PATTERN} characters in backticks."
        )
    return lesson, pattern


async def set_guard(bank: Bank, journal: Journal, lesson: Lesson, pattern: str) -> None:
    """Confirms a lesson, and sets its guard, whose pattern a person has seen.

    The mark is a separate change, so that it can be undone alone.

    Raises:
        InvalidInput: The lesson was edited since, and its guard would stop something else.
    """

    def marked(now: Lesson) -> dict[str, Json]:
        if pattern_of(now) != pattern:
            raise InvalidInput(
                f"Lesson {now.id} was edited in the meantime, so no guard was set. Review the lesson again."
            )
        return {"tags": [*(tag for tag in now.tags if tag != DENY), DENY]}

    marked(await bank.get(lesson.id))
    await confirm(bank, lesson.id)
    await bank.edit(lesson.id, marked)
    await adopt_marks(journal)
    journal.guard({lesson.id: pattern})
