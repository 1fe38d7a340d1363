"""Reads a session's transcript from where the last reading ended, and keeps what it teaches in the bank.

What is found is kept first, and recognised by the ids of its calls if it is found again; then the cursor is moved. So a
process that dies in between loses nothing, and the next one counts nothing twice.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from mulligan.bank.bank import Bank
from mulligan.bank.learn.facts import ERROR
from mulligan.bank.learn.screening import flags_of
from mulligan.core.codec import to_json
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import Json, Lesson
from mulligan.core.turns import Turn
from mulligan.hooks.journal import Session
from mulligan.hooks.journal_file import SETTINGS
from mulligan.hooks.judging import PERSON
from mulligan.sessions.agents import agent as coding_agent
from mulligan.sessions.happenings import happened
from mulligan.sessions.pairs import TAG, Found, State, find
from mulligan.sessions.records import Record, as_record, inner_list
from mulligan.sessions.remedies import lines_of
from mulligan.sessions.signature import telling_lines
from mulligan.text.plain import one_line
from mulligan.text.reflections import quality_of
from mulligan.text.secrets import Masks, mask

NEEDED = int(SETTINGS["needed"][0])
"""How many sessions have to see something until it is no longer a candidate."""
MAX_CANDIDATES = 5
"""Candidates about one error at most. If more is tried, none of it is the remedy."""
OUTPUTS = ("fails", "works")
"""The keys of a sighting under which the outputs of its two calls are."""
MAX_SIGHTINGS, MAX_CALLS = 3, 100
"""Sightings and calls that a lesson keeps, the newest."""
_UNIQUE = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}")
"""A part of the id of a call that no other session has by chance: it is random, or a time."""
WHY = "why: "
"""Prefix of the line of a lesson that says why its command failed."""
REASON_QUALITY = "why_quality"
"""The key of a lesson's context under which the quality of that line is."""
MAX_REASON = 300
"""Characters that a reason has at most."""
_NONE = re.compile(r"\W*(?:none|unknown|n/a)\b\W*$", re.IGNORECASE)
_UNANSWERED = 50
"""Turns after which a call without an answer is given up."""
STATES = ("active", "quarantined", "retired", "superseded")


@dataclass(frozen=True)
class Reading:
    """What was found in a session since its cursor.

    Attributes:
        cursor: where the next reading begins.
        calls: all calls since the last cursor.
        masks: the secrets in them.
        reason: the sighting (see `Found.call`) that the agent was asked about, and what it said; None: it was not.
    """

    found: tuple[Found, ...]
    cursor: dict[str, Json]
    calls: tuple[Turn, ...]
    masks: Masks
    reason: tuple[str, str] | None = None


def read_on(session: Session, *, paused: Sequence[tuple[float, float]] = (), checks: Sequence[Turn] = ()) -> Reading:
    """Read on in the transcript of a session, and find what was overcome.

    Args:
        paused: the times from which nothing is learned.
        checks: what Mulligan ran for the session's goal so far. The transcript does not have it.

    Raises:
        OSError, sqlite3.Error, InvalidInput: the transcript cannot be read.
    """
    stored: dict[str, Any] = {**as_record(session.cursor)}
    subagent, asked = session.kind or session.subagent, session.asked
    state = State.of(session.agent, session.session, stored.get("state"))
    events, cursor = events_since(
        session.agent, session.session, session.transcript, stored, subagent=subagent, folder=session.folder
    )
    for check in checks:
        if check.id not in stored.get("checks", ()):
            place = next((n for n, event in enumerate(events) if event.at > check.at), len(events))
            events.insert(place, check)
    if checks:
        cursor["checks"] = [check.id for check in checks]
    events = [event for event in events if not any(start <= event.at < end for start, end in paused)]
    if subagent:  # its user is the main agent, not a person
        events = [event for event in events if event.who != "user"]
    state, findings = find(state, events, masks := Masks())
    cursor["state"] = state.kept()
    mended = [finding for finding in findings if finding.mends]
    if asked is not None:
        mended = [finding for finding in mended if float(cast(float, finding.seen["at"])) <= asked]
    overcome, reason = mended[-1].call if mended else stored.get("overcome", ""), None
    if asked is not None and overcome:
        replies = (event.text for event in events if event.who == "agent" and event.at > asked)
        if text := next(replies, ""):
            reason, overcome = (overcome, masks.text(text)), ""
    calls = tuple(event for event in events if event.is_call)
    return Reading(tuple(findings), {**cursor, "overcome": overcome}, calls, masks, reason)


