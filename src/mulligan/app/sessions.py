"""Learn from the sessions of coding agents on this machine: those that the journal of their hooks names, and old ones.

`python -m mulligan.app.sessions` is the worker that hooks start and leave behind. It asks no model, unless `mulligan
hooks set why` named one as a judge: then once about each session that has ended.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from mulligan.app.config import Config
from mulligan.app.memory import Bank, open_bank
from mulligan.app.session_judge import Judge, ask_about, decide
from mulligan.core.errors import BadAnswer, MulliganError
from mulligan.core.home import home
from mulligan.core.lesson_history import RULE, Receipt
from mulligan.core.lessons import Selection
from mulligan.core.records import Json
from mulligan.core.turns import Turn
from mulligan.goals.record import checks_of
from mulligan.hooks.journal import Journal, Session, swallow
from mulligan.hooks.judging import AGENT
from mulligan.hooks.learning import (
    STATES,
    Kept,
    events_since,
    evidence_of,
    explain,
    is_old,
    keep,
    read_on,
    resting_on,
    without_old,
)
from mulligan.hooks.project import project_id
from mulligan.hooks.recall import DENY, store_file
from mulligan.sessions.agents import Old as Old
from mulligan.sessions.agents import agent, is_shell, readable
from mulligan.sessions.events import Notice
from mulligan.sessions.mends import follows, mends_of
from mulligan.sessions.overcoming import stands
from mulligan.sessions.pairs import CORRECTION, RULES, TAG, further_keys, keys_of, signature_of, words_of
from mulligan.sessions.plain_command import plain
from mulligan.sessions.records import Record, as_record, sample
from mulligan.sessions.signature import digest, keys
from mulligan.store import open_store
from mulligan.text.plain import count

AGENTS = readable()
LOCK = "hooks-learning.lock"
_DAY = 86400.0
_NO_LESSON = re.compile(r"\W*no lesson\b", re.IGNORECASE)
_QUIET = 3600.0
"""A session that reported no end is shown to the judge this many seconds after its last message."""
_SETTLED = _DAY
"""Seconds after which the lessons that a session was shown count as helpful if the session has not ended."""
_COMMAND_WAIT, _WORKER_WAIT = 120.0, 2.0
"""Seconds that a command and a worker wait for another process that is learning."""
_LAST_FAILURES = 5
"""How many of the last failed commands a later command is compared with."""
_ROUNDS = 5
"""How often a worker checks whether there is more to learn by now."""
_HEAD_BYTES = 65_536
"""Bytes at the beginning of a transcript in which its folder is searched."""


@dataclass(frozen=True)
class Result:
    """What was learned from sessions. errors: what went wrong, by transcript."""

    sessions: int = 0
    calls: int = 0
    new: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict[str, str])


# --- the worker ------------------------------------------------------------------------------------------------------


async def finish(journal: Journal, sessions: Iterable[Session] | None = None, judge: Judge | None = None) -> Result:
    """Learns from these sessions, or from all unfinished ones, each from where its last reading ended."""
    judge = judge or Judge(journal)
    sessions_read = calls = 0
    sessions = None if sessions is None else list(sessions)
    new: list[str] = []
    confirmed: list[str] = []
    errors: dict[str, str] = {}
    for session in unfinished(journal) if sessions is None else sessions:
        try:
            for part in (session, *_subagents(journal, session)):
                kept, call_count = await _learn(journal, part, judge)
                new += kept.new
                confirmed += kept.confirmed
                calls += call_count
                sessions_read += bool(call_count)
        except Exception as error:  # an unreadable transcript must not stop the others
            errors[session.transcript] = what = f"{type(error).__name__}: {error}"
            journal.swallowed(session.agent, "learn", f"{session.transcript}: {what}")
    if judge.is_named:
        new += await _judge(journal, sessions, judge)
    await _tell_outcomes(journal)
    return Result(sessions_read, calls, tuple(dict.fromkeys(new)), tuple(dict.fromkeys(confirmed)), errors)


async def _judge(journal: Journal, sessions: Sequence[Session] | None, judge: Judge) -> list[str]:
    """Asks the judge about these sessions, or about all that have ended and wait for it. Returns the new lessons.

    The cursor of a waiting session holds the lessons that rules learned from it: see `_waits`.
    """
    new: list[str] = []
    for listed in journal.sessions() if sessions is None else sessions:
        session = journal.session(listed.agent, listed.session, listed.subagent)
        waits = _waits(session.cursor) if session else None
        if session is None or session.subagent or session.forgotten or waits is None:
            continue
        if sessions is None and session.ended is None and time.time() - _written(session) < _QUIET:
            continue
        try:
            events, _ = events_since(session.agent, session.session, session.transcript, {}, folder=session.folder)
            pauses = journal.pauses(session.folder)
            events = [event for event in events if not any(start <= event.at < end for start, end in pauses)]
            async with project_bank(session.project) as bank:
                needed = int(journal.setting("needed"))
                kept = await ask_about(judge, bank, session.agent, session.session, events, waits, needed)
        except Exception as error:  # only the verdict is lost, not what rules have found
            journal.swallowed(session.agent, "why", f"{type(error).__name__}: {error}")
            if not isinstance(error, BadAnswer | FileNotFoundError):
                continue  # the next process asks again
            kept = Kept()
        if kept is not None:  # None: today's tokens are used up
            new += kept.new
            due = session.due or _written(session) > (session.learned or 0.0)
            key = (session.agent, session.session, session.subagent)
            cursor = {**session.cursor, "judge": False}
            journal.advance(*key, before=session.cursor, cursor=cursor, lessons=len(kept.new), due=due)
    return new


def _waits(cursor: Json) -> list[str] | None:
    """The lessons that rules learned from a session that waits for the judge; None if it does not wait."""
    waits = as_record(cursor).get("judge")
    return [str(id) for id in cast(list[Json], waits)] if isinstance(waits, list) else None


def _waiting(cursor: Json, kept: Kept, judge: Judge) -> dict[str, Json]:
    """The entry of the next cursor for the judge, who is asked only once about a session."""
    if as_record(cursor).get("judge") is False:
        return {"judge": False}
    return {"judge": [*(_waits(cursor) or ()), *kept.new]} if judge.is_named else {}


async def _tell_outcomes(journal: Journal) -> None:
    """Tells the bank whether lessons that sessions were shown have helped: a lesson helps if its errors do not come
    again. Each lesson gets its own receipt, which the bank counts once."""
    journal.settle(time.time() - _SETTLED)
    if not (shown := [use for use in journal.shown(untold=True) if use.way != "denied"]):
        return
    share = float(journal.setting("withhold"))
    async with open_store(store_file()) as store:
        lessons = store.memory.lessons
        by_id = {lesson.id: lesson for lesson in await lessons.there(None, list({use.lesson for use in shown}))}
        for use in shown:
            if lesson := by_id.get(use.lesson):
                id, drawn = f"{use.receipt}{use.lesson[:6]}", {use.lesson: share} if share else {}
                receipt = Receipt(id, lesson.agent_id, use.at, lesson.title, drawn=drawn)
                scores = {use.lesson: 1.0}
                withheld = use.way == "withheld"
                receipt = replace(receipt, withheld=scores) if withheld else replace(receipt, lessons=scores)
                await lessons.recalled(receipt)
                await lessons.outcome_of(lesson.agent_id, id, not use.again)
    journal.tell({use.receipt for use in shown})


async def drop_old_evidence(journal: Journal) -> int:
    """Removes recorded outputs that are older than the setting `evidence`, also from histories, at most once a day.

    The lessons stay. Returns from how many lessons something was removed.
    """
    now = time.time()
    if now - float(journal.setting("evidence looked at", "0")) < _DAY:
        return 0
    before, dropped = now - float(journal.setting("evidence")) * _DAY, 0
    async with open_store(store_file()) as store:
        lessons = store.memory.lessons
        for lesson in await lessons.list(None, Selection(STATES, tag=TAG, limit=None)):
            if any(is_old(evidence, before) for evidence in evidence_of(lesson)):
                dropped += await lessons.redact(lesson.agent_id, lesson.id, lambda old: without_old(old, before))
    journal.set("evidence looked at", str(now))
    return dropped


async def judge_anew(journal: Journal) -> int:
    """Checks lessons of earlier rules by the current rules, with the evidence that they keep.

    A lesson that no longer qualifies is not shown until a session confirms it. A lesson that a person decided on stays
    as it is. Returns how many no longer qualify.
    """
    if journal.setting("rules") == str(RULES):
        return 0
    unproven = 0
    async with open_store(store_file()) as store:
        old = [
            lesson
            for lesson in await store.memory.lessons.list(None, Selection(("active",), tag=TAG, limit=None))
            if lesson.origin.by == RULE and lesson.context.get("rules") != RULES and CORRECTION not in lesson.tags
        ]
    for agent_id in dict.fromkeys(lesson.agent_id for lesson in old):
        async with project_bank(agent_id) as bank:
            decided = {decision.lesson for decision in await bank.decided() if decision.by}
            for lesson in old:
                evidence = evidence_of(lesson)
                if lesson.agent_id != agent_id or lesson.id in decided or lesson.pinned or not evidence:
                    continue
                command, output = str(evidence[-1].get("command", "")), str(evidence[-1].get("fails", ""))
                still_stands = stands(lesson.content, command, output)
                mends = mends_of(lesson.content, map(str, as_record(lesson.context.get("mends")).values()))
                works = "\nworks: " in lesson.content
                further = further_keys(command, output, tuple(mends.values()), works=works)
                current_keys = (*keys(output), *further) if still_stands else ()
                error_keys = [*cast(list[Json], lesson.context.get("errors") or []), *current_keys]
                errors: list[Json] = list(dict.fromkeys(map(str, error_keys)))
                context = {**lesson.context, "rules": RULES, "errors": errors, "mends": {**mends}}
                changes: dict[str, Any] = {} if still_stands else {"confirmed": False}
                unproven += not still_stands
                await bank.edit(lesson.id, context=context if still_stands else {**context, "unsure": True}, **changes)
    journal.set("rules", str(RULES))
    if unproven:
        message = (
            f"Found by earlier rules, and shown again only after a session confirms them: {count(unproven, 'lesson')}."
        )
        journal.swallowed("", "learn", message)
    return unproven


async def adopt_marks(journal: Journal) -> None:
    """Records which lessons an earlier version of Mulligan marked here. From then on, no other mark counts."""
    if journal.guards() is not None:
        return
    async with open_store(store_file()) as store:
        marked = await store.memory.lessons.list(None, Selection(STATES, tag=DENY, limit=None))
    journal.guard({lesson.id: "" for lesson in marked})


def unfinished(journal: Journal) -> Sequence[Session]:
    """The sessions from which not everything was learned yet: those that are due, and those that continued, or were
    killed, since they were last read. Sessions in paused folders are left out."""
    return [
        session
        for session in journal.sessions()
        if session.transcript
        and session.agent in AGENTS
        and (session.due or session.learned is None or max(session.seen, _written(session)) > session.learned)
        and not journal.is_paused(session.folder)
    ]


async def _learn(journal: Journal, session: Session, judge: Judge) -> tuple[Kept, int]:
    """Reads a session from its cursor, stores what is found, then moves the cursor. Returns what was stored, and how
    many calls the session has made since."""
    stored = journal.session(session.agent, session.session, session.subagent)
    if stored is not None:  # it may have been read or forgotten since it was listed
        session = session._replace(cursor=stored.cursor, asked=stored.asked)
    key = (session.agent, session.session, session.subagent)
    if (stored is not None and stored.forgotten) or not (written := _written(session)):
        journal.advance(*key, before=session.cursor, cursor=session.cursor)  # its transcript was removed
        return Kept(), 0
    try:
        checks = checks_of(session.agent, session.session) if not session.subagent else ()
        reading = read_on(session, paused=journal.pauses(session.folder), checks=checks)
    except (OSError, ValueError, MulliganError):  # not read again until it changes
        journal.advance(*key, before=session.cursor, cursor=session.cursor)
        raise
    kept = Kept()
    if reading.found or reading.reason:
        async with project_bank(session.project) as bank:
            kept = await keep(bank, reading.found, int(journal.setting("needed")))
            if reading.reason and (lesson := await resting_on(bank, reading.reason[0])):
                if _NO_LESSON.match(reading.reason[1]):  # the agent that taught it may reject it
                    await decide(bank, lesson.id, False, AGENT, admits=False)
                else:
                    await explain(bank, lesson, reading.reason[1])
    await _note_done(journal, session, reading.calls)
    for call in reading.calls:
        if lines := signature_of(call, session.agent):
            notice = Notice(
                session.agent, "failure", session.session, session.folder, call=call.id, subagent_id=session.subagent
            )
            journal.failed(notice, session.project, digest(lines), words_of(call, reading.masks)[0], call.at)
    journal.note_errors(session, [(call.id, call.at, keys_of(call, session.agent)) for call in reading.calls])
    due = _written(session) > written
    cursor = {**reading.cursor, **({} if session.subagent else _waiting(session.cursor, kept, judge))}
    journal.advance(*key, before=session.cursor, cursor=cursor, lessons=len(kept.new), due=due)
    return kept, len(reading.calls)


async def _note_done(journal: Journal, session: Session, calls: Sequence[Turn]) -> None:
    """Records which of the lessons that it was shown the session followed: a later command that worked is one of their
    steps."""
    shown = [use for use in journal.shown(session=session.session) if use.way == "shown" and not use.done]
    if not shown or not calls:
        return
    async with open_store(store_file()) as store:
        lessons = await store.memory.lessons.there(None, list({use.lesson for use in shown}))
    steps = {lesson.id: set(as_record(lesson.context.get("mends"))) for lesson in lessons}
    own = {lesson.id: [str(seen.get("command", "")) for seen in evidence_of(lesson)] for lesson in lessons}
    failed: list[str] = []
    for call in (call for call in calls if is_shell(call.tool, session.agent)):
        if call.failed:
            failed = [*failed[1 - _LAST_FAILURES :], plain(call.command)]
        elif call.failed is False:
            for use in [use for use in shown if not call.at or call.at >= use.at]:
                if follows(call, (*failed, *own.get(use.lesson, ())), steps.get(use.lesson, ())):
                    journal.did(use)
                    shown.remove(use)


def _subagents(journal: Journal, session: Session) -> Iterator[Session]:
    """The sub-agents of a session that have transcripts of their own with something to learn."""
    if session.subagent:
        return
    folder = agent(session.agent).subagents(session.transcript, session.session)
    for file in sorted(Path(folder).glob("*.jsonl")) if folder else ():
        id = file.stem.removeprefix("agent-")
        stored = journal.session(session.agent, session.session, id)
        if stored is None or (not stored.forgotten and (stored.due or file.stat().st_mtime > (stored.learned or 0))):
            yield (stored or session)._replace(
                subagent=id,
                transcript=str(file),
                project=(stored and stored.project) or session.project,
                folder=session.folder,
                cursor=stored and stored.cursor,
            )


def project_bank(agent_id: str, **options: Any) -> Bank:
    """The bank of a project's lessons, in the store that hooks read, without models and settings. options: see
    `open_bank`.

    Its facts name no project, because worktrees and clones of one repository may be in folders with different names.
    """
    defaults: dict[str, Any] = {"config": Config(), "model": "none", "embedder": "none"}
    return open_bank(agent_id, store=open_store(store_file()).memory, project="", **defaults | options)


class Busy(sqlite3.OperationalError):
    """Another process is learning."""


@contextmanager
def alone(wait: float = _COMMAND_WAIT) -> Generator[None]:
    """A lock that lets one process learn at a time and ends with the process. Raises `Busy` if another one still holds
    it after `wait` seconds."""
    home().mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(home() / LOCK, timeout=wait, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            busy = Busy(f"another process is learning ({error})")
            busy.sqlite_errorcode = error.sqlite_errorcode
            raise busy from error
        yield


def _written(session: Session) -> float:
    """When a session's transcript was last written; 0 if there is no such file."""
    try:
        return agent(session.agent).written(session.transcript, session.session)
    except sqlite3.Error:  # the agent's store is in use
        return os.path.getmtime(session.transcript)


