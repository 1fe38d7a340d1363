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
from mulligan.sessions.pairs import CORRECTION, RULES, TAG, signature_of, words_of
from mulligan.sessions.plain_command import plain
from mulligan.sessions.records import Record, as_record, sample
from mulligan.sessions.signature import digest, keys, proposal_keys
from mulligan.store import open_store

AGENTS = readable()
LOCK = "hooks-learning.lock"
_DAY = 86400.0
_NO_LESSON = re.compile(r"\W*no lesson\b", re.IGNORECASE)
_QUIET = 3600.0
"""Seconds after its last word after which a session that reported no end is put to the judge."""
_SETTLED = _DAY
"""Seconds after which a session that did not end is taken to have gone well with what it was shown."""
_WAIT, _SHORT = 120.0, 2.0
"""Seconds that a command waits for a process that is learning, and that a worker does."""
_FAILED = 5
"""Of the commands that failed, how many of the last a later one is compared with."""
_ROUNDS = 5
"""Times that a worker looks whether there is more to learn by now."""
_HEAD = 65_536
"""Bytes at the beginning of a transcript in which its folder is looked for."""


@dataclass(frozen=True)
class Result:
    """What was learned from sessions. errors: what went wrong, by the transcript."""

    sessions: int = 0
    calls: int = 0
    new: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict[str, str])


# --- the worker ------------------------------------------------------------------------------------------------------


async def finish(journal: Journal, sessions: Iterable[Session] | None = None, judge: Judge | None = None) -> Result:
    """Learns from these sessions, or from all that are unfinished, each from where its last reading ended."""
    judge = judge or Judge(journal)
    done = calls = 0
    sessions = None if sessions is None else list(sessions)
    new: list[str] = []
    confirmed: list[str] = []
    errors: dict[str, str] = {}
    for session in unfinished(journal) if sessions is None else sessions:
        try:
            for part in (session, *_subagents(journal, session)):
                kept, made = await _learn(journal, part, judge)
                new += kept.new
                confirmed += kept.confirmed
                calls += made
                done += bool(made)
        except Exception as error:  # one transcript that cannot be read keeps nobody from the others
            errors[session.transcript] = what = f"{type(error).__name__}: {error}"
            journal.swallowed(session.agent, "learn", f"{session.transcript}: {what}")
    if judge.is_named:
        new += await _judge(journal, sessions, judge)
    await _tell_outcomes(journal)
    return Result(done, calls, tuple(dict.fromkeys(new)), tuple(dict.fromkeys(confirmed)), errors)


async def _judge(journal: Journal, sessions: Sequence[Session] | None, judge: Judge) -> list[str]:
    """Asks the judge about these sessions, or about all that have ended and wait for it; the lessons that are new.

    A session waits with the lessons that rules drew from it, in its cursor: see `_waits`.
    """
    new: list[str] = []
    for one in journal.sessions() if sessions is None else sessions:
        session = journal.session(one.agent, one.session, one.subagent)
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
        except Exception as error:  # it costs the judgement, and not what rules have found
            journal.swallowed(session.agent, "why", f"{type(error).__name__}: {error}")
            if not isinstance(error, BadAnswer | FileNotFoundError):
                continue  # the next process asks again
            kept = Kept()
        if kept is not None:  # else the tokens of this day do not suffice
            new += kept.new
            due = session.due or _written(session) > (session.learned or 0.0)
            which = (session.agent, session.session, session.subagent)
            cursor = {**session.cursor, "judge": False}
            journal.advance(*which, before=session.cursor, cursor=cursor, lessons=len(kept.new), due=due)
    return new


def _waits(cursor: Json) -> list[str] | None:
    """The lessons that rules drew from a session that waits for a judge; None if it does not wait."""
    waits = as_record(cursor).get("judge")
    return [str(id) for id in cast(list[Json], waits)] if isinstance(waits, list) else None


