"""The report of a stream: a row for each case, and from the rows gain, differences, learning curves and recovery.

Scores are shares of a case's maximum, so the best is 1. Gain is that of Continual Learning Bench:
(with memory - without) / (1 - without). Cases that ended with an error, or have no score, are excluded from all means.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from mulligan.bench.harness.plan import STREAM
from mulligan.bench.harness.running import run_with_id
from mulligan.bench.harness.stream import NONE, Leg, StreamChoice, legs_of, stream_record
from mulligan.bench.report.about import about
from mulligan.bench.report.cells import UNKNOWN, dollars, interval_of, number
from mulligan.bench.report.figures import read_run
from mulligan.bench.report.statistics import FEW, Estimate, clustered, groups, holm
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.codec import digest
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Json
from mulligan.text.charts import Chart, Curve, Point, counting_ticks
from mulligan.text.pages import Block, Facts, Heading, Line, Picture, Table
from mulligan.text.plain import count
from mulligan.text.truncate import estimate as tokens_of

REFERENCES = (NONE, "history")
"""The arms that the others are compared with, if they are in the stream."""
WINDOW, SHARE = 3, 0.9
"""An arm has recovered when the mean score of WINDOW tasks in a row reaches SHARE of the score before the drift."""
STRETCHES = 5
"""The number of parts of a stream for which the mean score is reported."""


@dataclass(frozen=True)
class Row:
    """One case of one leg; the columns of the CSV. None: unknown.

    Attributes:
        reward: the benchmark's own points.
        score: the share of the maximum, 0 to 1.
        tokens_in, tokens_out, calls: used by the episodes.
        memory_tokens_in, memory_tokens_out, memory_calls: used by the bank's model.
        cost: of both, in US dollars.
        recalled: the number of entries that were shown.
        recalled_tokens: the estimated tokens of their text.
        world: see `world_of`. It is the same in all arms.
        error: the error that the case ended with, if any.
    """

    arm: str
    order: int
    position: int
    case: str
    family: str
    phase: int
    seed: int
    status: str
    reward: float | None
    score: float | None
    success: bool | None
    trials: int
    steps: int
    tokens_in: int
    tokens_out: int
    memory_tokens_in: int
    memory_tokens_out: int
    calls: int
    memory_calls: int
    cost: float | None
    recalled: int
    recalled_tokens: int
    episode: str
    world: str = ""
    error: str = ""

    @property
    def tokens(self) -> int:
        """All tokens, including those of the memory."""
        return self.tokens_in + self.tokens_out + self.memory_tokens_in + self.memory_tokens_out


@dataclass(frozen=True)
class ArmFigures:
    """The means of an arm over the cases of all orders.

    Attributes:
        gain: None: for the arm without memory, and if nothing was left to gain.
        every: pass^k, where k is the number of orders: the share of cases that were solved in all of them.
        stretches: the mean score in each part of the stream.
    """

    arm: str
    cases: int
    errors: int
    score: float | None
    reward: float | None
    success: float | None
    every: float | None
    gain: Estimate | None
    tokens: float | None
    memory_tokens: float | None
    recalled_tokens: float | None
    recalled: float | None
    steps: float | None
    cost: float | None
    stretches: Sequence[float | None]


@dataclass(frozen=True)
class EqualTokens:
    """Two arms compared with the tokens of the cheaper one: in each order, cases that an arm did not finish within this
    limit score 0.

    Attributes:
        tokens, reference_tokens: the mean tokens of a case, without the limit.
        finished, reference_finished: the share of the cases that each arm finished within the limit.
        difference: the difference between the scores.
        p: corrected for the number of comparisons (Holm).
    """

    tokens: float
    reference_tokens: float
    finished: float
    reference_finished: float
    difference: Estimate
    p: float | None = None


@dataclass(frozen=True)
class Difference:
    """The score of `arm` minus the score of `reference`, on the same cases in the same orders.

    p: corrected for the number of comparisons (Holm).
    """

    arm: str
    reference: str
    difference: Estimate
    p: float | None
    equal_tokens: EqualTokens


@dataclass(frozen=True)
class Recovery:
    """How fast an arm recovered after a drift.

    Attributes:
        position: the first case after the drift.
        before: the mean score in the phase before.
        left: the number of tasks in the phase after.
        tasks: the number of tasks until the arm had recovered. None: it did not recover.
    """

    arm: str
    position: int
    before: float
    left: int
    tasks: int | None


@dataclass(frozen=True)
class StreamReport:
    """The report of a stream.

    Attributes:
        clusters: what scores are clustered by: "family" or "case".
        ended, legs: the number of legs that have ended, and of all legs.
        scripted: see `About`.
    """

    run: BenchRun
    choice: StreamChoice
    rows: Sequence[Row]
    arms: Sequence[ArmFigures]
    differences: Sequence[Difference]
    recoveries: Sequence[Recovery]
    clusters: str
    ended: int
    legs: int
    model: str
    scripted: str

    def to_json(self) -> Json:
        """The report without the rows, which are in the CSV."""
        return {
            "schema": 1,
            "stream": self.run.id,
            "benchmark": self.choice.base.benchmark,
            "seed": self.choice.base.seed,
            "legs": self.legs,
            "ended": self.ended,
            "model": self.model,
            "scripted": self.scripted,
            "clusters": self.clusters,
            "arms": [asdict(arm) for arm in self.arms],
            "differences": [asdict(difference) for difference in self.differences],
            "recoveries": [asdict(recovery) for recovery in self.recoveries],
        }


async def read_stream(store: Store, id: str) -> StreamReport:
    """The report of a stream, which may be unfinished. Raises `NotFound`, and `InvalidInput` for a single run."""
    run = await stream_record(store, id)
    choice, rows, ended = StreamChoice.of(run.options), list[Row](), 0
    models, scripted = dict[str, None](), ""
    legs = legs_of(run.id, choice)
    for leg in legs:
        if await run_with_id(store, leg.run) is None:
            continue
        recorded = await read_run(store, leg.run)
        about_leg = about(recorded.run, recorded.episodes.values())
        models |= dict.fromkeys(about_leg.models.values())
        scripted = scripted or about_leg.scripted
        ended += len(recorded.results) == len(recorded.run.cases)
        rows += [_row(leg, choice.base.seed, result, recorded.episodes) for result in recorded.results]
    names = [arm.name for arm in choice.arms]
    rows.sort(key=lambda row: (names.index(row.arm), row.order, row.position))
    families, cases = {row.family for row in rows}, {row.case for row in rows}
    return StreamReport(
        run,
        choice,
        rows,
        arms=[_figures(rows, name, choice.orders) for name in names],
        differences=differences(rows, names),
        recoveries=_recoveries(rows, names),
        clusters="family" if FEW <= len(families) < len(cases) else "case",
        ended=ended,
        legs=len(legs),
        model=", ".join(models),
        scripted=scripted,
    )


def _row(leg: Leg, seed: int, result: CaseResult, episodes: Mapping[str, Episode]) -> Row:
    mark = result.episodes[0] if result.episodes else None
    episode = episodes.get(mark.episode) if mark else None
    score = mark.score if mark and result.status != "error" else None
    rewards = mark.parts.get("reward", ()) if mark else ()
    reward = rewards[-1] if rewards and score is not None else score
    trials = episode.trials if episode else ()
    recall = episode.recall if episode else None
    return Row(
        arm=leg.arm.name,
        order=leg.order,
        position=result.position,
        case=result.case,
        family=result.family,
        phase=result.phase,
        seed=seed,
        status=result.status,
        reward=reward,
        score=score,
        success=None if score is None else score == 1,
        trials=len(trials),
        steps=sum(len(trial.attempt.steps) or 1 for trial in trials),
        tokens_in=result.usage.input_tokens,
        tokens_out=result.usage.output_tokens,
        memory_tokens_in=result.memory.input_tokens,
        memory_tokens_out=result.memory.output_tokens,
        calls=result.usage.calls,
        memory_calls=result.memory.calls,
        cost=(result.usage + result.memory).cost,
        recalled=len(recall.lessons) + len(recall.episodes) if recall else 0,
        recalled_tokens=tokens_of(recall.formatted_prompt) if recall and recall.formatted_prompt else 0,
        episode=mark.episode if mark else "",
        world=world_of(episode) if episode else "",
        error=result.text if result.status == "error" else "",
    )


def world_of(episode: Episode) -> str:
    """A digest of the task, and of the settings of its environment and evaluator."""
    settings: Mapping[str, Json] = episode.head.settings if episode.head else {}
    return digest([episode.task.prompt, settings.get("environment"), settings.get("evaluator")])[:8]


# --- figures --------------------------------------------------------------------------------------------------------


def _mean(rows: Sequence[Row], measure: Callable[[Row], float | None]) -> float | None:
    """The mean of the known values. None: no value is known."""
    values = [value for row in rows if (value := measure(row)) is not None]
    return fmean(values) if values else None


def _figures(rows: Sequence[Row], arm: str, orders: int) -> ArmFigures:
    ours = [row for row in rows if row.arm == arm]
    last = max((row.position for row in ours), default=0)
    costs = [row.cost for row in ours]
    return ArmFigures(
        arm,
        cases=len(ours),
        errors=sum(row.status == "error" for row in ours),
        score=_mean(ours, lambda row: row.score),
        reward=_mean(ours, lambda row: row.reward),
        success=_mean(ours, lambda row: row.success),
        every=_solved_in_all(ours, orders),
        gain=gain_of(rows, arm) if arm != NONE else None,
        tokens=_mean(ours, lambda row: row.tokens),
        memory_tokens=_mean(ours, lambda row: row.memory_tokens_in + row.memory_tokens_out),
        recalled_tokens=_mean(ours, lambda row: row.recalled_tokens),
        recalled=_mean(ours, lambda row: row.recalled),
        steps=_mean(ours, lambda row: row.steps),
        cost=None if None in costs else sum(cost or 0.0 for cost in costs),
        stretches=[
            _mean([row for row in ours if (row.position - 1) * STRETCHES // last == n], lambda row: row.score)
            for n in range(STRETCHES)
        ],
    )


def _solved_in_all(rows: Sequence[Row], orders: int) -> float | None:
    """The share of the cases with a verdict in each order that were solved in all orders."""
    verdicts = dict[str, list[bool]]()
    for row in rows:
        if row.success is not None:
            verdicts.setdefault(row.case, []).append(row.success)
    complete = [all(solved) for solved in verdicts.values() if len(solved) == orders]
    return fmean(complete) if complete else None


@dataclass(frozen=True)
class _Pair:
    """The scores of one case in one order, in two arms."""

    order: int
    case: str
    family: str
    score: float
    reference: float


def _pairs(rows: Sequence[Row], arm: str, reference: str) -> list[_Pair]:
    scores = {(row.order, row.case): row.score for row in rows if row.arm == reference}
    return [
        _Pair(row.order, row.case, row.family, row.score, other)
        for row in rows
        if row.arm == arm and row.score is not None and (other := scores.get((row.order, row.case))) is not None
    ]


def difference(rows: Sequence[Row], arm: str, reference: str) -> Estimate | None:
    """The score of `arm` minus that of `reference` in these rows. None: they have no case in common."""
    pairs = _pairs(rows, arm, reference)
    return _estimate(pairs) if pairs else None


def _estimate(pairs: Sequence[_Pair], slope: Sequence[float] | None = None) -> Estimate:
    """The mean difference of the pairs, clustered by family (or case), and by order if there are enough orders.

    slope: see `clustered`.
    """
    orders = [pair.order for pair in pairs]
    ways = [groups([pair.family for pair in pairs], [pair.case for pair in pairs])]
    ways += [orders] if len(set(orders)) >= FEW else []
    shares = slope is None and all(0 <= score <= 1 for pair in pairs for score in (pair.score, pair.reference))
    values = [pair.score - pair.reference for pair in pairs]
    return clustered(values, *ways, slope=slope, most=1.0 if shares else math.inf)


def gain_of(rows: Sequence[Row], arm: str) -> Estimate | None:
    """The gain of this arm over the arm without memory. None: nothing was left to gain."""
    pairs = _pairs(rows, arm, NONE)
    left = [1 - pair.reference for pair in pairs]
    return _estimate(pairs, left) if sum(left) > 0 else None


def _equal_tokens(rows: Sequence[Row], arm: str, reference: str, pairs: Sequence[_Pair]) -> EqualTokens:
    both = {(row.order, row.case) for row in rows if row.arm == arm}
    both &= {(row.order, row.case) for row in rows if row.arm == reference}
    ours, theirs = (
        [row for row in rows if row.arm == name and (row.order, row.case) in both] for name in (arm, reference)
    )
    limits = {order: min(spent_tokens(ours, order), spent_tokens(theirs, order)) for order, _ in both}
    finished, their_finished = finished_within(ours, limits), finished_within(theirs, limits)
    limited = [
        replace(
            pair,
            score=pair.score if (pair.order, pair.case) in finished else 0.0,
            reference=pair.reference if (pair.order, pair.case) in their_finished else 0.0,
        )
        for pair in pairs
    ]
    return EqualTokens(
        fmean(row.tokens for row in ours),
        fmean(row.tokens for row in theirs),
        len(finished) / len(both),
        len(their_finished) / len(both),
        _estimate(limited),
    )


def spent_tokens(rows: Sequence[Row], order: int) -> int:
    """All tokens of these rows in this order."""
    return sum(row.tokens for row in rows if row.order == order)


def finished_within(rows: Sequence[Row], limits: Mapping[int, int]) -> set[tuple[int, str]]:
    """The order and case of each row of an arm that ended within the limit of its order. limits: tokens by order."""
    used = dict.fromkeys(limits, 0)
    finished = set[tuple[int, str]]()
    for row in sorted(rows, key=lambda row: row.position):
        used[row.order] += row.tokens
        if used[row.order] <= limits[row.order]:
            finished.add((row.order, row.case))
    return finished


def differences(rows: Sequence[Row], arms: Sequence[str]) -> list[Difference]:
    """Each arm compared with each of the `REFERENCES` in the stream."""
    compared = list[Difference]()
    for place, reference in enumerate(name for name in REFERENCES if name in arms):
        for arm in arms:
            if arm == reference or arm in REFERENCES[:place]:
                continue
            if pairs := _pairs(rows, arm, reference):
                equal = _equal_tokens(rows, arm, reference, pairs)
                compared.append(Difference(arm, reference, _estimate(pairs), None, equal))
    ps = _corrected([one.difference for one in compared])
    equal_ps = _corrected([one.equal_tokens.difference for one in compared])
    return [
        replace(one, p=p, equal_tokens=replace(one.equal_tokens, p=equal_p))
        for one, p, equal_p in zip(compared, ps, equal_ps, strict=True)
    ]


def _corrected(estimates: Sequence[Estimate]) -> list[float | None]:
    """The p of each estimate, corrected for the number of estimates that have one (Holm)."""
    corrected = iter(holm([estimate.p for estimate in estimates if estimate.p is not None]))
    return [None if estimate.p is None else next(corrected) for estimate in estimates]


def _recoveries(rows: Sequence[Row], arms: Sequence[str]) -> list[Recovery]:
    starts = dict[int, int]()
    for row in rows:
        starts[row.phase] = min(row.position, starts.get(row.phase, row.position))
    recoveries = list[Recovery]()
    for before, phase in pairwise(sorted(starts)):
        for arm in arms:
            mean = _mean([row for row in rows if row.arm == arm and row.phase == before], lambda row: row.score)
            after = [row for row in rows if row.arm == arm and row.phase == phase]
            if mean is not None and after:
                start = starts[phase]
                left = max(row.position for row in after) - start + 1
                recoveries.append(Recovery(arm, start, mean, left, _tasks_to_recover(after, start, left, mean)))
    return recoveries


def _tasks_to_recover(rows: Sequence[Row], start: int, left: int, before: float) -> int | None:
    """See `Recovery.tasks`. rows: those of an arm in the phase after the drift, in all orders."""
    for n in range(max(1, left - WINDOW + 1)):
        window = [row for row in rows if start + n <= row.position < start + n + WINDOW]
        mean = _mean(window, lambda row: row.score)
        if mean is not None and mean >= SHARE * before - 1e-9:
            return n
    return None


# --- rows and curves ------------------------------------------------------------------------------------------------


def as_csv(rows: Sequence[Any], row: type[Any] = Row) -> str:
    """Records of the class `row` as CSV, with the names of the fields in the first line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(row)])
    writer.writerows(["" if cell is None else cell for cell in astuple(row)] for row in rows)
    return text.getvalue()