def events_since(
    agent: str,
    session: str,
    transcript: str,
    cursor: dict[str, Any],
    *,
    subagent: str = "",
    folder: str = "",
) -> tuple[list[Turn], dict[str, Json]]:
    """What happened since the cursor, and the cursor after it.

    The cursor has the offset where the next reading begins, and the ids of the events after it that were returned.
    """
    reader = coding_agent(agent)
    offset, delivered = cursor.get("offset", 0), list(cursor.get("given", ()))
    end = 0
    if reader.grows:
        if os.path.getsize(transcript) < offset:  # it is another file by now
            offset, delivered = 0, []
        with open(transcript, "rb") as file:
            file.seek(offset)
            raw = file.read()
        raw = raw[: raw.rfind(b"\n") + 1]  # a line that is not complete is left to the next reading
        end = offset + len(raw)
        text = raw.decode("utf-8", "replace")
    else:
        text = reader.text(transcript, session)
    turns = reader.read(text, transcript)
    delivered_ids = set(delivered)
    new = [event for event in happened(turns, subagent=subagent, folder=folder) if event.id not in delivered_ids]
    answered = {turn.id for turn in turns if turn.role == "tool"}
    waits = any(turn.role == "assistant" and turn.tool and turn.id not in answered for turn in turns[-_UNANSWERED:])
    if reader.grows and not waits:
        offset, delivered = end, []
    else:
        delivered += [event.id for event in new]
    return new, {"offset": offset, "given": delivered}


@dataclass(frozen=True)
class Kept:
    """Ids of the new lessons, of those that a further sighting confirmed, and of all that were known before."""

    new: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


async def keep(bank: Bank, found: Sequence[Found], needed: int = NEEDED, *, author: str = "") -> Kept:
    """Keep what was found, each sighting once.

    Args:
        needed: how many sessions confirm a candidate.
        author: who made the session, if that is a stranger. What it teaches is quarantined until a person keeps it. It
            does not count for other lessons, and sessions of the user do not count for it.
    """
    new: list[str] = []
    confirmed: list[str] = []
    known: list[str] = []
    for finding in found if author else map(_screened, found):
        which = Selection(STATES, nature="fact", keys=[f"{ERROR}{key}" for key in finding.errors], limit=None)
        lessons = [lesson for lesson in await bank.list(which) if author or not is_strangers(lesson)]
        if same_sighting := next((lesson for lesson in lessons if _has(lesson, finding)), None):
            known.append(same_sighting.id)
        elif author and lessons:
            known += [lesson.id for lesson in lessons]
        elif same_remedy := next((lesson for lesson in lessons if _same_way(lesson, finding)), None):
            was_confirmed = same_remedy.confirmed
            known.append((updated := await _seen_again(bank, same_remedy, finding, needed)).id)
            if updated.confirmed and not was_confirmed:
                confirmed.append(updated.id)
        elif sum(lesson.state == "active" and not lesson.confirmed for lesson in lessons) < MAX_CANDIDATES:
            new.append((await _added(bank, finding, needed, author)).id)
    return Kept(tuple(new), tuple(confirmed), tuple(id for id in dict.fromkeys(known) if id not in new))


def _screened(finding: Found) -> Found:
    """A finding whose evidence does not hold back its lesson.

    Of an output that the screening flags, such as the options of a program, only the lines about the error are kept.
    """
    outputs = {name: str(finding.seen.get(name, "")) for name in OUTPUTS}
    shorter = {name: telling_lines(output) for name, output in outputs.items() if flags_of(output)}
    return replace(finding, seen={**finding.seen, **shorter}) if shorter else finding


def is_strangers(lesson: Lesson) -> bool:
    """Whether a lesson was learned from a stranger's session, and no person has kept it."""
    return lesson.state == "quarantined" and "author" in lesson.context


async def confirmable(bank: Bank, id: str) -> Lesson:
    """The lesson, ready to be kept: one of a stranger's session is released.

    Raises:
        InvalidInput: it is not active.
    """
    lesson = await bank.get(id)
    if is_strangers(lesson):
        return await bank.release(id)
    if lesson.state != "active":
        raise InvalidInput(f"Lesson {lesson.id} is {lesson.state}, so it cannot be kept.")
    return lesson


async def confirm(bank: Bank, id: str) -> Lesson:
    """Keep a candidate, and note that a person judged it. Raises `InvalidInput` if it is not active."""
    lesson = await confirmable(bank, id)
    await bank.edit(lesson.id, lambda now: {"confirmed": True, "context": {**now.context, "judged": {"by": PERSON}}})
    return await bank.pin(lesson.id)


async def reject(bank: Bank, id: str) -> Lesson:
    """Retire a candidate that a person rejected."""
    return await bank.withdraw(id, "dropped in a review")


async def _added(bank: Bank, finding: Found, needed: int, author: str) -> Lesson:
    draft = finding.lesson()
    if not author:
        return await add(bank, draft, confirmed=needed <= 1 or finding.lasting)
    name = one_line(author, 100)
    draft = replace(draft, description=f"{draft.description} Learned from a session of {name}.", state="quarantined")
    return await add(bank, replace(draft, context={**draft.context, "author": name}), confirmed=False)