def _waiting(cursor: Json, kept: Kept, judge: Judge) -> dict[str, Json]:
    """What the next cursor says of a judge: he is asked once about a session, whatever is read of it later."""
    if as_record(cursor).get("judge") is False:
        return {"judge": False}
    return {"judge": [*(_waits(cursor) or ()), *kept.new]} if judge.is_named else {}


async def _tell_outcomes(journal: Journal) -> None:
    """Tells the bank whether what sessions were shown has helped: a lesson is worth something where the errors that it
    is about do not come again. Each lesson has a receipt of its own, which the bank counts once."""
    journal.settle(time.time() - _SETTLED)
    if not (shown := [one for one in journal.shown(untold=True) if one.way != "denied"]):
        return
    share = float(journal.setting("withhold"))
    async with open_store(store_file()) as store:
        kept = store.memory.lessons
        there = {lesson.id: lesson for lesson in await kept.there(None, list({one.lesson for one in shown}))}
        for one in shown:
            if lesson := there.get(one.lesson):
                id, drawn = f"{one.receipt}{one.lesson[:6]}", {one.lesson: share} if share else {}
                receipt = Receipt(id, lesson.agent_id, one.at, lesson.title, drawn=drawn)
                scores = {one.lesson: 1.0}
                withheld = one.way == "withheld"
                await kept.recalled(replace(receipt, withheld=scores) if withheld else replace(receipt, lessons=scores))
                await kept.outcome_of(lesson.agent_id, id, not one.again)
    journal.tell({one.receipt for one in shown})


async def drop_old_evidence(journal: Journal) -> int:
    """Removes outputs that lessons rest on, if they are older than was set, also from histories; from how many lessons.
    The lessons stay. Looks once a day."""
    now = time.time()
    if now - float(journal.setting("evidence looked at", "0")) < _DAY:
        return 0
    before, dropped = now - float(journal.setting("evidence")) * _DAY, 0
    async with open_store(store_file()) as store:
        kept = store.memory.lessons
        for lesson in await kept.list(None, Selection(STATES, tag=TAG, limit=None)):
            if any(is_old(one, before) for one in evidence_of(lesson)):
                dropped += await kept.redact(lesson.agent_id, lesson.id, lambda context: without_old(context, before))
    journal.set("evidence looked at", str(now))
    return dropped


async def judge_anew(journal: Journal) -> int:
    """Judges lessons of earlier rules by today's, from the evidence they keep; how many are no longer proven. What no
    longer qualifies is shown again once a session confirms it. A lesson that a person decided on stays as it is."""
    if journal.setting("rules") == str(RULES):
        return 0
    fallen = 0
    async with open_store(store_file()) as store:
        old = [
            lesson
            for lesson in await store.memory.lessons.list(None, Selection(("active",), tag=TAG, limit=None))
            if lesson.origin.by == RULE and lesson.context.get("rules") != RULES and CORRECTION not in lesson.tags
        ]
    for agent_id in dict.fromkeys(lesson.agent_id for lesson in old):
        async with project_bank(agent_id) as bank:
            decided = {one.lesson for one in await bank.decided() if one.by}
            for lesson in old:
                seen = evidence_of(lesson)
                if lesson.agent_id != agent_id or lesson.id in decided or lesson.pinned or not seen:
                    continue
                command, output = str(seen[-1].get("command", "")), str(seen[-1].get("fails", ""))
                good = stands(lesson.content, command, output)
                mends = mends_of(lesson.content, map(str, as_record(lesson.context.get("mends")).values()))
                now = (*keys(output), *proposal_keys(output, tuple(mends.values()))) if good else ()
                known = [*cast(list[Json], lesson.context.get("errors") or []), *now]
                errors: list[Json] = list(dict.fromkeys(map(str, known)))
                context = {**lesson.context, "rules": RULES, "errors": errors, "mends": {**mends}}
                changes = {} if good else {"confirmed": False}
                fallen += not good
                await bank.edit(lesson.id, context=context if good else {**context, "unsure": True}, **changes)
    journal.set("rules", str(RULES))
    if fallen:
        what = (
            f"{fallen} lessons that earlier rules found now count as unproven: they are shown once a session "
            "confirms them."
        )
        journal.swallowed("", "learn", what)
    return fallen


