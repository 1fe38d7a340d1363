"""The report of an exam: the gain and harm of each memory, with intervals, and the faults that its checks found."""

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
from mulligan.bench.report.cells import EMPTY, UNKNOWN, interval_of
from mulligan.bench.report.figures import read_run
from mulligan.bench.report.statistics import Estimate
from mulligan.bench.report.stream import Row, StreamReport, difference, gain_of, read_stream, world_of
from mulligan.core.protocols import Store
from mulligan.core.rates import LEVEL, rate
from mulligan.core.records import Json
from mulligan.text.pages import Block, Facts, Heading, Line, Table
from mulligan.text.plain import count

ALL_FACTS_CHANGE = re.compile(r"\b(?:database|game)\b")
"""The streams in which all facts change, so that nothing learned before the change can help after it."""


@dataclass(frozen=True)
class MemoryFigures:
    """The figures of one memory over all streams.

    Attributes:
        gain: the gain over no memory.
        gains: the gain in each stream.
        transfer: the difference in score with a memory of another world. Below 0, it did harm.
        stale: the difference in score after all facts changed, with a memory that stopped learning before. Below 0, it
            did harm.
        tokens: the mean number of recalled tokens per case.
        errors: the number of cases that ended with an error.
        failure: the error of the first of them; "": there is none.
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
    """The report of an exam.

    Attributes:
        faults: what the checks found. If there are any, the figures cannot be trusted.
        sessions: for each memory that was tried on the user's own sessions, the result.
    """

    streams: Sequence[StreamReport]
    memories: Sequence[MemoryFigures]
    faults: Sequence[str]
    sessions: Mapping[str, Exam]

    def to_json(self) -> Json:
        streams = [report.to_json() for report in self.streams]
        memories = [asdict(figures) for figures in self.memories]
        replayed = {name: asdict(exam) for name, exam in self.sessions.items()}
        return {"schema": 1, "faults": [*self.faults], "memories": memories, "sessions": replayed, "streams": streams}


async def read_exam(store: Store, ids: Sequence[str], sessions: Mapping[str, Exam] = {}) -> ExamReport:
    """The report of these streams. Raises `NotFound`, and `InvalidInput` for a run that is not a stream."""
    streams = [await read_stream(store, id) for id in ids]
    rows = [row for report in streams for row in report.rows]
    memories = [arm.name for arm in streams[0].choice.arms if arm.memory is not None and not arm.control]
    figures = [_figures(streams, rows, memory) for memory in memories]
    faults = [fault for report in streams for fault in find_faults(report, await filling_worlds(store, report))]
    return ExamReport(streams, figures, faults, sessions)


def _figures(streams: Sequence[StreamReport], rows: Sequence[Row], memory: str) -> MemoryFigures:
    of_memory = [row for row in rows if row.arm == memory]
    changed = [report for report in streams if ALL_FACTS_CHANGE.search(_name(report))]
    after_change = [row for report in changed for row in report.rows if row.phase > 1]
    return MemoryFigures(
        memory,
        gain=gain_of(rows, memory),
        gains={_name(report): gain_of(report.rows, memory) for report in streams},
        transfer=difference(rows, f"{memory}-unrelated", NONE),
        stale=difference(after_change, f"{memory}-stale", NONE),
        tokens=fmean(row.recalled_tokens for row in of_memory),
        errors=sum(row.status == "error" for row in of_memory),
        failure=next((row.error for row in of_memory if row.error), ""),
    )


def _name(report: StreamReport) -> str:
    return report.run.benchmark.removeprefix(STREAM)


# --- checks ---------------------------------------------------------------------------------------------------------


async def filling_worlds(store: Store, report: StreamReport) -> Mapping[str, set[str]]:
    """For each unrelated control, the worlds of the tasks that its memory learned from."""
    worlds = dict[str, set[str]]()
    for arm in report.choice.arms:
        run = f"{report.run.id}-{arm.name}-filling"
        if arm.control == "unrelated" and await run_with_id(store, run):
            episodes = (await read_run(store, run)).episodes.values()
            worlds[arm.name] = {world_of(episode) for episode in episodes}
    return worlds


def find_faults(report: StreamReport, fillings: Mapping[str, set[str]] = {}) -> Iterator[str]:
    """Sentences about what makes the figures of a stream wrong. fillings: see `filling_worlds`."""
    name = _name(report)
    if report.ended < report.legs:
        yield f"{name}: unfinished: {report.ended} of {count(report.legs, 'leg')}."
    for row in report.rows:
        if row.arm == NONE and row.recalled_tokens:
            yield f"{name}: a leaking control: the arm without memory was shown a memory in case {row.case}."
            break
    worlds = {row.world for row in report.rows}
    for arm, learned_worlds in fillings.items():
        if learned_worlds & worlds:
            yield f"{name}: a leaking control: the memory of {arm} has learned from tasks of this stream."
    yield from (f"{name}: a wrong baseline: {fault}" for fault in _baseline_faults(report))
    controls = [arm.name for arm in report.choice.arms if arm.control == "stale"]
    for arm in report.choice.arms:
        if arm.plugin and not arm.control:
            same_start = (arm.name, f"{arm.name}-stale")
            if len({row.recalled_tokens for row in report.rows if row.arm in same_start and row.position == 1}) > 1:
                yield f"{name}: {arm.name} begins with what it learned in another arm or order: they share it."
    after_change = [row for row in report.rows if row.phase > 1]
    for control in controls if ALL_FACTS_CHANGE.search(name) else ():
        gain = difference(after_change, control, NONE)
        if gain and gain.value > 0 and gain.p is not None and gain.p * len(controls) < 1 - LEVEL:
            yield (
                f"{name}: a stale world: {control} scored {gain.value:+.3f} more than no memory after the change, "
                "with what it learned before: the change changed nothing."
            )


def _baseline_faults(report: StreamReport) -> Iterator[str]:
    """Checks that the arm without memory had the same cases in the same worlds, and the same scores in all orders."""
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
    "rules of hooks, for all rows). Shown: the memory showed something after the failure; needless: nothing was known. "
    "Done: the session then successfully ran a command that had been shown."
)


def exam_page(report: ExamReport) -> list[Block]:
    """The report as a page."""
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
    blocks += [Line(fault) for fault in report.faults] or [Line("No problems were found.")]
    blocks += [
        Heading(2, "Memories"),
        _memories(report),
        *(Line(f"{memory.memory} failed: {memory.failure}") for memory in report.memories if memory.failure),
        Line(_NOTE),
        Heading(2, "Gain in each stream"),
        _gains(report),
    ]
    if report.sessions:
        blocks += [Heading(2, "Your own sessions"), _replayed(report.sessions), Line(_SESSIONS)]
    return blocks


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return EMPTY
    return f"{estimate.value:+.3f}" + ("" if estimate.low is None else f" ({interval_of(estimate, '+.3f')})")


def _memories(report: ExamReport) -> Table:
    rows = list[list[str]]()
    for memory in report.memories:
        estimates = [_with_interval(estimate) for estimate in (memory.gain, memory.transfer, memory.stale)]
        rows.append([memory.memory, *estimates, f"{memory.tokens:,.0f}", str(memory.errors)])
    return Table(["memory", "gain", "other world", "after the change", "recalled", "errors"], rows)


def _gains(report: ExamReport) -> Table:
    names = [_name(stream) for stream in report.streams]
    rows = [[memory.memory, *(_with_interval(memory.gains[name]) for name in names)] for memory in report.memories]
    return Table(["memory", *names], rows)


def _replayed(sessions: Mapping[str, Exam]) -> Table:
    rows = list[list[str]]()
    for name, exam in sessions.items():
        shown, done = str(rate(exam.shown, exam.failures)), str(rate(exam.done, exam.shown))
        counts = [str(exam.sessions), str(exam.failures), str(exam.known)]
        rows.append([name, *counts, shown, str(exam.needless), done])
    return Table(["memory", "sessions", "failed", "known", "shown", "needless", "done"], rows)