async def add(bank: Bank, draft: Lesson, *, confirmed: bool, by_a_person: bool = False) -> Lesson:
    """Add a draft to a bank."""
    return await bank.add(
        draft.title,
        draft.content,
        description=draft.description,
        tags=draft.tags,
        context=draft.context,
        nature="fact",
        confirmed=confirmed,
        origin=draft.origin,
        by_a_person=by_a_person,
        state="quarantined" if draft.state == "quarantined" else "active",
    )


async def explain(bank: Bank, lesson: Lesson, reason: str) -> None:
    """Add to a lesson why its command failed, and the quality of that reason, scored as for reflections.

    A lesson keeps the reason that it has. A reason that the screening flags is not added.
    """
    text = one_line(mask(reason), MAX_REASON)

    def explained(now: Lesson) -> Mapping[str, Json]:
        if f"\n{WHY}" in now.content:
            return {}
        outputs = [str(sighting.get(name, "")) for sighting in evidence_of(now) for name in OUTPUTS]
        quality = to_json(quality_of(text, trial=[now.content, *outputs]))
        return {"content": f"{now.content}\n{WHY}{text}", "context": {**now.context, REASON_QUALITY: quality}}

    if text and not _NONE.match(text) and not flags_of(text):
        await bank.edit(lesson.id, explained)


async def resting_on(bank: Bank, sighting: str) -> Lesson | None:
    """The lesson that was learned from this sighting; None if there is none."""
    which = Selection(("active", "quarantined"), tag=TAG, nature="fact", limit=None)
    return next((lesson for lesson in await bank.list(which) if sighting in _calls(lesson)), None)


def sessions_of(lesson: Lesson) -> set[str]:
    """The sessions that saw what a lesson says."""
    return {call.rpartition("/")[0] for call in _calls(lesson)}


def _calls(lesson: Lesson) -> list[str]:
    listed = lesson.context.get("calls")
    return [str(call) for call in cast(list[Json], listed)] if isinstance(listed, list) else []


def _has(lesson: Lesson, finding: Found) -> bool:
    """Whether a lesson has this sighting, or a copy of it.

    A session that was forked has the history of another one, with the same ids of calls. Ids that are only numbered,
    such as `call_0`, are the same call only at the same time.
    """
    if finding.call in (known := _calls(lesson)):
        return True
    id = finding.call.rpartition("/")[2]
    if _UNIQUE.search(id):
        return any(call.rpartition("/")[2] == id for call in known)
    return bool(finding.seen["at"]) and any(
        seen.get("calls") == finding.seen["calls"] and seen.get("at") == finding.seen["at"]
        for seen in evidence_of(lesson)
    )


def is_old(sighting: Mapping[str, Json], before: float) -> bool:
    """Whether a sighting has outputs from before this time."""
    at = sighting.get("at")
    return isinstance(at, int | float) and at < before and any(sighting.get(name) for name in OUTPUTS)


def without_old(context: Mapping[str, Json], before: float) -> Mapping[str, Json]:
    """The context of a lesson without outputs from before this time. The sightings themselves stay."""
    seen: list[Json] = [
        {**sighting, **dict.fromkeys(OUTPUTS, "")} if is_old(sighting, before) else sighting
        for sighting in inner_list(context, "seen")
    ]
    return {**context, "seen": seen}


def evidence_of(lesson: Lesson) -> Sequence[Record]:
    """The last sightings of what a lesson says, with their outputs, oldest first."""
    return inner_list(lesson.context, "seen")


def _mends(lesson: Lesson) -> dict[str, str]:
    table = lesson.context.get("mends")
    return {key: str(step) for key, step in cast(dict[str, Json], table).items()} if isinstance(table, dict) else {}


def _same_way(lesson: Lesson, finding: Found) -> bool:
    """Whether a lesson says the same as what was found: they share a step, or both quote the user."""
    mends = _mends(lesson)
    return (not mends and finding.correction) or bool(mends.keys() & finding.mends.keys())


async def _seen_again(bank: Bank, lesson: Lesson, finding: Found, needed: int) -> Lesson:
    """Add a sighting to a lesson, and confirm the lesson if enough sessions have seen it.

    Only the steps that both share are kept, unless somebody has changed the text. A lesson that a person dropped, or
    that a newer fact replaced, stays as it is.
    """

    def seen_again(now: Lesson) -> Mapping[str, Any]:
        sessions = sessions_of(now)
        if now.state not in ("active", "quarantined") or finding.session in sessions:
            return {}
        mends = _mends(now)
        common = {key: step for key, step in mends.items() if key in finding.mends}
        before, after = ("\n".join(lines_of(steps.values())) for steps in (mends, common))
        changed = {"content": now.content.replace(before, after)} if mends != common and before in now.content else {}
        seen: list[Json] = [*evidence_of(now), dict(finding.seen)][-MAX_SIGHTINGS:]
        context = {**now.context, "mends": common, "calls": [*_calls(now), finding.call][-MAX_CALLS:], "seen": seen}
        return {"confirmed": now.confirmed or len(sessions) + 1 >= needed, "context": context, **changed}

    return await bank.edit(lesson.id, seen_again)
