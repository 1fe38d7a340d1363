"""What came of a stream: a row for each case, and from these gain, differences, learning curves and recovery.

Scores are shares of a case's maximum, so the most that can be reached is 1. Gain is that of Continual Learning Bench:
(with memory - without) / (1 - without). Cases that ended with an error, or that nobody could score, are in no mean.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields, replace
from statistics import fmean
from typing import Any

from mulligan.bench.harness.plan import STREAM
from mulligan.bench.harness.running import run_with_id
from mulligan.bench.harness.stream import NONE, Leg, StreamChoice, legs_of, stream_record
from mulligan.bench.report.figures import about, read_run
from mulligan.bench.report.page import NONE as EMPTY
from mulligan.bench.report.page import UNKNOWN
from mulligan.bench.report.statistics import FEW, Estimate, clustered, groups, holm
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.codec import digest
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Json
from mulligan.text.charts import Chart, Curve, Point, counting_ticks
from mulligan.text.figures import money
from mulligan.text.pages import Block, Facts, Heading, Line, Picture, Table
from mulligan.text.truncate import estimate as tokens_of

REFERENCES = (NONE, "history")
"""The arms that the others are compared with, where they take part."""
WINDOW, SHARE = 3, 0.9
"""An arm has recovered where the mean of so many tasks in a row reaches this share of what it was before the drift."""
STRETCHES = 5
"""Into how many parts the stream is cut to show how an arm goes on."""


@dataclass(frozen=True)
class Row:
    """One case of one leg; the columns of the CSV. None: not known.

    reward: as the benchmark counts it. score: as a share of the most, 0 to 1. tokens_in, tokens_out, calls: of the
    episodes; those of memory: of the bank's model. cost: of both, in US dollars. recalled: entries that were shown;
    recalled_tokens: of their text, estimated. world: a digest of the task and the settings of its environment and
    evaluator, which is the same in all arms. error: what the case ended with; "" for any other end.
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
        """All of them, the memory's own included."""
        return self.tokens_in + self.tokens_out + self.memory_tokens_in + self.memory_tokens_out


@dataclass(frozen=True)
class ArmFigures:
    """Means over the cases of all orders. gain: None of the arm without memory, and where nothing was left to gain.

    every: pass^k, with k the number of orders: the cases that were solved in all of them.
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
    """Two arms with as many tokens as the cheaper one needed: in each order, cases that an arm had not finished within
    them score 0.

    Attributes:
        tokens, reference_tokens: means of a case, without a limit.
        finished, reference_finished: the share of the cases that each arm finished within the limit.
        difference: of the scores.
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
    """The score of `arm` less that of `reference`, on the same cases in the same orders. p: corrected for the number of
    comparisons (Holm)."""

    arm: str
    reference: str
    difference: Estimate
    p: float | None
    equal_tokens: EqualTokens


@dataclass(frozen=True)
class Recovery:
    """After a drift at `position`: `tasks` until the arm was back, None where it was not within the `left` tasks of the
    phase. before: its mean score in the phase before."""

    arm: str
    position: int
    before: float
    left: int
    tasks: int | None


@dataclass(frozen=True)
class StreamReport:
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
        """Without the rows, which are the CSV."""
        what = ("arms", "differences", "recoveries")
        found = {name: [asdict(one) for one in getattr(self, name)] for name in what}
        about = {"stream": self.run.id, "benchmark": self.choice.base.benchmark, "seed": self.choice.base.seed}
        state = {"legs": self.legs, "ended": self.ended, "model": self.model, "scripted": self.scripted}
        return {"schema": 1, **about, **state, "clusters": self.clusters, **found}


async def read_stream(store: Store, id: str) -> StreamReport:
    """The figures of a stream as far as it has come. Raises `NotFound`, `InvalidInput` for what is no stream."""
    run = await stream_record(store, id)
    choice, rows, ended = StreamChoice.of(run.options), list[Row](), 0
    models, scripted = dict[str, None](), ""
    legs = legs_of(run.id, choice)
    for leg in legs:
        if await run_with_id(store, leg.run) is None:
            continue
        recorded = await read_run(store, leg.run)
        of_leg = about(recorded.run, recorded.episodes.values())
        models |= dict.fromkeys(of_leg.models.values())
        scripted = scripted or of_leg.scripted
        ended += len(recorded.results) == len(recorded.run.cases)
        seed = choice.base.seed
        rows += [_row(leg, seed, result, recorded.episodes) for result in recorded.results]
    names = [arm.name for arm in choice.arms]
    rows.sort(key=lambda row: (names.index(row.arm), row.order, row.position))
    families, cases = {row.family for row in rows}, {row.case for row in rows}
    return StreamReport(
        run,
        choice,
        rows,
        [_figures(rows, name, choice.orders) for name in names],
        differences(rows, names),
        _recoveries(rows, names),
        "family" if FEW <= len(families) < len(cases) else "case",
        ended,
        len(legs),
        ", ".join(models),
        scripted,
    )


