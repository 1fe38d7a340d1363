"""The report of a proof of the lessons of hooks: means of each arm, paired differences, and cautions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from statistics import fmean

from mulligan.bench.harness.proof import ARMS, Arm, Plan, Row
from mulligan.bench.report.cells import interval_of, number
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
"""What is compared, by its name in tables. Except for the first, less is better."""


@dataclass(frozen=True)
class ProofArm:
    """The figures of an arm.

    Attributes:
        means: the mean of each measure that is known.
        shown: the number of lessons that were shown.
        with_lessons: the number of runs in which a lesson was shown.
        halted: the number of runs that did not end well.
        swallowed: the number of errors that hooks hid from the agent.
    """

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
    """The report of a proof, which may be unfinished.

    Attributes:
        planned: the number of all runs.
        differences: treatment minus control, by measure, over the tasks that have both.
        counts: how many tasks each arm solved. None: a task has several runs in each arm.
        clusters: what values are clustered by: "family" or "task".
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
            "arms": [asdict(arm) for arm in self.arms],
            "differences": {name: asdict(estimate) for name, estimate in self.differences.items()},
            "counts": asdict(self.counts) if self.counts else None,
            "clusters": self.clusters,
            "verdict": verdict(self),
        }


def proof_report(plan: Plan, rows: Sequence[Row]) -> ProofReport:
    """The report of the rows. Repetitions of a task count in a difference if both arms have ended."""
    by_task = ([row for row in rows if row.task == task.name] for task in plan.tasks)
    paired_tasks = [pairs for task_rows in by_task if (pairs := _pairs(task_rows))]
    families = [pairs[0][0].family for pairs in paired_tasks]
    tasks = [pairs[0][0].task for pairs in paired_tasks]
    clusters_of_tasks = groups(families, tasks)
    differences = dict[str, Estimate]()
    for name, measure in MEASURES.items():
        values = [_difference(pairs, measure) for pairs in paired_tasks]
        known = [(value, of) for value, of in zip(values, clusters_of_tasks, strict=True) if value is not None]
        if known:
            most = 1.0 if name == SOLVED else inf
            differences[name] = clustered([value for value, _ in known], [of for _, of in known], most=most)
    counts = None
    if paired_tasks and plan.repeats == 1:
        verdicts = [(without.solved, with_.solved) for ((without, with_),) in paired_tasks]
        outcomes = ((True, True), (True, False), (False, True), (False, False))
        counts = paired(*map(verdicts.count, outcomes))
    clusters = "family" if len(set(families)) >= FEW and len(set(families)) < len(tasks) else "task"
    arms = tuple(_arm(arm, [row for row in rows if row.arm == arm]) for arm in ARMS)
    return ProofReport(plan, sum(1 for _ in plan.runs()), tuple(rows), arms, differences, counts, clusters)


def _pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """The rows of a task without the bank and with it, for each repetition that has both."""
    control, treatment = ({row.repeat: row for row in rows if row.arm == arm} for arm in ARMS)
    return [(control[n], treatment[n]) for n in sorted(control.keys() & treatment.keys())]


def _difference(pairs: Sequence[tuple[Row, Row]], measure: Callable[[Row], float | None]) -> float | None:
    """The mean difference of a measure over the repetitions of a task. None: unknown."""
    values = [(measure(without), measure(with_)) for without, with_ in pairs]
    known = [after - before for before, after in values if before is not None and after is not None]
    return fmean(known) if known else None


def _arm(arm: Arm, rows: Sequence[Row]) -> ProofArm:
    measured = {name: [measure(row) for row in rows] for name, measure in MEASURES.items()}
    known = {name: [value for value in values if value is not None] for name, values in measured.items()}
    return ProofArm(
        arm,
        runs=len(rows),
        solved=rate(sum(row.solved for row in rows), len(rows)),
        means={name: fmean(values) for name, values in known.items() if values},
        shown=sum(row.shown for row in rows),
        with_lessons=sum(row.shown > 0 for row in rows),
        halted=sum(bool(row.halted) for row in rows),
        swallowed=sum(row.swallowed for row in rows),
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
        if counts := report.counts:
            blocks.append(
                Line(
                    f"Tasks solved in both arms: {counts.both}; only with the bank: {counts.only_b}; only without: "
                    f"{counts.only_a}; in neither: {counts.neither}. Exact McNemar test: p = {counts.p:.3g}."
                )
            )
    return [*blocks, *(Line(sentence) for sentence in (*verdict(report), *_cautions(report)))]


def _arms(report: ProofReport) -> Table:
    others = [name for name in MEASURES if name != SOLVED]
    rows = list[list[str]]()
    for arm in report.arms:
        solved = [number(arm.solved.value, ".0%"), interval_of(arm.solved, ".0%")]
        means = [number(arm.means.get(name), ".1f") for name in others]
        rows.append([arm.arm, str(arm.runs), *solved, *means, str(arm.shown)])
    return Table(["arm", "runs", "solved", "95 % interval", *others, "lessons shown"], rows)


def _compared(report: ProofReport) -> Table:
    columns = ["measure", "difference", "95 % interval", "p", "n", "clusters", "could show"]
    rows = list[list[str]]()
    for name, estimate in report.differences.items():
        interval = interval_of(estimate, "+.2f")
        row = [name, f"{estimate.value:+.2f}", interval, number(estimate.p, ".3g")]
        rows.append([*row, str(estimate.n), str(estimate.clusters), number(estimate.detectable, ".2f")])
    return Table(columns, rows)


def verdict(report: ProofReport) -> list[str]:
    """What the report says about solved tasks, in sentences."""
    solved = report.differences.get(SOLVED)
    if solved is None or solved.p is None:
        return ["There are too few tasks with runs in both arms for a comparison."]
    if solved.p < 0.05:
        more = "more" if solved.value > 0 else "fewer"
        interval = interval_of(solved, "+.0%")
        return [f"With the bank, {more} tasks are solved: {solved.value:+.0%} of all, {interval} (p = {solved.p:.2g})."]
    least = solved.detectable or (paired_detectable(report.counts) if report.counts else None)
    could = (
        f"These tasks could have shown one of {least:.0%} or more; they cannot show a smaller one. " if least else ""
    )
    return [
        f"No difference in solved tasks was shown. {could}More tasks can show smaller differences: mulligan "
        "bench plan --difference D."
    ]


def _cautions(report: ProofReport) -> list[str]:
    """What limits the value of the figures, in sentences."""
    control, treatment = report.arms
    sentences = list[str]()
    if treatment.runs and not treatment.shown:
        sentences.append(
            "No lesson was shown, because no run met an error that the bank knows. The comparison therefore says "
            "nothing about the lessons."
        )
    elif treatment.with_lessons < treatment.runs:
        sentences.append(f"Lessons were shown in {treatment.with_lessons} of {treatment.runs} runs with the bank.")
    if silent := sum(not row.hooked for row in report.rows):
        sentences.append(f"In {count(silent, 'run')} the agent called no hook.")
    if halted := control.halted + treatment.halted:
        sentences.append(
            f"{count(halted, 'run')} did not finish normally ({control.halted} of them without the bank); see runs.csv."
        )
    if swallowed := control.swallowed + treatment.swallowed:
        sentences.append(
            f"Hooks kept {count(swallowed, 'error')} from the agent, such as a timeout: a lesson may be missing there."
        )
    return sentences
