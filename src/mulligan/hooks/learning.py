"""Read a session's transcript on from where the last reading ended, and keep in the bank what was found.

What is found is kept first, and known again by the ids of its calls; then the cursor is moved. So a process that dies
in between loses nothing, and the next one counts nothing twice.
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
from mulligan.hooks.journal import SETTINGS, Session
from mulligan.hooks.judging import PERSON
from mulligan.sessions.agents import agent as coding_agent
from mulligan.sessions.pairs import TAG, Found, State, find, happened
from mulligan.sessions.records import as_record
from mulligan.sessions.remedies import lines_of
from mulligan.text.plain import one_line
from mulligan.text.reflections import quality_of
from mulligan.text.secrets import Masks, mask

NEEDED = int(SETTINGS["needed"][0])
"""Sessions in which something is seen until it is no candidate any more."""
WAYS = 5
"""Candidates about one error at most: where more is tried, none of it is the reason."""
OUTPUTS = ("fails", "works")
"""What a sighting calls the outputs of the two calls."""
EVIDENCE, CALLS = 3, 100
"""Sightings of which the outputs are kept, and of which the calls are."""
_UNIQUE = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}")
"""What stands in an id of a call that no other session has by chance: random, or a time."""
WHY = "why: "
"""Begins the line of a lesson that says why its command failed."""
REASON_QUALITY = "why_quality"
"""What the context of a lesson calls the quality of that line."""
REASON = 300
"""Characters of a reason at most."""
_NONE = re.compile(r"\W*(?:none|unknown|n/a)\b\W*$", re.IGNORECASE)
_UNANSWERED = 50
"""Turns after which a call that has not come back is not waited for any more."""
STATES = ("active", "quarantined", "retired", "superseded")


@dataclass(frozen=True)
class Reading:
    """What was found in a session since its cursor, the cursor after it, the calls in between, and their secrets.

    reason: what the agent said when it was asked, and what that is about: a sighting (see `Found.call`).
    """

    found: tuple[Found, ...]
    cursor: dict[str, Json]
    calls: tuple[Turn, ...]
    masks: Masks
    reason: tuple[str, str] | None = None


def read_on(session: Session, *, paused: Sequence[tuple[float, float]] = (), checks: Sequence[Turn] = ()) -> Reading:
    """Reads on in the transcript of a session, and finds what was overcome.

    Args:
        paused: the times of which nothing is learned.
        checks: what Mulligan ran for the session's goal so far, which the transcript does not have.

    Raises `OSError`, `sqlite3.Error`, `InvalidInput`.
    """
    kept: dict[str, Any] = {**as_record(session.cursor)}
    subagent, asked = session.kind or session.subagent, session.asked
    state = State.of(session.agent, session.session, kept.get("state"))
    events, at = events_since(
        session.agent, session.session, session.transcript, kept, subagent=subagent, folder=session.folder
    )
    counted = list(kept.get("checks", ()))
    for check in (one for one in checks if one.id not in counted):
        later = next((n for n, event in enumerate(events) if event.at > check.at), len(events))
        events.insert(later, check)
    at = {**at, "checks": [one.id for one in checks]} if checks else at
    events = [event for event in events if not any(start <= event.at < end for start, end in paused)]
    if subagent:  # its user is the main agent, and no person
        events = [event for event in events if event.who != "user"]
    state, found = find(state, events, masks := Masks())
    after = {**at, "state": state.kept()}
    before = [one.call for one in found if one.mends and (asked is None or float(cast(float, one.seen["at"])) <= asked)]
    overcome, reason = before[-1] if before else kept.get("overcome", ""), None
    if asked is not None and overcome:
        said = (event.text for event in events if event.who == "agent" and event.at > asked)
        if text := next(said, ""):
            reason, overcome = (overcome, masks.text(text)), ""
    calls = tuple(event for event in events if event.is_call)
    return Reading(tuple(found), {**after, "overcome": overcome}, calls, masks, reason)


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

    The cursor has the offset at which the next reading begins, and the ids of what was given behind it.
    """
    of = coding_agent(agent)
    offset, given = cursor.get("offset", 0), list(cursor.get("given", ()))
    end = 0
    if of.grows:
        if os.path.getsize(transcript) < offset:  # it is another file by now
            offset, given = 0, []
        with open(transcript, "rb") as file:
            file.seek(offset)
            raw = file.read()
        raw = raw[: raw.rfind(b"\n") + 1]  # a last line without its end is left to the next reading
        end = offset + len(raw)
        text = raw.decode("utf-8", "replace")
    else:
        text = of.text(transcript, session)
    turns = of.read(text, transcript)
    known = set(given)
    new = [event for event in happened(turns, subagent=subagent, folder=folder) if event.id not in known]
    answered = {turn.id for turn in turns if turn.role == "tool"}
    waits = any(turn.role == "assistant" and turn.tool and turn.id not in answered for turn in turns[-_UNANSWERED:])
    if of.grows and not waits:
        offset, given = end, []
    else:
        given += [event.id for event in new]
    return new, {"offset": offset, "given": given}