def _row(leg: Leg, seed: int, result: CaseResult, episodes: Mapping[str, Episode]) -> Row:
    mark = result.episodes[0] if result.episodes else None
    episode = episodes.get(mark.episode) if mark else None
    score = mark.score if mark and result.status != "error" else None
    rewards = mark.parts.get("reward", ()) if mark else ()
    reward = rewards[-1] if rewards and score is not None else score
    trials = episode.trials if episode else ()
    recall = episode.recall if episode else None
    both = result.usage + result.memory
    return Row(
        leg.arm.name,
        leg.order,
        result.position,
        result.case,
        result.family,
        result.phase,
        seed,
        result.status,
        reward,
        score,
        None if score is None else score == 1,
        len(trials),
        sum(len(trial.attempt.steps) or 1 for trial in trials),
        result.usage.input_tokens,
        result.usage.output_tokens,
        result.memory.input_tokens,
        result.memory.output_tokens,
        result.usage.calls,
        result.memory.calls,
        both.cost,
        len(recall.lessons) + len(recall.episodes) if recall else 0,
        tokens_of(recall.formatted_prompt) if recall and recall.formatted_prompt else 0,
        mark.episode if mark else "",
        world_of(episode) if episode else "",
        result.text if result.status == "error" else "",
    )


def world_of(episode: Episode) -> str:
    """A digest of its task, and of the settings of its environment and evaluator."""
    settings: Mapping[str, Json] = episode.head.settings if episode.head else {}
    return digest([episode.task.prompt, settings.get("environment"), settings.get("evaluator")])[:8]


# --- figures --------------------------------------------------------------------------------------------------------


def _mean(rows: Sequence[Row], of: Callable[[Row], float | None]) -> float | None:
    values = [value for row in rows if (value := of(row)) is not None]
    return fmean(values) if values else None