def learning_curves(report: StreamReport) -> Chart:
    """The mean score of the last cases, by position. The intervals are over the orders."""
    last = max((row.position for row in report.rows), default=1)
    width = max(1, last // 12)
    curves = list[Curve]()
    for figures in report.arms:
        ours = [row for row in report.rows if row.arm == figures.arm]
        points = list[Point]()
        for position in range(1, last + 1):
            near = [row for row in ours if position - width < row.position <= position]
            by_order = dict[int, list[Row]]()
            for row in near:
                by_order.setdefault(row.order, []).append(row)
            means = [_mean(rows, lambda row: row.score) for rows in by_order.values()]
            if known := [mean for mean in means if mean is not None]:
                points.append(_point(position, known))
        gain = f", gain {figures.gain.value:+.2f}" if figures.gain else ""
        curves.append(Curve(f"{figures.arm}{gain}", points))
    over = f"mean of the last {width} cases" if width > 1 else "mean"
    return Chart(
        name="stream",
        title=f"Score along the stream, {over} over the orders, with 95 % intervals",
        axis_label="case of the stream",
        ticks=counting_ticks(last),
        curves=curves,
        marks=[(position, "") for position in sorted({recovery.position - 0.5 for recovery in report.recoveries})],
    )


def _point(position: int, means: Sequence[float]) -> Point:
    """The mean of the means of some orders, with its interval if there are several."""
    value = fmean(means)
    estimate = clustered(means, range(len(means))) if len(means) > 1 else Estimate(value, 1, 1)
    ends = (value if end is None else end for end in (estimate.low, estimate.high))
    value, low, high = (min(1.0, max(0.0, share)) for share in (value, *ends))
    return Point(position, value, low, high)


# --- page -----------------------------------------------------------------------------------------------------------


def stream_page(report: StreamReport, picture: Picture | None = None) -> list[Block]:
    """The report as a page. picture: the learning curve."""
    choice, base = report.choice, report.choice.base
    unfinished = "" if report.ended == report.legs else f"unfinished: {report.ended} of {count(report.legs, 'leg')}"
    blocks: list[Block] = [Heading(1, f"Stream {report.run.id}")]
    blocks += [Line(strong=report.scripted.upper())] if report.scripted else []
    facts = {
        "Tasks": report.run.benchmark.removeprefix(STREAM),
        "Model": report.model or UNKNOWN,
        "Cases": f"{max((row.position for row in report.rows), default=0)} in {count(choice.orders, 'order')}",
        "Arms": ", ".join(arm.name for arm in choice.arms),
        "Seed": str(base.seed),
        "Ended": unfinished,
    }
    blocks += [Facts(facts), Heading(2, "Arms"), _arms(report), Line(_ARMS_NOTE)]
    if report.differences:
        blocks += [Heading(2, "Differences"), _compared(report), Line(_note_on(report)), *_power(report)]
        blocks += [Heading(2, "At equal tokens"), _compared_at_equal_tokens(report), Line(_EQUAL_NOTE)]
    if report.recoveries:
        blocks += [Heading(2, "After a change"), _recovered(report), Line(_RECOVERY_NOTE)]
    blocks += [Heading(2, "Along the stream"), _along(report)]
    return [*blocks, Heading(2, "Learning curve"), picture] if picture else blocks


_ARMS_NOTE = (
    "Gain: (score with memory - score without) / (1 - score without), with a 95 % interval. pass^k: the share of "
    "cases that were solved in all k orders. Tokens, those of the memory, recalled tokens and steps: means per case. "
    "Cost: of the whole arm; a reused answer counts as if it had been paid for."
)
_EQUAL_NOTE = (
    "In each order, both arms of a row have as many tokens as the one that needed fewer: a case that is not finished "
    "within them scores 0. Tokens: means per case without that limit. Finished: the share of the cases. p: corrected "
    "for the comparisons in this table."
)
_RECOVERY_NOTE = (
    f"Tasks after the change until {WINDOW} in a row (mean over the orders) score {SHARE:.0%} of the phase before."
)


def _arms(report: StreamReport) -> Table:
    columns = ["arm", "gain", "95 % interval", "score", "reward", "success"]
    orders = report.choice.orders
    columns += [f"pass^{orders}"] if orders > 1 else []
    rows = list[list[str]]()
    for arm in report.arms:
        row = [arm.arm, number(arm.gain.value if arm.gain else None, "+.3f"), interval_of(arm.gain, "+.3f")]
        row += [number(arm.score, ".3f"), number(arm.reward, ".3f"), number(arm.success, ".1%")]
        row += [number(arm.every, ".1%")] if orders > 1 else []
        row += [number(tokens, ",.0f") for tokens in (arm.tokens, arm.memory_tokens, arm.recalled_tokens)]
        rows.append([*row, number(arm.steps, ".1f"), dollars(arm.cost), str(arm.errors)])
    return Table([*columns, "tokens", "of memory", "recalled", "steps", "cost", "errors"], rows)


def _compared(report: StreamReport) -> Table:
    columns = ["arm", "less", "difference", "95 % interval", "p", "p (Holm)", "n", "clusters", "could show"]
    rows = list[list[str]]()
    for one in report.differences:
        estimate = one.difference
        row = [one.arm, one.reference, f"{estimate.value:+.3f}", interval_of(estimate, "+.3f")]
        row += [number(estimate.p, ".3g"), number(one.p, ".3g"), str(estimate.n), str(estimate.clusters)]
        rows.append([*row, number(estimate.detectable, ".3f")])
    return Table(columns, rows, left=2)


def _compared_at_equal_tokens(report: StreamReport) -> Table:
    columns = ["arm", "less", "tokens", "its tokens", "finished", "its finished"]
    rows = list[list[str]]()
    for one in report.differences:
        equal = one.equal_tokens
        row = [one.arm, one.reference, f"{equal.tokens:,.0f}", f"{equal.reference_tokens:,.0f}"]
        row += [f"{equal.finished:.0%}", f"{equal.reference_finished:.0%}", f"{equal.difference.value:+.3f}"]
        rows.append([*row, interval_of(equal.difference, "+.3f"), number(equal.p, ".3g")])
    return Table([*columns, "difference", "95 % interval", "p (Holm)"], rows, left=2)


def _note_on(report: StreamReport) -> str:
    """The note below the table of differences."""
    enough = report.choice.orders >= FEW
    note = (
        "Score of the same cases in the same orders; intervals clustered by "
        f"{report.clusters}{' and order' if enough else ''}, p corrected for "
        f"{count(len(report.differences), 'comparison')} by Holm. Could show: the smallest difference that this "
        "stream would have found with a power of 80 %."
    )
    fewer = f" With fewer than {FEW} orders, the intervals say nothing about other orders: --orders {FEW}."
    return note if enough else note + fewer


def _power(report: StreamReport) -> list[Block]:
    """A line for each comparison that shows no difference. It says which difference could have been shown."""
    sentences = list[str]()
    for one in report.differences:
        least = one.difference.detectable
        if least is None:
            sentences.append(
                f"{one.arm} against {one.reference}: too few cases, or too few that differ, to say what it could show."
            )
        elif (one.p or 0.0) >= 0.05:
            sentences.append(
                f"{one.arm} against {one.reference}: no difference was shown. The stream could have shown one of "
                f"{least:.3f} or more, but not a smaller one. To plan a stream that can: "
                "mulligan bench plan --difference D"
            )
    return list(map(Line, sentences))


def _recovered(report: StreamReport) -> Table:
    rows = [
        [one.arm, str(one.position), f"{one.before:.3f}", f"not in {one.left}" if one.tasks is None else str(one.tasks)]
        for one in report.recoveries
    ]
    return Table(["arm", "change at case", "score before", "tasks until back"], rows)


def _along(report: StreamReport) -> Table:
    parts = [f"part {n}" for n in range(1, STRETCHES + 1)]
    return Table(["arm", *parts], [[one.arm, *(number(v, ".3f") for v in one.stretches)] for one in report.arms])