@dataclass(frozen=True)
class Kept:
    """Ids of the lessons that are new, that were seen again so that they are confirmed, and that were known."""

    new: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


async def keep(bank: Bank, found: Sequence[Found], needed: int = NEEDED, *, author: str = "") -> Kept:
    """Keeps what was found, each sighting once. needed: the sessions until a candidate is confirmed.

    author: of a stranger's session, who made it. What it taught is quarantined until a person keeps it, counts for no
    other lesson, and no session of the user's counts for it.
    """
    new: list[str] = []
    confirmed: list[str] = []
    known: list[str] = []
    for one in found:
        which = Selection(STATES, nature="fact", keys=[f"{ERROR}{key}" for key in one.errors], limit=None)
        about = [lesson for lesson in await bank.list(which) if author or not is_strangers(lesson)]
        if before := next((lesson for lesson in about if _has(lesson, one)), None):
            known.append(before.id)
        elif author and about:
            known += [lesson.id for lesson in about]
        elif same := next((lesson for lesson in about if _same_way(lesson, one)), None):
            was = same.confirmed
            known.append((after := await _seen_again(bank, same, one, needed)).id)
            if after.confirmed and not was:
                confirmed.append(after.id)
        elif sum(lesson.state == "active" and not lesson.confirmed for lesson in about) < WAYS:
            new.append((await _added(bank, one, needed, author)).id)
    return Kept(tuple(new), tuple(confirmed), tuple(id for id in dict.fromkeys(known) if id not in new))


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


async def _added(bank: Bank, one: Found, needed: int, author: str) -> Lesson:
    draft = one.lesson()
    if not author:
        return await add(bank, draft, confirmed=needed <= 1 or one.lasting)
    by = one_line(author, 100)
    draft = replace(draft, description=f"{draft.description} Learned from a session of {by}.", state="quarantined")
    return await add(bank, replace(draft, context={**draft.context, "author": by}), confirmed=False)


async def add(bank: Bank, draft: Lesson, *, confirmed: bool, by_a_person: bool = False) -> Lesson:
    """Keeps what a draft says in a bank."""
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
    """Adds to a lesson why its command failed, and how good that reason is, scored as reflections are (`REASON_QUALITY`
    in its context). A reason that was there stays; one that is flagged is left out."""
    text = one_line(mask(reason), REASON)

    def explained(now: Lesson) -> Mapping[str, Json]:
        if f"\n{WHY}" in now.content:
            return {}
        outputs = [str(one.get(name, "")) for one in evidence_of(now) for name in OUTPUTS]
        quality = to_json(quality_of(text, trial=[now.content, *outputs]))
        return {"content": f"{now.content}\n{WHY}{text}", "context": {**now.context, REASON_QUALITY: quality}}

    if text and not _NONE.match(text) and not flags_of(text):
        await bank.edit(lesson.id, explained)