# --- old transcripts -------------------------------------------------------------------------------------------------


async def learn_since(
    journal: Journal,
    days: float,
    *,
    folder: str = "",
    agents: Sequence[str] = AGENTS,
    progress: Callable[[int, int, Old], None] = lambda _, __, ___: None,
) -> Result:
    """Learns from the transcripts of the last days on this machine. What was read before is not read again.

    folder: the project's; "": all projects. progress: called with the number done, the total, and the next session.
    """
    bank_id = journal.bank_of(project_id(folder)) if folder else ""
    bank_ids: dict[str, str] = {}
    sessions: list[tuple[Old, str]] = []
    for old in transcripts(agents, time.time() - days * 86400):
        if old.folder not in bank_ids:
            bank_ids[old.folder] = journal.bank_of(project_id(old.folder)) if old.folder else ""
        project = bank_ids[old.folder]
        if project and bank_id in ("", project) and not journal.is_paused(old.folder):
            sessions.append((old, project))
    total, judge = Result(), Judge(journal)
    for n, (old, project) in enumerate(sorted(sessions, key=lambda pair: pair[0].at)):
        progress(n, len(sessions), old)
        session = journal.session(old.agent, old.session, old.subagent)
        if session is None:
            notice = Notice(old.agent, "start", old.session, old.folder, transcript=old.path, subagent_id=old.subagent)
            session = journal.seen(notice, project)
        if session.forgotten:
            continue
        session = session._replace(transcript=session.transcript or old.path)
        result = await finish(journal, [session], judge)
        total = Result(
            total.sessions + result.sessions,
            total.calls + result.calls,
            (*total.new, *result.new),
            (*total.confirmed, *result.confirmed),
            {**total.errors, **result.errors},
        )
    return total


