"""What came of an exam: gain and harm of each memory, with intervals, and what the exam's own checks found."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from mulligan.app.sessions_exam import Exam
from mulligan.bench.harness.plan import STREAM
from mulligan.bench.harness.running import run_with_id
from mulligan.bench.harness.stream import NONE
from mulligan.bench.report.figures import read_run
from mulligan.bench.report.page import NONE as EMPTY
from mulligan.bench.report.page import UNKNOWN
from mulligan.bench.report.statistics import Estimate
from mulligan.bench.report.stream import Row, StreamReport, difference, gain_of, read_stream, world_of
from mulligan.core.protocols import Store
from mulligan.core.rates import LEVEL, rate
from mulligan.core.records import Json
from mulligan.text.pages import Block, Facts, Heading, Line, Table

WHOLE = re.compile(r"\b(?:database|game)\b")
"""Streams in which every fact changes at the change, so that nothing learned before it can help after it."""


@dataclass(frozen=True)
class MemoryFigures:
    """The figures of one memory over all streams.

    Attributes:
        gain: over no memory.
        gains: the same in each stream.
        transfer: of the score, with a memory of another world; below 0 it did harm.
        stale: of the score after a change of all facts, with a memory that ended before it; below 0 it did harm.
        tokens: of the recalled text, a mean over the cases.
        errors: cases that ended with an error.
        failure: what the first of them ended with; "" without any.
    """

    memory: str
    gain: Estimate | None
    gains: Mapping[str, Estimate | None]
    transfer: Estimate | None
    stale: Estimate | None
    tokens: float
    errors: int
    failure: str


@dataclass(frozen=True)
class ExamReport:
    """faults: what the checks found; without any, the figures can be read. sessions: of each memory that replayed the
    reader's own sessions."""

    streams: Sequence[StreamReport]
    memories: Sequence[MemoryFigures]
    faults: Sequence[str]
    sessions: Mapping[str, Exam]

    def to_json(self) -> Json:
        streams = [report.to_json() for report in self.streams]
        memories = [asdict(one) for one in self.memories]
        replayed = {name: asdict(exam) for name, exam in self.sessions.items()}
        return {"schema": 1, "faults": [*self.faults], "memories": memories, "sessions": replayed, "streams": streams}


async def read_exam(store: Store, ids: Sequence[str], sessions: Mapping[str, Exam] = {}) -> ExamReport:
    """The report on these streams. Raises `NotFound`, `InvalidInput` for what is no stream."""
    streams = [await read_stream(store, id) for id in ids]
    rows = [row for report in streams for row in report.rows]
    memories = [arm.name for arm in streams[0].choice.arms if arm.memory is not None and not arm.control]
    figures = [_figures(streams, rows, memory) for memory in memories]
    found = [fault for report in streams for fault in faults(report, await filling_worlds(store, report))]
    return ExamReport(streams, figures, found, sessions)


def _figures(streams: Sequence[StreamReport], rows: Sequence[Row], memory: str) -> MemoryFigures:
    own = [row for row in rows if row.arm == memory]
    whole = [row for report in streams if WHOLE.search(_name(report)) for row in report.rows]
    return MemoryFigures(
        memory,
        gain_of(rows, memory),
        {_name(report): gain_of(report.rows, memory) for report in streams},
        difference(rows, f"{memory}-unrelated", NONE),
        difference([row for row in whole if row.phase > 1], f"{memory}-stale", NONE),
        fmean(row.recalled_tokens for row in own),
        sum(row.status == "error" for row in own),
        next((row.error for row in own if row.error), ""),
    )


def _name(report: StreamReport) -> str:
    return report.run.benchmark.removeprefix(STREAM)


# --- checks ---------------------------------------------------------------------------------------------------------


async def filling_worlds(store: Store, report: StreamReport) -> Mapping[str, set[str]]:
    """The worlds of the tasks from which the memory of each unrelated control has learned."""
    runs = {arm.name: f"{report.run.id}-{arm.name}-filling" for arm in report.choice.arms if arm.control == "unrelated"}
    found = {name: (await read_run(store, run)).episodes for name, run in runs.items() if await run_with_id(store, run)}
    return {name: {world_of(episode) for episode in episodes.values()} for name, episodes in found.items()}


