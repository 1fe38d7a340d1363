"""Ask the judge that a user named about a session of a coding agent: once, masked, and within so many tokens a day.

Nobody is asked unless `mulligan hooks set why` names a model or a command line. A role is no judge here, and neither is
`MULLIGAN_MODEL`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mulligan.app.config import located_model
from mulligan.bank.bank import Bank
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.lessons import Selection
from mulligan.core.operations import acting_as
from mulligan.core.protocols import Job
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Json, Lesson, Usage
from mulligan.core.turns import Turn
from mulligan.hooks import SWITCH
from mulligan.hooks.journal import Journal
from mulligan.hooks.judging import PERSON, RULES_ALONE, SCHEMA, Account, Verdict, account_of, believed
from mulligan.hooks.learning import Kept, keep, sessions_of
from mulligan.models.answers import answer_in
from mulligan.models.catalog import open_model
from mulligan.sessions.pairs import CORRECTION, TAG
from mulligan.sessions.records import text_at
from mulligan.text.command_lines import split_line
from mulligan.text.truncate import estimate

SECONDS = 120.0
COMMAND = "command:"
NO_MODEL = ("none", "ask")
"""What the setting may be besides a model: nobody is asked, or the agent itself."""
ALIVE = 86400.0
"""Seconds after its last word within which a session without an end may go on."""
_TOKENS = 1000
"""Tokens of an answer at most."""
_SPENT = "judge tokens"
"""The setting that keeps the day and what was spent on it."""


class Judge:
    """Asks one model, or one command line, which is opened when it is needed. setting: as `checked` gave it."""

    def __init__(self, journal: Journal) -> None:
        self.name = journal.setting("why")
        self._journal = journal
        self._model: Any = None
        self._failed = False

    @property
    def is_named(self) -> bool:
        """Whether the user named somebody who is asked without being there."""
        return self.name not in NO_MODEL

    def has_room(self, text: str) -> bool:
        """Whether a question may be asked today; not after one that failed, whose model may be out of reach."""
        return not self._failed and self._spent() + estimate(text) + _TOKENS <= float(self._journal.setting("tokens"))

    def _spent(self) -> float:
        day, spent = cast(list[float], json.loads(self._journal.setting(_SPENT, "[0, 0]")))
        return spent if day == _today() else 0

    async def answer(self, text: str) -> Json:
        """The answer to a question, as JSON. Raises `MulliganError`, `TimeoutError`."""
        question = Question((Message("user", text),), SCHEMA)
        self._failed, used = True, estimate(text)
        if self.name.startswith(COMMAND):
            said = await _of_command(self.name.removeprefix(COMMAND), text)
            used += estimate(said)
            self._failed = False
            self._spend(used)
            return answer_in(said, question, model=self.name, usage=Usage()).content
        self._model = self._model or open_model(self.name)
        self._spend(used)  # also where it fails
        asked = await asyncio.wait_for(self._model.ask(question, Sampling(max_tokens=_TOKENS)), SECONDS)
        self._failed = False
        self._spend(max(0, asked.usage.tokens - used))
        return asked.content

    def _spend(self, tokens: float) -> None:
        self._journal.set(_SPENT, json.dumps([_today(), self._spent() + tokens]))


def _today() -> int:
    return int(time.time() // 86400)


async def ask_about(
    judge: Judge, bank: Bank, agent: str, session: str, events: Sequence[Turn], lessons: Sequence[str], needed: int
) -> Kept | None:
    """Asks about a session, and keeps what passes the checks; None where the day's tokens do not suffice.

    lessons: the ids of those that rules drew from it. Raises `MulliganError`, `TimeoutError`.
    """
    drawn = [one for id in lessons if (one := await bank.get(id)).state == "active" and not one.pinned]
    account: Account = account_of(agent, session, events, drawn)
    if not account.question:
        return Kept()
    if not judge.has_room(account.question):
        return None
    verdict: Verdict = believed(account, await judge.answer(account.question), judge.name)
    with acting_as(f"judge {judge.name}"):
        for id, said in verdict.lessons.items():
            await decide(bank, id, said, judge.name)
        for fact in verdict.facts:  # a fact about what rules learned from, too, is better words for that
            for lesson in drawn:
                if lesson.id not in verdict.lessons and fact.call in lesson.context.get("calls", ()):
                    await decide(bank, lesson.id, fact.title, judge.name)
        return await keep(bank, verdict.facts, needed)


async def decide(bank: Bank, id: str, verdict: bool | str, by: str, *, admits: bool = True) -> Lesson:
    """Does with a lesson what a judge says: True keeps it, False retires it, a text is a better sentence for it.

    admits: whether the judge may let it be shown. What a person decided on stays as it is.
    """
    lesson = await bank.get(id)
    if lesson.state != "active" or lesson.pinned or _judge_of(lesson) == PERSON:
        return lesson
    if verdict is True and not admits:
        return lesson

    def judged(now: Lesson) -> Mapping[str, Any]:
        word = {True: "yes", False: "no"}.get(verdict, "reworded") if isinstance(verdict, bool) else "reworded"
        context = {**now.context, "judged": {"by": by, "verdict": word}}
        if verdict is not False and admits:
            context.pop("unsure", None)
        admitted = {"confirmed": True} if verdict is not False and admits and CORRECTION in now.tags else {}
        title = {"title": verdict} if isinstance(verdict, str) else {}
        return {"context": context, **admitted, **title}

    lesson = await bank.edit(id, judged)
    return await bank.retire(id, f"rejected by {by}") if verdict is False else lesson


async def candidates(bank: Bank) -> list[Lesson]:
    """The lessons that wait for a judge, the oldest first."""
    lessons = await bank.list(Selection(("active",), tag=TAG, nature="fact", limit=None))
    return [
        one for one in reversed(lessons) if not (one.confirmed or one.pinned or _judge_of(one) not in ("", RULES_ALONE))
    ]


def _judge_of(lesson: Lesson) -> str:
    return text_at(lesson.context, "judged", "by")


def may_be_asking(journal: Journal, lesson: Lesson) -> bool:
    """Whether a session that taught a lesson may be the one that judges it now: it has not ended."""
    now = time.time()
    for id in sessions_of(lesson):
        for one in journal.sessions_like(id):
            written = os.path.getmtime(one.transcript) if os.path.exists(one.transcript) else one.seen
            if one.session == id and one.ended is None and now - written < ALIVE:
                return True
    return False


def checked(setting: str, folder: Path) -> str:
    """The setting as it is kept, its paths absolute. Calls nothing. Raises `InvalidInput` for what cannot work."""
    if setting in NO_MODEL:
        return setting
    if setting.startswith(COMMAND):
        _argv(setting.removeprefix(COMMAND))
        return setting
    setting = located_model(setting, folder)
    open_model(setting)
    return setting


def _argv(command: str) -> tuple[str, ...]:
    try:
        argv = split_line(command)
    except ValueError as error:
        raise InvalidInput(f"The command {command!r} cannot be read: {error}.") from error
    if not argv or shutil.which(argv[0]) is None:
        raise InvalidInput(f"The command {command!r} is not found. Write command:claude -p, for example.")
    return argv


async def _of_command(command: str, text: str) -> str:
    """What a command says to a question on its standard input: an agent's own, with hooks off, in an empty folder."""
    from mulligan.sandbox.local import LocalSandbox  # not everywhere

    argv, hooks_off = _argv(command), {SWITCH: "off"}
    job = Job(argv, stdin=text, env=hooks_off, network=True, seconds=SECONDS, confined=False)
    ran = await LocalSandbox(level="none").run(job)
    if ran.timed_out or ran.exit_code != 0:
        ended = f"took longer than {SECONDS:g} seconds" if ran.timed_out else f"ended with {ran.exit_code}"
        raise ModelError(f"{command} {ended}: {ran.stderr.strip()[-300:]}")
    return ran.stdout