async def adopt_marks(journal: Journal) -> None:
    """Notes which lessons an earlier version of Mulligan marked here: from then on, no other mark counts."""
    if journal.guards() is not None:
        return
    async with open_store(store_file()) as store:
        marked = await store.memory.lessons.list(None, Selection(STATES, tag=DENY, limit=None))
    journal.guard({lesson.id: "" for lesson in marked})


def unfinished(journal: Journal) -> Sequence[Session]:
    """The sessions of which something was not learned yet: those that are due, and those that went on, or were killed,
    since they were read last. Not those in folders that are left out."""
    return [
        one
        for one in journal.sessions()
        if one.transcript
        and one.agent in AGENTS
        and (one.due or one.learned is None or max(one.seen, _written(one)) > one.learned)
        and not journal.is_paused(one.folder)
    ]


async def _learn(journal: Journal, session: Session, judge: Judge) -> tuple[Kept, int]:
    """Reads a session on, keeps what is found, then moves the cursor; and how many calls it made since."""
    there = journal.session(session.agent, session.session, session.subagent)
    if there is not None:  # it may have been read or forgotten since it was listed
        session = session._replace(cursor=there.cursor, asked=there.asked)
    which = (session.agent, session.session, session.subagent)
    if (there is not None and there.forgotten) or not (written := _written(session)):
        journal.advance(*which, before=session.cursor, cursor=session.cursor)  # it was removed
        return Kept(), 0
    try:
        checks = checks_of(session.agent, session.session) if not session.subagent else ()
        reading = read_on(session, paused=journal.pauses(session.folder), checks=checks)
    except (OSError, ValueError, MulliganError):  # once is enough, until it is written again
        journal.advance(*which, before=session.cursor, cursor=session.cursor)
        raise
    kept = Kept()
    if reading.found or reading.reason:
        async with project_bank(session.project) as bank:
            kept = await keep(bank, reading.found, int(journal.setting("needed")))
            if reading.reason and (lesson := await resting_on(bank, reading.reason[0])):
                if _NO_LESSON.match(reading.reason[1]):  # who taught it may reject it
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
    due = _written(session) > written
    cursor = {**reading.cursor, **({} if session.subagent else _waiting(session.cursor, kept, judge))}
    journal.advance(*which, before=session.cursor, cursor=cursor, lessons=len(kept.new), due=due)
    return kept, len(reading.calls)


async def _note_done(journal: Journal, session: Session, calls: Sequence[Turn]) -> None:
    """Notes which lessons that the session was shown it then followed: a later command that worked is one of their
    steps."""
    shown = [one for one in journal.shown(session=session.session) if one.way == "shown" and not one.done]
    if not shown or not calls:
        return
    async with open_store(store_file()) as store:
        lessons = await store.memory.lessons.there(None, list({one.lesson for one in shown}))
    steps = {lesson.id: set(as_record(lesson.context.get("mends"))) for lesson in lessons}
    failed: list[str] = []
    for call in (call for call in calls if is_shell(call.tool, session.agent)):
        if call.failed:
            failed = [*failed[1 - _FAILED :], plain(call.command)]
        elif call.failed is False:
            for one in [one for one in shown if not call.at or call.at >= one.at]:
                if follows(call, failed, steps.get(one.lesson, ())):
                    journal.did(one)
                    shown.remove(one)