def faults(report: StreamReport, fillings: Mapping[str, set[str]] = {}) -> Iterator[str]:
    """What makes the figures of a stream mean something else than they say, a sentence each. fillings: see
    `filling_worlds`."""
    name = _name(report)
    if report.ended < report.legs:
        yield f"{name}: unfinished: {report.ended} of {report.legs} legs."
    for row in report.rows:
        if row.arm == NONE and row.recalled_tokens:
            yield f"{name}: a leaking control: the arm without memory was shown a memory in case {row.case}."
            break
    worlds = {row.world for row in report.rows}
    for arm, met in fillings.items():
        if met & worlds:
            yield f"{name}: a leaking control: the memory of {arm} has learned from tasks of this stream."
    yield from (f"{name}: a wrong baseline: {fault}" for fault in _baseline(report))
    controls = [arm.name for arm in report.choice.arms if arm.control == "stale"]
    for arm in report.choice.arms:
        if arm.plugin and not arm.control:
            equal = (arm.name, f"{arm.name}-stale")
            if len({row.recalled_tokens for row in report.rows if row.arm in equal and row.position == 1}) > 1:
                yield f"{name}: {arm.name} begins with what it learned in another arm or order: it is shared by them."
    for control in controls if WHOLE.search(name) else ():
        found = difference([row for row in report.rows if row.phase > 1], control, NONE)
        if found and found.value > 0 and found.p is not None and found.p * len(controls) < 1 - LEVEL:
            yield (
                f"{name}: a stale world: {control} scored {found.value:+.3f} more than no memory after the change, "
                "with what it learned before: the change changed nothing."
            )


def _baseline(report: StreamReport) -> Iterator[str]:
    """Where the arm without memory did not meet the same cases in the same worlds, or is not the same in each order."""
    rows = [row for row in report.rows if row.status != "error"]
    worlds, scores = defaultdict[str, set[str]](set), defaultdict[str, set[float | None]](set)
    for row in rows:
        if row.arm == NONE:
            worlds[row.case].add(row.world)
            scores[row.case].add(row.score)
    for row in rows:
        if row.case not in worlds:
            yield f"it lacks case {row.case}."
            return
        if worlds[row.case] != {row.world}:
            yield f"in case {row.case} it ran in a different world from {row.arm}."
            return
    if report.scripted and (changed := [case for case, values in scores.items() if len(values) > 1]):
        yield f"case {changed[0]} has a different score in other orders: it remembers something."


# --- page -----------------------------------------------------------------------------------------------------------


_NOTE = (
    "Gain: (score with memory - score without) / (1 - score without). Other world: the score minus the score without "
    "memory, if the memory learned from tasks of another world. After the change: the same for the tasks after all "
    "facts changed, if the memory learned nothing after the change. Below 0, the memory did harm. All with a 95 % "
    "interval. Recalled: tokens per case. Definitions: mulligan docs exam"
)
_SESSIONS = (
    "Failed: commands that failed in your sessions. Known: an earlier session had overcome the same error (by the "
    "rules of hooks, for all rows). Shown: the memory showed something at the failure; needless: nothing was known. "
    "Done: the session then successfully ran a command that had been shown."
)


def exam_page(report: ExamReport) -> list[Block]:
    first = report.streams[0]
    scripted = next((stream.scripted for stream in report.streams if stream.scripted), "")
    facts = {
        "Streams": ", ".join(f"{_name(stream)} ({stream.run.id})" for stream in report.streams),
        "Model": ", ".join(dict.fromkeys(stream.model or UNKNOWN for stream in report.streams)),
        "Cases": f"{max((row.position for row in first.rows), default=0)} of each stream",
        "Orders": str(first.choice.orders),
    }
    blocks: list[Block] = [Heading(1, "Exam of memories")]
    blocks += [Line(strong=scripted.upper())] if scripted else []
    blocks += [Facts(facts), Heading(2, "Checks")]
    blocks += [Line(fault) for fault in report.faults] or [Line("No faults were found.")]
    blocks += [
        Heading(2, "Memories"),
        _memories(report),
        *(Line(f"{one.memory} failed: {one.failure}") for one in report.memories if one.failure),
        Line(_NOTE),
        Heading(2, "Gain in each stream"),
        _gains(report),
    ]
    if report.sessions:
        blocks += [Heading(2, "Your own sessions"), _replayed(report.sessions), Line(_SESSIONS)]
    return blocks


def _with_interval(one: Estimate | None) -> str:
    if one is None:
        return EMPTY
    return f"{one.value:+.3f}" + ("" if one.low is None else f" ({one.low:+.3f} to {one.high:+.3f})")


def _memories(report: ExamReport) -> Table:
    rows = [
        [
            *(one.memory, _with_interval(one.gain), _with_interval(one.transfer), _with_interval(one.stale)),
            *(f"{one.tokens:,.0f}", str(one.errors)),
        ]
        for one in report.memories
    ]
    return Table(["memory", "gain", "other world", "after the change", "recalled", "errors"], rows)


def _gains(report: ExamReport) -> Table:
    names = [_name(stream) for stream in report.streams]
    rows = [[one.memory, *(_with_interval(one.gains[name]) for name in names)] for one in report.memories]
    return Table(["memory", *names], rows)


def _replayed(sessions: Mapping[str, Exam]) -> Table:
    rows = [
        [
            *(name, str(one.sessions), str(one.failures), str(one.known), str(rate(one.shown, one.failures))),
            *(str(one.needless), str(rate(one.done, one.shown))),
        ]
        for name, one in sessions.items()
    ]
    return Table(["memory", "sessions", "failed", "known", "shown", "needless", "done"], rows)