def transcripts(agents: Sequence[str] = AGENTS, since: float = 0.0) -> Iterator[Old]:
    """The transcripts of these agents on this machine that were written since this time."""
    for coding_agent in map(agent, agents):
        for file in sorted(Path(coding_agent.log_folder()).glob(coding_agent.logs)):
            if file.is_file() and (not coding_agent.grows or file.stat().st_mtime >= since):
                sessions = coding_agent.old(str(file), file.stat().st_mtime, _head(file))
                yield from (session for session in sessions if session.at >= since)


def _head(file: Path) -> list[Record]:
    """The records at the beginning of a transcript."""
    with file.open("rb") as opened:
        return sample(opened.read(_HEAD_BYTES).decode("utf-8", "replace"))


def main() -> int:
    """The worker: learns from unfinished sessions, and records errors in the journal instead of raising them."""
    try:
        with alone(_WORKER_WAIT), Journal() as journal:
            judge = Judge(journal)
            asyncio.run(judge_anew(journal))
            asyncio.run(adopt_marks(journal))
            for _ in range(_ROUNDS):
                if asyncio.run(finish(journal, judge=judge)).errors or not journal.is_due():
                    break
            journal.trim(float(journal.setting("days")))
            asyncio.run(drop_old_evidence(journal))
    except Busy:
        pass  # the process that is learning checks for more before it ends; else the next worker does
    except Exception as error:
        swallow("", "learn", f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