def _subagents(journal: Journal, session: Session) -> Iterator[Session]:
    """The sub-agents of a session, whose transcripts lie apart."""
    if session.subagent:
        return
    folder = agent(session.agent).subagents(session.transcript, session.session)
    for file in sorted(Path(folder).glob("*.jsonl")) if folder else ():
        id = file.stem.removeprefix("agent-")
        there = journal.session(session.agent, session.session, id)
        if there is None or (not there.forgotten and (there.due or file.stat().st_mtime > (there.learned or 0))):
            yield (there or session)._replace(
                subagent=id,
                transcript=str(file),
                project=(there and there.project) or session.project,
                folder=session.folder,
                cursor=there and there.cursor,
            )


def project_bank(agent_id: str, **given: Any) -> Bank:
    """The bank of a project's lessons, in the store that hooks read, without models and settings. given: see
    `open_bank`.

    Its facts are of no named project: worktrees and clones of one repository may lie in folders of different names.
    """
    without: dict[str, Any] = {"config": Config(), "model": "none", "embedder": "none"}
    return open_bank(agent_id, store=open_store(store_file()).memory, project="", **without | given)


class Busy(sqlite3.OperationalError):
    """Another process is learning."""


@contextmanager
def alone(wait: float = _WAIT) -> Generator[None]:
    """Lets one process learn at a time; the system ends it with the process. Raises `Busy` if another one is still at
    it after so many seconds."""
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
    except sqlite3.Error:  # a store that is in use
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

    folder: of the project; "": those of all projects. progress: gets how many are done, how many there are, and the
    next one.
    """
    wanted = journal.bank_of(project_id(folder)) if folder else ""
    ids: dict[str, str] = {}
    sessions: list[tuple[Old, str]] = []
    for old in transcripts(agents, time.time() - days * 86400):
        if old.folder not in ids:
            ids[old.folder] = journal.bank_of(project_id(old.folder)) if old.folder else ""
        project = ids[old.folder]
        if project and wanted in ("", project) and not journal.is_paused(old.folder):
            sessions.append((old, project))
    total, judge = Result(), Judge(journal)
    for n, (old, project) in enumerate(sorted(sessions, key=lambda one: one[0].at)):
        progress(n, len(sessions), old)
        there = journal.session(old.agent, old.session, old.subagent)
        if there is None:
            notice = Notice(old.agent, "start", old.session, old.folder, transcript=old.path, subagent_id=old.subagent)
            there = journal.seen(notice, project)
        if there.forgotten:
            continue
        there = there._replace(transcript=there.transcript or old.path)
        one = await finish(journal, [there], judge)
        total = Result(
            total.sessions + one.sessions,
            total.calls + one.calls,
            (*total.new, *one.new),
            (*total.confirmed, *one.confirmed),
            {**total.errors, **one.errors},
        )
    return total


def transcripts(agents: Sequence[str] = AGENTS, since: float = 0.0) -> Iterator[Old]:
    """The transcripts on this machine that were written since then, by the agents named."""
    for of in map(agent, agents):
        for file in sorted(Path(of.log_folder()).glob(of.logs)):
            if file.is_file() and (not of.grows or file.stat().st_mtime >= since):
                found = of.old(str(file), file.stat().st_mtime, _head(file))
                yield from (one for one in found if one.at >= since)


def _head(file: Path) -> list[Record]:
    """The records at the beginning of a transcript."""
    with file.open("rb") as opened:
        return sample(opened.read(_HEAD).decode("utf-8", "replace"))


def main() -> int:
    """The worker: learns from what is unfinished, and notes errors in the journal. Never fails loudly."""
    try:
        with alone(_SHORT), Journal() as journal:
            judge = Judge(journal)
            asyncio.run(judge_anew(journal))
            asyncio.run(adopt_marks(journal))
            for _ in range(_ROUNDS):
                if asyncio.run(finish(journal, judge=judge)).errors or not journal.is_due():
                    break
            journal.trim(float(journal.setting("days")))
            asyncio.run(drop_old_evidence(journal))
    except Busy:
        pass  # the process that learns looks whether there is more before it ends; else the next worker does
    except Exception as error:
        swallow("", "learn", f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
