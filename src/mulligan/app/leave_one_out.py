"""Replay transcripts, each with a bank that has learned from the others by rules: what would it have shown?

The bank is asked as an agent would ask it: with what the user said, for the calls that follow, and at a refused call
with its error. No bank of the user's is touched, and no model is asked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace

from mulligan.app.config import Config
from mulligan.app.memory import Bank, open_bank
from mulligan.app.transcripts import Transcript, lessons_about
from mulligan.bank.learn.facts import errors_of
from mulligan.core.rates import Rate, rate
from mulligan.core.records import Json, Lesson
from mulligan.hooks.learning import keep
from mulligan.sessions.calls import AnsweredCall, calls_of, dead_end, remedy_of, reversals
from mulligan.sessions.mends import mend_key
from mulligan.sessions.pairs import Found
from mulligan.sessions.records import as_record
from mulligan.store import open_store

TOP = 3
"""Lessons that the bank is asked for at once."""


@dataclass(frozen=True)
class Replay:
    """The figures of a replay.

    Attributes:
        hits: refused calls at which a lesson about the same error is shown.
        sessions: transcripts with a refused call, of which one is a hit.
        remedies: of the hits that the transcript overcame, those where a lesson names what it then did.
        dead_ends: of the other hits, those where a lesson says that no other form worked.
        reversals: calls that were undone later, before which something is shown.
        disturbances: calls that were right, before which something is shown.
        titles: of what all transcripts together teach.
    """

    transcripts: int = 0
    calls: int = 0
    hits: Rate = rate(0, 0)
    sessions: Rate = rate(0, 0)
    remedies: Rate = rate(0, 0)
    dead_ends: Rate = rate(0, 0)
    reversals: Rate = rate(0, 0)
    disturbances: Rate = rate(0, 0)
    titles: tuple[str, ...] = ()

    def to_json(self) -> Json:
        return {**asdict(self), "titles": list(self.titles)}


async def leave_one_out(
    transcripts: Sequence[Transcript], progress: Callable[[int, int], None] = lambda _, __: None
) -> Replay:
    """The figures of these transcripts, each replayed with a bank that has learned from all others."""
    found = [one.found() for one in transcripts]
    async with _bank(found) as whole:
        titles = tuple([lesson.title for lesson in await whole.list()])
        replay = Replay(len(transcripts), titles=titles)
        for n, transcript in enumerate(transcripts):
            progress(n, len(transcripts))
            if found[n]:
                async with _bank([*found[:n], *found[n + 1 :]]) as others:
                    replay = await _replayed(replay, transcript, others)
            else:
                replay = await _replayed(replay, transcript, whole)
    return replay


@asynccontextmanager
async def _bank(found: Iterable[Sequence[Found]]) -> AsyncGenerator[Bank]:
    """A bank in memory that has learned this."""
    async with open_store("memory:") as store:
        bank = open_bank(store=store.memory, config=Config(), model="none", embedder="none", project="")
        async with bank:
            for one in found:
                await keep(bank, one)
            yield bank


async def _replayed(replay: Replay, transcript: Transcript, bank: Bank) -> Replay:
    """The figures with those of one more transcript."""
    calls = calls_of(transcript.turns)
    places = {call.id: n for n, call in enumerate(calls)}
    taken_back, shown = set(reversals(calls)), False
    hits: list[bool] = []
    for turn in transcript.turns:
        if turn.role == "user" and turn.text.strip():
            shown = bool(await lessons_about(bank, turn.text, TOP))
        if turn.role != "tool" or turn.id not in places:
            continue
        n = places[turn.id]
        replay = replace(replay, calls=replay.calls + 1)
        if calls[n].error:
            lessons = [one for one in await lessons_about(bank, calls[n].text, TOP) if _is_about(one, calls[n])]
            replay, hits = _refused(replay, calls, n, lessons), [*hits, bool(lessons)]
        elif n in taken_back:
            replay = replace(replay, reversals=replay.reversals.plus(shown))
        else:
            replay = replace(replay, disturbances=replay.disturbances.plus(shown))
    return replace(replay, sessions=replay.sessions.plus(any(hits))) if hits else replay


def _refused(replay: Replay, calls: Sequence[AnsweredCall], at: int, lessons: Sequence[Lesson]) -> Replay:
    """The figures with those of a refused call at which these lessons are shown."""
    replay = replace(replay, hits=replay.hits.plus(bool(lessons)))
    if not lessons:
        return replay
    steps = {step for one in lessons for step in as_record(one.context.get("mends"))}
    if remedy := remedy_of(calls, at):
        return replace(replay, remedies=replay.remedies.plus(mend_key(remedy) in steps))
    return replace(replay, dead_ends=replay.dead_ends.plus(mend_key(dead_end(calls[at].tool)) in steps))


def _is_about(lesson: Lesson, call: AnsweredCall) -> bool:
    return not set(call.errors).isdisjoint(errors_of(lesson))
