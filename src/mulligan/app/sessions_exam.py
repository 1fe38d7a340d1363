"""Examine what the rules, or a memory, would have shown in the sessions that are on this machine: no bank is touched.

The sessions of each project are taken in the order of time, with a bank that begins empty. At each command that failed
the exam asks what its hook would have shown then, and whether the session went on to do it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

from mulligan.app.sessions import project_bank
from mulligan.core.errors import MulliganError
from mulligan.core.protocols import TextMemory
from mulligan.core.records import Attempt, Episode, Step, Task, Trial
from mulligan.core.turns import Turn
from mulligan.hooks.journal import PastSession
from mulligan.hooks.learning import events_since, keep
from mulligan.hooks.project import project_id
from mulligan.hooks.recall import HISTORY, MAX_LESSONS, MAX_RULES, Known, Reader
from mulligan.sessions.agents import Old, is_shell
from mulligan.sessions.commands import only_looks
from mulligan.sessions.mends import follows
from mulligan.sessions.pairs import TAIL, State, find, keys_of
from mulligan.sessions.plain_command import plain
from mulligan.sessions.signature import keys_at

AHEAD = 60
"""Calls after a failure in which what a lesson says may be done."""


@dataclass(frozen=True)
class Exam:
    """What hooks would have done.

    Attributes:
        failures: commands that failed, without those that only look.
        known: of these, those of which an earlier session had overcome the same error.
        shown, done: failures at which a lesson was shown, at the failure or before in the session; and after which the
            session did what it says.
        needless: failures at which a memory showed something although no earlier session had overcome the error.
        rules, needed: rules shown at the start of sessions, and those of which the error came in the session.
        titles: the lessons that were taught.
        unreadable: transcripts that could not be read, and why.
    """

    projects: int = 0
    sessions: int = 0
    calls: int = 0
    failures: int = 0
    known: int = 0
    shown: int = 0
    done: int = 0
    needless: int = 0
    rules: int = 0
    needed: int = 0
    confirmed: int = 0
    titles: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def plus(self, **more: int | tuple[str, ...]) -> Exam:
        return replace(self, **{name: getattr(self, name) + value for name, value in more.items()})


async def examine(
    sessions: Sequence[Old],
    progress: Callable[[int, int], None] = lambda _, __: None,
    memory: Callable[[], TextMemory] | None = None,
) -> Exam:
    """The figures of these sessions, each project with a bank of its own that begins empty and is thrown away.

    memory: makes what is shown at failures in place of what hooks would have shown; one for each project.
    """
    memories = dict[str, TextMemory]()
    exam = Exam()
    past = dict[str, list[PastSession]]()
    ids = {old.folder: project_id(old.folder) for old in sessions if old.folder}
    with _empty_home():
        for n, old in enumerate(sorted(sessions, key=lambda one: one.at)):
            progress(n, len(sessions))
            if not (project := ids.get(old.folder, "")):
                continue
            try:
                events, _ = events_since(old.agent, old.session, old.path, {}, subagent=old.subagent, folder=old.folder)
            except (OSError, ValueError, MulliganError) as error:
                exam = exam.plus(unreadable=(f"{old.path}: {error}",))
                continue
            if memory and project not in memories:
                memories[project] = memory()
            exam = await _session(exam, project, old, events, past.setdefault(project, []), memories.get(project))
    return replace(exam, projects=len(set(ids.values())))


async def _session(
    exam: Exam, project: str, old: Old, events: Sequence[Turn], past: list[PastSession], memory: TextMemory | None
) -> Exam:
    """The figures with those of a session.

    past: the earlier sessions of the project, the newest at the end. This session is added.
    """
    with closing(Reader(project)) as reader:
        rules: Sequence[Known] = () if old.subagent else reader.rules(past[: -HISTORY - 1 : -1])[:MAX_RULES]
        told = {one.id: one for one in rules}
        came: set[str] = set()
        failures = known = shown = done = needless = calls = 0
        for n, event in enumerate(events):
            if not event.is_call:
                continue
            calls += 1
            if not event.failed or not is_shell(event.tool, old.agent) or only_looks(event.command):
                continue
            failures += 1
            about = reader.about(keys_at(event.command, event.output))
            later = [one for one in events[n + 1 : n + 1 + AHEAD] if one.is_call]
            if memory is not None:
                text = await memory.recall(Task(f"{event.command}\n{event.output[-TAIL:]}"))
                known += bool(about)
                shown += bool(text.strip())
                needless += bool(text.strip()) and not about
                done += _names_what_was_done(text, event, later)
                continue
            told |= {one.id: one for one in about[:MAX_LESSONS]}
            met = [one for one in told.values() if one.id in {each.id for each in about}]
            came.update(one.id for one in met)
            known += bool(about)
            shown += bool(met)
            done += _is_done(event, met, later)
    if not old.subagent:
        keys = frozenset(key for event in events for key in keys_of(event, old.agent))
        past.append(PastSession(keys, frozenset(told)))
    _, found = find(State(old.agent, old.session), events)
    async with project_bank(project, embedder="none") as bank:
        kept = await keep(bank, found)
        titles = tuple([(await bank.get(id)).title for id in kept.new])
    needed = sum(one.id in came for one in rules)
    if memory is not None:
        await memory.learn(_episode(old, events))
    counts = {"calls": calls, "failures": failures, "known": known, "shown": shown, "done": done, "sessions": 1}
    return exam.plus(
        **counts, needless=needless, rules=len(rules), needed=needed, confirmed=len(kept.confirmed), titles=titles
    )


def _is_done(failed: Turn, lessons: Sequence[Known], later: Sequence[Turn]) -> bool:
    """Whether a session did a step of one of these lessons."""
    steps = {str(key) for one in lessons for key in one.context.get("mends") or ()}
    return any(follows(call, (plain(failed.command),), steps) for call in later if call.failed is False)


def _names_what_was_done(text: str, failure: Turn, later: Sequence[Turn]) -> bool:
    """Whether a text has a command that then went right, other than the one that failed and those that only look."""
    right = {plain(call.command) for call in later if call.failed is False and not only_looks(call.command)}
    return any(command and command in text for command in right - {plain(failure.command)})


def _episode(old: Old, events: Sequence[Turn]) -> Episode:
    """A session as an episode that nobody judged."""
    request = next((event.text for event in events if event.role == "user"), "")
    steps = tuple(Step(action=event.command, observation=event.output) for event in events if event.is_call)
    return Episode(f"{old.agent}.{old.session}", Task(request), trials=(Trial(1, Attempt("", steps)),))


@contextmanager
def _empty_home() -> Generator[None]:
    """A data folder for the exam alone."""
    before = {name: os.environ.get(name) for name in ("MULLIGAN_HOME", "MULLIGAN_STORE")}
    with tempfile.TemporaryDirectory(prefix="mulligan-exam-", ignore_cleanup_errors=True) as home:
        os.environ["MULLIGAN_HOME"] = home
        os.environ.pop("MULLIGAN_STORE", None)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
