"""Replays transcripts, each with a bank that has learned from the others by rules, to see what it would have shown.

The bank is asked as an agent would ask it: with each message of the user, for the calls that follow, and with the error
of each refused call. The user's banks are not touched, and no model is asked.
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

TOP_K = 3
"""How many lessons the bank is asked for at once."""


@dataclass(frozen=True)
class Replay:
    """The figures of a replay.

    Attributes:
        hits: refused calls, and for how many a lesson about the same error is shown.
        sessions: transcripts with a refused call, and how many have a hit.
        remedies: hits that the transcript overcame, and for how many a lesson names what it then did.
        dead_ends: other hits, and for how many a lesson says that no other form worked.
        reversals: calls that were undone later, and before how many something is shown.
        disturbances: calls that were right, and before how many something is shown.
        titles: the titles of what all transcripts together teach.
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
    findings = [transcript.found() for transcript in transcripts]
    async with _bank(findings) as full_bank:
        titles = tuple([lesson.title for lesson in await full_bank.list()])
        replay = Replay(len(transcripts), titles=titles)
        for n, transcript in enumerate(transcripts):
            progress(n, len(transcripts))
            if findings[n]:
                async with _bank([*findings[:n], *findings[n + 1 :]]) as others:
                    replay = await _replayed(replay, transcript, others)
            else:
                replay = await _replayed(replay, transcript, full_bank)
    return replay


@asynccontextmanager
async def _bank(findings: Iterable[Sequence[Found]]) -> AsyncGenerator[Bank]:
    """A bank in memory that has learned these findings."""
    async with open_store("memory:") as store:
        bank = open_bank(store=store.memory, config=Config(), model="none", embedder="none", project="")
        async with bank:
            for finding in findings:
                await keep(bank, finding)
            yield bank


async def _replayed(replay: Replay, transcript: Transcript, bank: Bank) -> Replay:
    """The figures, with one more transcript added."""
    calls = calls_of(transcript.turns)
    numbers = {call.id: n for n, call in enumerate(calls)}
    reversed_calls, shown = set(reversals(calls)), False
    hits: list[bool] = []
    for turn in transcript.turns:
        if turn.role == "user" and turn.text.strip():
            shown = bool(await lessons_about(bank, turn.text, TOP_K))
        if turn.role != "tool" or turn.id not in numbers:
            continue
        n = numbers[turn.id]
        replay = replace(replay, calls=replay.calls + 1)
        if calls[n].error:
            lessons = await lessons_about(bank, calls[n].text, TOP_K)
            lessons = [lesson for lesson in lessons if not set(calls[n].errors).isdisjoint(errors_of(lesson))]
            replay, hits = _refused(replay, calls, n, lessons), [*hits, bool(lessons)]
        elif n in reversed_calls:
            replay = replace(replay, reversals=replay.reversals.plus(shown))
        else:
            replay = replace(replay, disturbances=replay.disturbances.plus(shown))
    return replace(replay, sessions=replay.sessions.plus(any(hits))) if hits else replay


def _refused(replay: Replay, calls: Sequence[AnsweredCall], number: int, lessons: Sequence[Lesson]) -> Replay:
    """The figures, with a refused call added for which these lessons are shown."""
    replay = replace(replay, hits=replay.hits.plus(bool(lessons)))
    if not lessons:
        return replay
    steps = {step for lesson in lessons for step in as_record(lesson.context.get("mends"))}
    if remedy := remedy_of(calls, number):
        return replace(replay, remedies=replay.remedies.plus(mend_key(remedy) in steps))
    return replace(replay, dead_ends=replay.dead_ends.plus(mend_key(dead_end(calls[number].tool)) in steps))
