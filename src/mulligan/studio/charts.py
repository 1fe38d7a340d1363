"""Figures with their intervals as shapes of an SVG, with no more than the standard library.

templates/intervals.svg draws effects, templates/spending.svg what success costs, templates/calibration.svg how far the
relevance of lessons foretells success.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

from mulligan.bench.report.figures import Figures
from mulligan.core.rates import Rate, rate
from mulligan.core.worth import Tally, Uplift

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 640, 34, 190, 32, 24, 44
LABEL = 26
"""Characters of a label that fit beside the plot."""


@dataclass(frozen=True)
class Bar:
    """An effect: its place, and those of the ends of its interval, which may lie beyond the frame."""

    label: str
    uplift: Uplift
    y: float
    x: float
    low: float
    high: float


@dataclass(frozen=True)
class Intervals:
    """ticks: places on the axis and what they mean; nothing: the place of no effect."""

    width: int
    height: int
    frame: tuple[int, int, int, int]
    nothing: float
    ticks: Sequence[tuple[float, str]]
    bars: Sequence[Bar]


def intervals(counted: Sequence[tuple[str, Tally]]) -> Intervals:
    """By how much entries raise the rate of success, in this order; those that are not measured are left out."""
    measured = [(label, uplift) for label, tally in counted if (uplift := tally.uplift)]
    height = TOP + ROW * len(measured) + BOTTOM
    bars = [
        Bar(label[:LABEL], one, TOP + ROW * (n + 0.5), _across(one.mean), _across(one.low), _across(one.high))
        for n, (label, one) in enumerate(measured)
    ]
    ticks = [(_across(share / 100), f"{share:+d}" if share else "0") for share in range(-100, 101, 50)]
    return Intervals(WIDTH, height, (LEFT, TOP, WIDTH - RIGHT, height - BOTTOM), _across(0.0), ticks, bars)


def _across(effect: float) -> float:
    """The place of an effect, from -1 to 1; what lies beyond is drawn at the edge."""
    return round(LEFT + (min(max(effect, -1.0), 1.0) + 1) / 2 * (WIDTH - LEFT - RIGHT), 1)


# --- cost against success -----------------------------------------------------------------------------------------

HEIGHT, EDGE = 320, 64
COLOURS = 6


def up(share: float) -> float:
    """The height of a share."""
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Rates of success above an axis. ticks: places on the axis, and rules: heights, with what they mean."""

    ticks: Sequence[tuple[float, str]]
    rules: Sequence[tuple[float, int]] = tuple((up(share / 100), share) for share in range(0, 101, 20))
    width: int = WIDTH
    height: int = HEIGHT
    frame: tuple[int, int, int, int] = (EDGE, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)


@dataclass(frozen=True)
class Point:
    """A run. number: its label in the picture; spent: for each case; y, low, high: places of its rate of success."""

    number: int
    label: str
    colour: int
    spent: float
    solved: Rate
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Spending(Rates):
    """unit: what is spent, "dollars", or "tokens" where a cost is unknown."""

    unit: str
    points: Sequence[Point]


def spending(runs: Sequence[tuple[str, Figures]]) -> Spending:
    """What each run spent for a case, against the share that it solved; runs without a verdict are left out."""
    costs = [(of.spent.usage.cost, of.spent.usage.tokens) for _, of in runs]
    dollars = all(cost for cost, _ in costs)
    known = [
        (number, label, (cost or 0.0 if dollars else tokens) / of.ended, of.trials[-1].solved)
        for number, ((label, of), (cost, tokens)) in enumerate(zip(runs, costs, strict=True), 1)
        if of.ended and of.trials
    ]
    most = _round_up(max([spent for _, _, spent, _ in known], default=0.0))

    def across(spent: float) -> float:
        return round(EDGE + spent / most * (WIDTH - EDGE - RIGHT), 1)

    points = [
        Point(n, label, (n - 1) % COLOURS, spent, rate, across(spent), up(rate.value), up(rate.low), up(rate.high))
        for n, label, spent, rate in known
        if rate.value is not None and rate.low is not None and rate.high is not None
    ]
    ticks = [(across(most * n / 4), f"{most * n / 4:,.4g}") for n in range(5)]
    return Spending(ticks=ticks, unit="dollars" if dollars else "tokens", points=points)


# --- relevance against success ------------------------------------------------------------------------------------

BINS = 10


@dataclass(frozen=True)
class Bin:
    """Lessons of a range of relevance. x, y, low, high: places of the middle, and of the rate with its interval."""

    least: float
    most: float
    solved: Rate
    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Calibration(Rates):
    """lessons: how many were shown; least: the place of the least relevance among them."""

    lessons: int
    least: float | None
    bins: Sequence[Bin]


def calibration(shown: Sequence[tuple[float, bool]]) -> Calibration:
    """How often tasks succeeded that were shown lessons of a relevance, by tenths from 0 to 1."""

    def across(relevance: float) -> float:
        return round(EDGE + min(max(relevance, 0.0), 1.0) * (WIDTH - EDGE - RIGHT), 1)

    held: list[list[bool]] = [[] for _ in range(BINS)]
    for score, success in shown:
        held[min(max(int(score * BINS), 0), BINS - 1)].append(success)
    bins: list[Bin] = []
    for n, ends in enumerate(held):
        one, middle = rate(sum(ends), len(ends)), (n + 0.5) / BINS
        if one.value is not None and one.low is not None and one.high is not None:
            places = across(middle), up(one.value), up(one.low), up(one.high)
            bins.append(Bin(n / BINS, (n + 1) / BINS, one, *places))
    ticks = [(across(n / 5), f"{n / 5:.1f}") for n in range(6)]
    least = across(min(score for score, _ in shown)) if shown else None
    return Calibration(ticks=ticks, lessons=len(shown), least=least, bins=bins)


def _round_up(most: float) -> float:
    """The next 1, 2, 4 or 8 of its power of ten, so that a quarter of it is a short number."""
    if most <= 0:
        return 1.0
    power = 10.0 ** floor(log10(most))
    return next(power * digit for digit in (1, 2, 4, 8, 10, 20) if power * digit > most * 1.02)


# --- runs over time -----------------------------------------------------------------------------------------------

TALL, FOOT = 140, 24
OUTCOMES = ("ok", "later", "bad")
"""Kinds of bars, from the bottom: solved on the first try, solved later, not solved."""


@dataclass(frozen=True)
class Day:
    """bars: kind, top and height of each part that is not empty; x: the left edge."""

    label: str
    counts: Sequence[int]
    x: float
    bars: Sequence[tuple[str, float, float]]


@dataclass(frozen=True)
class History:
    """Runs by day. bar: the width of a bar."""

    width: int
    height: int
    bar: float
    days: Sequence[Day]


def history(days: Sequence[tuple[str, Sequence[int]]]) -> History:
    """Days as stacked bars; counts in the order of `OUTCOMES`."""
    most = max([sum(counts) for _, counts in days], default=1) or 1
    slot = (WIDTH - 2 * RIGHT) / max(len(days), 1)
    bar = round(min(slot * 0.7, 60), 1)
    drawn: list[Day] = []
    for n, (label, counts) in enumerate(days):
        base, bars = float(TALL - FOOT), list[tuple[str, float, float]]()
        for kind, number in zip(OUTCOMES, counts, strict=True):
            height = round((TALL - FOOT - TOP) * number / most, 1)
            base -= height
            if number:
                bars.append((kind, round(base, 1), height))
        drawn.append(Day(label, counts, round(RIGHT + n * slot + (slot - bar) / 2, 1), bars))
    return History(WIDTH, TALL, bar, drawn)
