"""What a proof of the lessons of hooks shows: means of each arm, paired differences, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from statistics import fmean

from mulligan.bench.harness.proof import ARMS, Arm, Plan, Row
from mulligan.bench.report.page import NONE as EMPTY
from mulligan.bench.report.statistics import FEW, Estimate, clustered, groups, paired_detectable
from mulligan.core.rates import Paired, Rate, paired, rate
from mulligan.core.records import Json
from mulligan.text.pages import Block, Facts, Heading, Line, Table
from mulligan.text.plain import count

SOLVED = "solved"
MEASURES: Mapping[str, Callable[[Row], float | None]] = {
    SOLVED: lambda row: float(row.solved),
    "failed calls": lambda row: row.failed,
    "same error again": lambda row: row.again,
    "calls": lambda row: row.calls,
    "seconds": lambda row: row.seconds,
    "tokens": lambda row: row.tokens,
}
"""What is compared. Of all but the first, less is better."""


@dataclass(frozen=True)
class ProofArm:
    """One arm. means: of each measure that is known. shown: lessons, in all."""

    arm: Arm
    runs: int
    solved: Rate
    means: Mapping[str, float]
    shown: int
    with_lessons: int
    halted: int
    swallowed: int


@dataclass(frozen=True)
class ProofReport:
    """A proof so far.

    Attributes:
        planned: runs in all.
        differences: treatment less control, by measure, over the tasks that have both; the error is clustered.
        counts: of the tasks with one run in each arm.
        clusters: what values go together in: "family" or "task".
    """

    plan: Plan
    planned: int
    rows: tuple[Row, ...]
    arms: tuple[ProofArm, ...]
    differences: Mapping[str, Estimate]
    counts: Paired | None
    clusters: str

    def to_json(self) -> dict[str, Json]:
        return {
            "agent": self.plan.agent,
            "planned": self.planned,
            "ended": len(self.rows),
            "arms": [asdict(one) for one in self.arms],
            "differences": {name: asdict(one) for name, one in self.differences.items()},
            "counts": asdict(self.counts) if self.counts else None,
            "clusters": self.clusters,
            "verdict": verdict(self),
        }


def proof_report(plan: Plan, rows: Sequence[Row]) -> ProofReport:
    """The figures of the rows. A task counts in a difference where both arms have ended as often."""
    of_task = [[row for row in rows if row.task == task.name] for task in plan.tasks]
    pairs = [pair for its in of_task if (pair := _pairs(its))]
    families = [pair[0][0].family for pair in pairs]
    tasks = [pair[0][0].task for pair in pairs]
    by = groups(families, tasks)
    differences = dict[str, Estimate]()
    for name, measure in MEASURES.items():
        found = [_difference(pair, measure) for pair in pairs]
        known = [(value, cluster) for value, cluster in zip(found, by, strict=True) if value is not None]
        if known:
            most = 1.0 if name == SOLVED else inf
            differences[name] = clustered([value for value, _ in known], [cluster for _, cluster in known], most=most)
    counts = None
    if pairs and plan.repeats == 1:
        verdicts = [(without.solved, with_.solved) for ((without, with_),) in pairs]
        counts = paired(
            *(verdicts.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False)))
        )
    clusters = "family" if len(set(families)) >= FEW and len(set(families)) < len(tasks) else "task"
    arms = tuple(_arm(arm, [row for row in rows if row.arm == arm]) for arm in ARMS)
    return ProofReport(plan, sum(1 for _ in plan.runs()), tuple(rows), arms, differences, counts, clusters)


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """The runs of a task without the bank and with it, by repetition."""
    by = {(row.repeat, row.arm): row for row in rows}
    repeats = sorted({row.repeat for row in rows})
    return [(by[n, ARMS[0]], by[n, ARMS[1]]) for n in repeats if (n, ARMS[0]) in by and (n, ARMS[1]) in by]


def _difference(pairs: Sequence[tuple[Row, Row]], measure: Callable[[Row], float | None]) -> float | None:
    values = [(measure(without), measure(with_)) for without, with_ in pairs]
    known = [after - before for before, after in values if before is not None and after is not None]
    return fmean(known) if known else None


def _arm(arm: Arm, rows: Sequence[Row]) -> ProofArm:
    known = {name: [value for row in rows if (value := of(row)) is not None] for name, of in MEASURES.items()}
    return ProofArm(
        arm,
        len(rows),
        rate(sum(row.solved for row in rows), len(rows)),
        {name: fmean(values) for name, values in known.items() if values},
        sum(row.shown for row in rows),
        sum(row.shown > 0 for row in rows),
        sum(bool(row.halted) for row in rows),
        sum(row.swallowed for row in rows),
    )


# --- page -----------------------------------------------------------------------------------------------------------


def proof_page(report: ProofReport) -> list[Block]:
    ended = "" if len(report.rows) == report.planned else f"unfinished: {len(report.rows)} of {report.planned} runs"
    facts = {
        "Agent": report.plan.agent,
        "Tasks": f"{len(report.plan.tasks)}, {report.plan.repeats} in each arm",
        "Bank": ", ".join(dict.fromkeys(task.bank for task in report.plan.tasks)),
        "Seed": str(report.plan.seed),
        "Ended": ended,
    }
    blocks: list[Block] = [Heading(1, "Do the lessons of hooks help?"), Facts(facts), _arms(report)]
    if report.differences:
        blocks += [Heading(2, "With the bank minus without"), _compared(report)]
        blocks.append(
            Line(
                f"The same tasks in both arms; 95 % intervals, clustered by {report.clusters}. Could show: the "
                "smallest difference found with a power of 80 %."
            )
        )
        if report.counts:
            one = report.counts
            blocks.append(
                Line(
                    f"Tasks solved in both arms: {one.both}; only with the bank: {one.only_b}; only without: "
                    f"{one.only_a}; in neither: {one.neither}. Exact McNemar test: p = {one.p:.3g}."
                )
            )
    return [*blocks, *(Line(sentence) for sentence in (*verdict(report), *_cautions(report)))]


def _arms(report: ProofReport) -> Table:
    columns = ["arm", "runs", "solved", "95 % interval", *list(MEASURES)[1:], "lessons shown"]
    rows = [
        [
            *(one.arm, str(one.runs), _number(one.solved.value, ".0%"), _range(one.solved.low, one.solved.high, ".0%")),
            *(_number(one.means.get(name), ".1f") for name in list(MEASURES)[1:]),
            str(one.shown),
        ]
        for one in report.arms
    ]
    return Table(columns, rows)


def _compared(report: ProofReport) -> Table:
    columns = ["measure", "difference", "95 % interval", "p", "n", "clusters", "could show"]
    rows = [
        [
            *(name, f"{one.value:+.2f}", _range(one.low, one.high, "+.2f"), _number(one.p, ".3g")),
            *(str(one.n), str(one.clusters), _number(one.detectable, ".2f")),
        ]
        for name, one in report.differences.items()
    ]
    return Table(columns, rows)


def _number(value: float | None, form: str) -> str:
    return EMPTY if value is None else format(value, form)


def _range(low: float | None, high: float | None, form: str) -> str:
    return EMPTY if low is None or high is None else f"{low:{form}} to {high:{form}}"


def verdict(report: ProofReport) -> list[str]:
    """What the figures say of solved tasks, in sentences."""
    found = report.differences.get(SOLVED)
    if found is None or found.p is None:
        return ["There are too few tasks with both arms to compare them."]
    if found.p < 0.05:
        which = "more" if found.value > 0 else "fewer"
        reach = _range(found.low, found.high, "+.0%")
        return [f"With the bank, {which} tasks are solved: {found.value:+.0%} of all, {reach} (p = {found.p:.2g})."]
    least = found.detectable or (paired_detectable(report.counts) if report.counts else None)
    could = (
        f"These tasks could have shown one of {least:.0%} or more; they cannot show a smaller one. " if least else ""
    )
    return [
        f"No difference in solved tasks was shown. {could}More tasks can show smaller differences: mulligan "
        "bench plan --difference D."
    ]


def _cautions(report: ProofReport) -> list[str]:
    """What takes from the figures, in sentences."""
    control, treatment = report.arms
    said = list[str]()
    if treatment.runs and not treatment.shown:
        said.append(
            "No lesson was shown, because no run met an error that the bank knows. So this says nothing about the "
            "lessons."
        )
    elif treatment.with_lessons < treatment.runs:
        said.append(f"Lessons were shown in {treatment.with_lessons} of {treatment.runs} runs with the bank.")
    if silent := sum(not row.hooked for row in report.rows):
        said.append(f"In {count(silent, 'run')} the agent called no hook.")
    if halted := control.halted + treatment.halted:
        said.append(
            f"{count(halted, 'run')} did not end well ({control.halted} of them without the bank); see runs.csv."
        )
    if swallowed := control.swallowed + treatment.swallowed:
        said.append(
            f"Hooks kept {count(swallowed, 'error')} from the agent, such as a timeout: a lesson may be missing there."
        )
    return said
