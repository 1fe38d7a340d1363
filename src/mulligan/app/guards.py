"""Turn a lesson into a guard, and say what the guard would have stopped in the calls that are on record.

A guard stands in the journal of this machine beside the lesson's mark in the bank: an import, a copied store or a
shared bank may bring a mark, and never a guard.
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
NEEDED = 3000
"""Recorded calls that a guard has to let pass before it is proposed."""
_MOST = 10_000
"""Recorded calls that are looked at, the newest sessions first."""


@dataclass(frozen=True)
class Trial:
    """What a guard would have done in the recorded calls of a project.

    Attributes:
        calls: how many there are.
        met: those that it would have stopped in the sessions that taught the lesson.
        wrong: those that it would have stopped in other sessions, where the user did not object.
    """

    pattern: str
    calls: int = 0
    met: int = 0
    wrong: tuple[str, ...] = ()

    @property
    def is_proposed(self) -> bool:
        return self.calls >= NEEDED and not self.wrong


class Record:
    """The calls that coding agents made in a project, from their transcripts. bank: the id of the project's bank."""

    def __init__(self, journal: Journal, bank: str) -> None:
        self._journal, self._bank = journal, bank
        self._calls: list[tuple[str, str, bool]] | None = None

    def trial(self, lesson: Lesson, pattern: str) -> Trial:
        if self._calls is None:
            self._calls = list(self._read())
        taught, met, wrong = sessions_of(lesson), 0, list[str]()
        for session, command, shell in self._calls:
            if stops(pattern, command, shell=shell):
                if session in taught:
                    met += 1
                else:
                    wrong.append(command)
        return Trial(pattern, len(self._calls), met, tuple(wrong))

    def _read(self) -> Iterator[tuple[str, str, bool]]:
        ids: dict[str, str] = {}
        read = 0
        for old in sorted(transcripts(), key=lambda one: -one.at):
            if old.folder not in ids:
                ids[old.folder] = self._journal.bank_of(project_id(old.folder)) if old.folder else ""
            if ids[old.folder] != self._bank:
                continue
            try:
                events, _ = events_since(old.agent, old.session, old.path, {}, folder=old.folder)
            except (OSError, ValueError, MulliganError):
                continue
            for event in events:
                if event.is_call and event.command:
                    read += 1
                    yield old.session, event.command, is_shell(event.tool, old.agent)
            if read >= _MOST:
                return


def pattern_of(lesson: Lesson) -> str:
    """The pattern of a guard that a lesson proposes; "" for none."""
    return proposal(lesson.title, lesson.content)


def may_be_proposed(lesson: Lesson) -> bool:
    """Whether a review proposes a guard by itself: for what a user said that holds from now on."""
    return CORRECTION in lesson.tags and lesson.confirmed and bool(pattern_of(lesson))


async def guardable(bank: Bank, id: str) -> tuple[Lesson, str]:
    """A lesson that can become a guard, and the pattern of that guard.

    Raises:
        InvalidInput: The lesson was not learned here, is not active, or names no command that can be shown whole.
    """
    lesson = await bank.get(id)
    if "author" in lesson.context or lesson.origin.kind == "imported":
        raise InvalidInput(
            f"Lesson {lesson.id} was not learned here, so it cannot become a guard: add a lesson of your own."
        )
    lesson = await confirmable(bank, id)
    if not (pattern := pattern_of(lesson)):
        raise InvalidInput(f"Lesson {lesson.id} does not name a command: edit it, and put the command in backticks.")
    if one_line(mask(pattern), MAX_PATTERN) != pattern:
        raise InvalidInput(
            f"The command that lesson {lesson.id} names cannot be displayed unchanged, so it cannot become a guard: "
            f"edit the lesson, and put a plain command of at most {MAX_PATTERN} characters in backticks."
        )
    return lesson, pattern


async def set_guard(bank: Bank, journal: Journal, lesson: Lesson, pattern: str) -> None:
    """Keep a lesson, and refuse the calls that its guard stops. A person has seen the pattern.

    The mark is a change of its own, so that it can be undone alone.

    Raises:
        InvalidInput: The lesson was edited since, and its guard would stop something else.
    """

    def marked(now: Lesson) -> dict[str, Json]:
        if pattern_of(now) != pattern:
            raise InvalidInput(f"Lesson {now.id} was edited in the meantime, so there is no guard: review it again.")
        return {"tags": [*(tag for tag in now.tags if tag != DENY), DENY]}

    marked(await bank.get(lesson.id))
    await confirm(bank, lesson.id)
    await bank.edit(lesson.id, marked)
    await adopt_marks(journal)
    journal.guard({lesson.id: pattern})