async def resting_on(bank: Bank, sighting: str) -> Lesson | None:
    """The lesson that rests on this sighting."""
    which = Selection(("active", "quarantined"), tag=TAG, nature="fact", limit=None)
    return next((lesson for lesson in await bank.list(which) if sighting in _calls(lesson)), None)


def sessions_of(lesson: Lesson) -> set[str]:
    """The sessions that saw what a lesson says."""
    return {call.rpartition("/")[0] for call in _calls(lesson)}


def _calls(lesson: Lesson) -> list[str]:
    listed = lesson.context.get("calls")
    return [str(one) for one in cast(list[Json], listed)] if isinstance(listed, list) else []


def _has(lesson: Lesson, one: Found) -> bool:
    """Whether a lesson rests on this sighting, or on a copy of it: the history of a session that was forked stands
    under another session, with the same ids. Ids that count (`call_0`) are the same only at the same time."""
    if one.call in (known := _calls(lesson)):
        return True
    id = one.call.rpartition("/")[2]
    if _UNIQUE.search(id):
        return any(call.rpartition("/")[2] == id for call in known)
    return bool(one.seen["at"]) and any(
        seen.get("calls") == one.seen["calls"] and seen.get("at") == one.seen["at"] for seen in evidence_of(lesson)
    )


def is_old(sighting: Mapping[str, Json], before: float) -> bool:
    """Whether a sighting has outputs, and was made before this time."""
    at = sighting.get("at")
    return isinstance(at, int | float) and at < before and any(sighting.get(name) for name in OUTPUTS)


def without_old(context: Mapping[str, Json], before: float) -> Mapping[str, Json]:
    """The context of a lesson without outputs that are older; what each sighting is known by stays."""
    seen: list[Json] = [
        {**one, **dict.fromkeys(OUTPUTS, "")} if is_old(one, before) else one for one in _sightings(context)
    ]
    return {**context, "seen": seen}


def evidence_of(lesson: Lesson) -> list[dict[str, Json]]:
    """The last sightings of what a lesson says, with their outputs, oldest first."""
    return _sightings(lesson.context)


def _sightings(context: Mapping[str, Json]) -> list[dict[str, Json]]:
    listed = context.get("seen")
    return [one for one in cast(list[Any], listed) if isinstance(one, dict)] if isinstance(listed, list) else []


def _mends(lesson: Lesson) -> dict[str, str]:
    table = lesson.context.get("mends")
    return {key: str(step) for key, step in cast(dict[str, Json], table).items()} if isinstance(table, dict) else {}


def _same_way(lesson: Lesson, one: Found) -> bool:
    """Whether a lesson says what was found again: they have a step in common, or quote the same."""
    mends = _mends(lesson)
    return (not mends and one.correction) or bool(mends.keys() & one.mends.keys())


async def _seen_again(bank: Bank, lesson: Lesson, one: Found, needed: int) -> Lesson:
    """The lesson with this evidence, confirmed after so many sessions. It keeps the steps that both have in common, if
    nobody has changed its text. What a person dropped, or a newer fact replaced, stays as it is."""

    def seen_again(now: Lesson) -> Mapping[str, Any]:
        sessions = sessions_of(now)
        if now.state not in ("active", "quarantined") or one.session in sessions:
            return {}
        mends = _mends(now)
        common = {key: step for key, step in mends.items() if key in one.mends}
        before, after = ("\n".join(lines_of(steps.values())) for steps in (mends, common))
        changed = {"content": now.content.replace(before, after)} if mends != common and before in now.content else {}
        seen: list[Json] = [*evidence_of(now), dict(one.seen)][-EVIDENCE:]
        context = {**now.context, "mends": common, "calls": [*_calls(now), one.call][-CALLS:], "seen": seen}
        return {"confirmed": now.confirmed or len(sessions) + 1 >= needed, "context": context, **changed}

    return await bank.edit(lesson.id, seen_again)
