"""Asks the judge that a user named about a session of a coding agent: once, masked, and within the tokens of a day.

Nobody is asked unless `mulligan hooks set why` names a model or a command line. Roles and `MULLIGAN_MODEL` do not
count.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mulligan.app.config import located_model
from mulligan.bank.bank import Bank
from mulligan.core.errors import BadAnswer, InvalidInput, ModelError
from mulligan.core.lessons import Selection
from mulligan.core.operations import acting_as
from mulligan.core.protocols import Job
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Json, Lesson, Usage
from mulligan.core.turns import Turn
from mulligan.hooks import SWITCH
from mulligan.hooks.journal import Journal
from mulligan.hooks.judging import PERSON, RULES_ALONE, SCHEMA, account_of, believed
from mulligan.hooks.learning import Kept, keep, sessions_of
from mulligan.models.answers import answer_in
from mulligan.models.catalog import open_model
from mulligan.sessions.pairs import CORRECTION, TAG
from mulligan.sessions.records import text_at
from mulligan.text.command_lines import split_line
from mulligan.text.truncate import estimate

SECONDS = 120.0
"""The most seconds that a judge may take for an answer."""
COMMAND = "command:"
"""What a setting begins with that names a command line."""
NO_MODEL = ("none", "ask")
"""Values of the setting that name no model: nobody is asked, or the agent itself."""
ALIVE = 86400.0
"""A session that was not ended counts as over after this many seconds without a message."""
_MAX_TOKENS = 1000
"""The most tokens of an answer."""
_SPENT = "judge tokens"
"""The setting that stores the day and the tokens spent on it."""


class Judge:
    """Asks the model or the command line that the setting `why` names. A model is opened when it is first asked."""

    def __init__(self, journal: Journal) -> None:
        self.name = journal.setting("why")
        self._journal = journal
        self._model: Any = None
        self._failed = False

    @property
    def is_named(self) -> bool:
        """Whether the user named a model or a command, which can be asked after the session."""
        return self.name not in NO_MODEL

    def has_room(self, text: str) -> bool:
        """Whether a question may be asked: today's tokens suffice, and the last question got an answer.

        If it got none, the judge may be unreachable. An answer that cannot be read is an answer.
        """
        return not self._failed and self._spent() + estimate(text) + _MAX_TOKENS <= float(
            self._journal.setting("tokens")
        )

    def _spent(self) -> float:
        day, spent = cast(list[float], json.loads(self._journal.setting(_SPENT, "[0, 0]")))
        return spent if day == _today() else 0

    async def answer(self, text: str) -> Json:
        """The answer to a question, as JSON. Raises `MulliganError`, `TimeoutError`."""
        ask = self._ask_the_command if self.name.startswith(COMMAND) else self._ask_the_model
        try:
            return await ask(text)
        except BaseException as error:
            self._failed = not isinstance(error, BadAnswer)
            raise

    async def _ask_the_command(self, text: str) -> Json:
        """A command that fails costs no tokens, because it has probably asked no model."""
        output = await _ask_command(self.name.removeprefix(COMMAND), text)
        self._spend(estimate(text) + estimate(output))
        return answer_in(output, _question(text), model=self.name, usage=Usage()).content

    async def _ask_the_model(self, text: str) -> Json:
        """A model that fails costs the tokens of the question."""
        self._model = self._model or open_model(self.name)
        estimated = estimate(text)
        self._spend(estimated)
        answer = await asyncio.wait_for(self._model.ask(_question(text), Sampling(max_tokens=_MAX_TOKENS)), SECONDS)
        self._spend(max(0, answer.usage.tokens - estimated))
        return answer.content

    def _spend(self, tokens: float) -> None:
        self._journal.set(_SPENT, json.dumps([_today(), self._spent() + tokens]))


def _question(text: str) -> Question:
    return Question((Message("user", text),), SCHEMA)


def _today() -> int:
    return int(time.time() // 86400)


async def ask_about(
    judge: Judge, bank: Bank, agent: str, session: str, events: Sequence[Turn], lessons: Sequence[str], needed: int
) -> Kept | None:
    """Asks about a session, and stores what passes the checks. None if the judge has no room for the question.

    lessons: the ids of those that rules learned from it. Raises `MulliganError`, `TimeoutError`.
    """
    lessons_of_rules = [
        lesson for id in lessons if (lesson := await bank.get(id)).state == "active" and not lesson.pinned
    ]
    account = account_of(agent, session, events, lessons_of_rules)
    if not account.question:
        return Kept()
    if not judge.has_room(account.question):
        return None
    verdict = believed(account, await judge.answer(account.question), judge.name)
    with acting_as(f"judge {judge.name}"):
        for id, said in verdict.lessons.items():
            await decide(bank, id, said, judge.name)
        for fact in verdict.facts:  # a fact about a call that rules learned from rewords their lesson
            for lesson in lessons_of_rules:
                if lesson.id not in verdict.lessons and fact.call in lesson.context.get("calls", ()):
                    await decide(bank, lesson.id, fact.title, judge.name)
        return await keep(bank, verdict.facts, needed)


async def decide(bank: Bank, id: str, verdict: bool | str, by: str, *, admits: bool = True) -> Lesson:
    """Applies a judge's verdict to a lesson: True keeps it, False retires it, and a text replaces its sentence.

    admits: whether the judge may let it be shown. A lesson that a person decided on stays as it is.
    """
    lesson = await bank.get(id)
    if lesson.state != "active" or lesson.pinned or _judge_of(lesson) == PERSON:
        return lesson
    if verdict is True and not admits:
        return lesson

    def judged(now: Lesson) -> Mapping[str, Any]:
        word = "reworded" if isinstance(verdict, str) else "yes" if verdict else "no"
        context = {**now.context, "judged": {"by": by, "verdict": word}}
        if verdict is not False and admits:
            context.pop("unsure", None)
        admitted = {"confirmed": True} if verdict is not False and admits and CORRECTION in now.tags else {}
        title = {"title": verdict} if isinstance(verdict, str) else {}
        return {"context": context, **admitted, **title}

    lesson = await bank.edit(id, judged)
    return await bank.retire(id, f"rejected by {by}") if verdict is False else lesson


async def candidates(bank: Bank) -> list[Lesson]:
    """The lessons that wait for a judge, oldest first."""
    lessons = await bank.list(Selection(("active",), tag=TAG, nature="fact", limit=None))
    undecided = [lesson for lesson in reversed(lessons) if not (lesson.confirmed or lesson.pinned)]
    return [lesson for lesson in undecided if _judge_of(lesson) in ("", RULES_ALONE)]


def _judge_of(lesson: Lesson) -> str:
    return text_at(lesson.context, "judged", "by")


def may_be_asking(journal: Journal, lesson: Lesson) -> bool:
    """Whether a session that taught the lesson may be judging it now, because it has not ended."""
    now = time.time()
    for id in sessions_of(lesson):
        for session in journal.sessions_like(id):
            written = os.path.getmtime(session.transcript) if os.path.exists(session.transcript) else session.seen
            if session.session == id and session.ended is None and now - written < ALIVE:
                return True
    return False


def checked(setting: str, folder: Path) -> str:
    """The setting as it is stored, with absolute paths. Calls nothing. Raises `InvalidInput` if it cannot work.

    A command runs in an empty folder, so a program with a relative path, and each other word that is the name of a
    file, become absolute.
    """
    if setting in NO_MODEL:
        return setting
    if setting.startswith(COMMAND):
        command = _located_command(setting.removeprefix(COMMAND), folder)
        _argv(command)
        return f"{COMMAND}{command}"
    setting = located_model(setting, folder)
    open_model(setting)
    return setting


def _located_command(command: str, folder: Path) -> str:
    """The command with absolute paths of its program and its files; as it is written if none is relative."""

    def is_path(n: int, word: str) -> bool:
        return os.path.isfile(folder / word) if n else os.path.dirname(word) != ""

    words = _words(command)
    located = tuple(str(folder / word) if is_path(n, word) else word for n, word in enumerate(words))
    return command if located == words else shlex.join(located)


def _words(command: str) -> tuple[str, ...]:
    try:
        return split_line(command)
    except ValueError as error:
        raise InvalidInput(f"The command {command!r} cannot be parsed: {error}.") from error


def _argv(command: str) -> tuple[str, ...]:
    argv = _words(command)
    if not argv or shutil.which(argv[0]) is None:
        raise InvalidInput(f"The command {command!r} was not found. Use, for example, command:claude -p.")
    return argv


async def _ask_command(command: str, text: str) -> str:
    """The output of a command for a question on its standard input. It runs in an empty folder, with hooks off."""
    from mulligan.sandbox.local import LocalSandbox  # not available everywhere

    argv, hooks_off = _argv(command), {SWITCH: "off"}
    job = Job(argv, stdin=text, env=hooks_off, network=True, seconds=SECONDS, confined=False)
    ran = await LocalSandbox(level="none").run(job)
    if ran.timed_out or ran.exit_code != 0:
        ended = f"took longer than {SECONDS:g} seconds" if ran.timed_out else f"ended with {ran.exit_code}"
        raise ModelError(f"{command} {ended}: {ran.stderr.strip()[-300:]}")
    return ran.stdout
