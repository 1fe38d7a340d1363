"""Figures with their intervals as shapes of an SVG, with no more than the standard library.

templates/intervals.svg draws effects, templates/history.svg runs by day; charts of rates are drawn by `text.charts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.core.worth import Tally, Uplift
from mulligan.pages import Chart, Curve, Point, Table, rate

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


# --- relevance against success ------------------------------------------------------------------------------------

BINS = 10


def calibration(shown: Sequence[tuple[float, bool]]) -> tuple[Chart, Table]:
    """How often tasks succeeded that were shown lessons of a relevance, by tenths from 0 to 1."""
    held: list[list[bool]] = [[] for _ in range(BINS)]
    for score, success in shown:
        held[min(max(int(score * BINS), 0), BINS - 1)].append(success)
    points, rows = list[Point](), list[list[str]]()
    for n, ends in enumerate(held):
        one = rate(sum(ends), len(ends))
        if one.value is not None and one.low is not None and one.high is not None:
            points.append(Point((n + 0.5) / BINS, one.value, one.low, one.high))
            between = f"{100 * one.low:.0f} to {100 * one.high:.0f} %"
            row = [f"{n / BINS:.1f} to {(n + 1) / BINS:.1f}", f"{one.n}", f"{one.count}", f"{100 * one.value:.0f} %"]
            rows.append([*row, between])
    chart = Chart(
        name="calibration",
        title="Share of tasks that succeeded, with 95 % intervals, against the relevance of the lessons shown to them",
        across="relevance of a lesson that was shown",
        ticks=[(n / 5, f"{n / 5:.1f}") for n in range(6)],
        curves=[Curve("", points)],
        joined=False,
        marks=[(min(score for score, _ in shown), "least shown")] if shown else [],
    )
    return chart, Table(["Relevance", "Lessons shown", "Succeeded", "Share", "95 % interval"], rows)


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