def _figures(rows: Sequence[Row], arm: str, orders: int) -> ArmFigures:
    ours = [row for row in rows if row.arm == arm]
    last = max((row.position for row in ours), default=0)
    costs = [row.cost for row in ours]
    return ArmFigures(
        arm,
        len(ours),
        sum(row.status == "error" for row in ours),
        _mean(ours, lambda row: row.score),
        _mean(ours, lambda row: row.reward),
        _mean(ours, lambda row: row.success),
        _every(ours, orders),
        gain_of(rows, arm) if arm != NONE else None,
        _mean(ours, lambda row: row.tokens),
        _mean(ours, lambda row: row.memory_tokens_in + row.memory_tokens_out),
        _mean(ours, lambda row: row.recalled_tokens),
        _mean(ours, lambda row: row.recalled),
        _mean(ours, lambda row: row.steps),
        None if None in costs else sum(cost or 0.0 for cost in costs),
        [
            _mean([row for row in ours if (row.position - 1) * STRETCHES // last == n], lambda row: row.score)
            for n in range(STRETCHES)
        ],
    )


def _every(rows: Sequence[Row], orders: int) -> float | None:
    cases = dict[str, list[bool]]()
    for row in rows:
        if row.success is not None:
            cases.setdefault(row.case, []).append(row.success)
    enough = [all(solved) for solved in cases.values() if len(solved) == orders]
    return fmean(enough) if enough else None


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
    """The score of `arm` less that of `reference` in these rows; None without a case that both have."""
    pairs = _pairs(rows, arm, reference)
    return _estimate(pairs) if pairs else None


def _estimate(pairs: Sequence[_Pair], slope: Sequence[float] | None = None) -> Estimate:
    """The mean of what each pair differs by, clustered by family (or case), and by order where these are not few."""
    orders = [pair.order for pair in pairs]
    ways = [groups([pair.family for pair in pairs], [pair.case for pair in pairs])]
    ways += [orders] if len(set(orders)) >= FEW else []
    shares = slope is None and all(0 <= score <= 1 for pair in pairs for score in (pair.score, pair.reference))
    return clustered(
        [pair.score - pair.reference for pair in pairs], *ways, slope=slope, most=1.0 if shares else math.inf
    )


def gain_of(rows: Sequence[Row], arm: str) -> Estimate | None:
    """The gain of this arm over the one without memory; None where nothing was left to gain."""
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
    return sum(row.tokens for row in rows if row.order == order)


def finished_within(rows: Sequence[Row], limits: Mapping[int, int]) -> set[tuple[int, str]]:
    """The order and case of each row of one arm that was over before the tokens of its order were used up."""
    used = dict.fromkeys(limits, 0)
    found = set[tuple[int, str]]()
    for row in sorted(rows, key=lambda row: row.position):
        used[row.order] += row.tokens
        if used[row.order] <= limits[row.order]:
            found.add((row.order, row.case))
    return found


def differences(rows: Sequence[Row], arms: Sequence[str]) -> list[Difference]:
    """Each arm against each of the `REFERENCES` that takes part."""
    found = list[tuple[str, str, Estimate, EqualTokens]]()
    for number, reference in enumerate(one for one in REFERENCES if one in arms):
        for arm in arms:
            if arm == reference or (arm in REFERENCES[:number]):
                continue
            if pairs := _pairs(rows, arm, reference):
                found.append((arm, reference, _estimate(pairs), _equal_tokens(rows, arm, reference, pairs)))
    ps = _corrected([estimate for _, _, estimate, _ in found])
    equal_ps = _corrected([equal.difference for *_, equal in found])
    return [
        Difference(arm, reference, estimate, p, replace(equal, p=equal_p))
        for (arm, reference, estimate, equal), p, equal_p in zip(found, ps, equal_ps, strict=True)
    ]


def _corrected(estimates: Sequence[Estimate]) -> list[float | None]:
    """The p of each, corrected for the number of those that have one."""
    corrected = iter(holm([one.p for one in estimates if one.p is not None]))
    return [next(corrected) if one.p is not None else None for one in estimates]


def _recoveries(rows: Sequence[Row], arms: Sequence[str]) -> list[Recovery]:
    starts = dict[int, int]()
    for row in rows:
        starts[row.phase] = min(row.position, starts.get(row.phase, row.position))
    found = list[Recovery]()
    for before, phase in zip(sorted(starts), sorted(starts)[1:], strict=False):
        for arm in arms:
            mean = _mean([row for row in rows if row.arm == arm and row.phase == before], lambda row: row.score)
            after = [row for row in rows if row.arm == arm and row.phase == phase]
            if mean is not None and after:
                left = max(row.position for row in after) - starts[phase] + 1
                found.append(Recovery(arm, starts[phase], mean, left, _back(after, starts[phase], left, mean)))
    return found


def _back(rows: Sequence[Row], start: int, left: int, before: float) -> int | None:
    """How many tasks it took until the next few, over all orders, were as good as most of before."""
    for n in range(max(1, left - WINDOW + 1)):
        window = [row for row in rows if start + n <= row.position < start + n + WINDOW]
        mean = _mean(window, lambda row: row.score)
        if mean is not None and mean >= SHARE * before - 1e-9:
            return n
    return None


# --- rows and curves ------------------------------------------------------------------------------------------------


def as_csv(rows: Sequence[Any], row: type[Any] = Row) -> str:
    """Rows, which are records of this class, with a line of its fields above them."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n")
    write.writerow([field.name for field in fields(row)])
    write.writerows(["" if cell is None else cell for cell in astuple(row)] for row in rows)
    return text.getvalue()


def learning_curves(report: StreamReport) -> Chart:
    """The mean score of the last few cases, by position; the interval is over orders."""
    last = max((row.position for row in report.rows), default=1)
    width = max(1, last // 12)
    curves = list[Curve]()
    for found in report.arms:
        ours = [row for row in report.rows if row.arm == found.arm]
        points = list[Point]()
        for position in range(1, last + 1):
            near = [row for row in ours if position - width < row.position <= position]
            orders = sorted({row.order for row in near})
            of_each = [_mean([row for row in near if row.order == order], lambda row: row.score) for order in orders]
            if means := [mean for mean in of_each if mean is not None]:
                value = fmean(means)
                spread = clustered(means, range(len(means))) if len(means) > 1 else None
                ends = (spread.low, spread.high) if spread else (None, None)
                low, high = (min(1.0, max(0.0, value if end is None else end)) for end in ends)
                points.append(Point(position, min(1.0, max(0.0, value)), low, high))
        gain = f", gain {found.gain.value:+.2f}" if found.gain else ""
        curves.append(Curve(f"{found.arm}{gain}", points))
    over = f"mean of the last {width} cases" if width > 1 else "mean"
    return Chart(
        name="stream",
        title=f"Score along the stream, {over} over the orders, with 95 % intervals",
        across="case of the stream",
        ticks=counting_ticks(last),
        curves=curves,
        marks=[(place, "") for place in sorted({one.position - 0.5 for one in report.recoveries})],
    )


# --- page -----------------------------------------------------------------------------------------------------------


def stream_page(report: StreamReport, picture: Picture | None = None) -> list[Block]:
    choice, base = report.choice, report.choice.base
    unfinished = "" if report.ended == report.legs else f"unfinished: {report.ended} of {report.legs} legs"
    blocks: list[Block] = [Heading(1, f"Stream {report.run.id}")]
    blocks += [Line(strong=report.scripted.upper())] if report.scripted else []
    facts = {
        "Tasks": report.run.benchmark.removeprefix(STREAM),
        "Model": report.model or UNKNOWN,
        "Cases": f"{max((row.position for row in report.rows), default=0)} in {choice.orders} orders",
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


def _number(value: float | None, form: str) -> str:
    return EMPTY if value is None else format(value, form)


def _interval(one: Estimate | None) -> str:
    return EMPTY if one is None or one.low is None else f"{one.low:+.3f} to {one.high:+.3f}"


def _arms(report: StreamReport) -> Table:
    columns = ["arm", "gain", "95 % interval", "score", "reward", "success"]
    orders = report.choice.orders
    columns += [f"pass^{orders}"] if orders > 1 else []
    rows = [
        [
            *(one.arm, _number(one.gain.value if one.gain else None, "+.3f"), _interval(one.gain)),
            *(_number(one.score, ".3f"), _number(one.reward, ".3f"), _number(one.success, ".1%")),
            *([_number(one.every, ".1%")] if orders > 1 else []),
            *(_number(one.tokens, ",.0f"), _number(one.memory_tokens, ",.0f"), _number(one.recalled_tokens, ",.0f")),
            *(
                _number(one.steps, ".1f"),
                UNKNOWN if one.cost is None else money(one.cost) if one.cost else EMPTY,
                str(one.errors),
            ),
        ]
        for one in report.arms
    ]
    return Table([*columns, "tokens", "of memory", "recalled", "steps", "cost", "errors"], rows)


def _compared(report: StreamReport) -> Table:
    columns = ["arm", "less", "difference", "95 % interval", "p", "p (Holm)", "n", "clusters", "could show"]
    rows = [
        [
            *(one.arm, one.reference, f"{one.difference.value:+.3f}", _interval(one.difference)),
            *(_number(one.difference.p, ".3g"), _number(one.p, ".3g"), str(one.difference.n)),
            *(str(one.difference.clusters), _number(one.difference.detectable, ".3f")),
        ]
        for one in report.differences
    ]
    return Table(columns, rows, left=2)


def _compared_at_equal_tokens(report: StreamReport) -> Table:
    columns = [
        "arm",
        "less",
        "tokens",
        "its tokens",
        "finished",
        "its finished",
        "difference",
        "95 % interval",
        "p (Holm)",
    ]
    rows = [
        [
            *(one.arm, one.reference, f"{equal.tokens:,.0f}", f"{equal.reference_tokens:,.0f}"),
            *(f"{equal.finished:.0%}", f"{equal.reference_finished:.0%}", f"{equal.difference.value:+.3f}"),
            *(_interval(equal.difference), _number(equal.p, ".3g")),
        ]
        for one in report.differences
        for equal in (one.equal_tokens,)
    ]
    return Table(columns, rows, left=2)


def _note_on(report: StreamReport) -> str:
    many = report.choice.orders >= FEW
    return (
        "Score of the same cases in the same orders; intervals clustered by "
        f"{report.clusters}{' and order' if many else ''}, p corrected for {len(report.differences)} comparisons by "
        "Holm. Could show: the smallest difference that this stream would have found with a power of 80 %."
        + (
            ""
            if many
            else (f" With fewer than {FEW} orders, the intervals say nothing about other orders: --orders {FEW}.")
        )
    )


def _power(report: StreamReport) -> list[Block]:
    """A line for each comparison that shows nothing, and could not have shown so small a difference."""
    lines = list[Block]()
    for one in report.differences:
        least = one.difference.detectable
        if least is None:
            lines.append(
                Line(
                    f"{one.arm} against {one.reference}: too few cases, or too few that differ, to say what it could "
                    "show."
                )
            )
        elif (one.p or 0.0) >= 0.05:
            lines.append(
                Line(
                    f"{one.arm} against {one.reference}: no difference was shown. The stream could have shown one of "
                    f"{least:.3f} or more, but not a smaller one. To plan a stream that can: "
                    "mulligan bench plan --difference D"
                )
            )
    return lines


def _recovered(report: StreamReport) -> Table:
    rows = [
        [one.arm, str(one.position), f"{one.before:.3f}", f"not in {one.left}" if one.tasks is None else str(one.tasks)]
        for one in report.recoveries
    ]
    return Table(["arm", "change at case", "score before", "tasks until back"], rows)


def _along(report: StreamReport) -> Table:
    parts = [f"part {n}" for n in range(1, STRETCHES + 1)]
    return Table(["arm", *parts], [[one.arm, *(_number(v, ".3f") for v in one.stretches)] for one in report.arms])
