"""Computes the charts of the studio: effects of lessons, success by relevance, and runs by day.

templates/intervals.svg draws `Intervals`, templates/history.svg draws `History`, and `Chart.svg` a `Chart`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.pages import Chart, Curve, Point, Table, rate
from mulligan.running import Tally

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 640, 34, 190, 32, 24, 44
LABEL_LENGTH = 26
"""Characters of a label that fit beside the plot."""


@dataclass(frozen=True)
class Bar:
    """An effect at (x, y), with its interval from low to high. All are pixels of the chart."""

    label: str
    tally: Tally
    y: float
    x: float
    low: float
    high: float


@dataclass(frozen=True)
class Intervals:
    """The effects of several lessons. ticks: positions on the axis with their labels. nothing: the position of zero."""

    width: int
    height: int
    frame: tuple[int, int, int, int]
    nothing: float
    ticks: Sequence[tuple[float, str]]
    bars: Sequence[Bar]


def intervals(tallies: Sequence[tuple[str, Tally]]) -> Intervals:
    """How much each entry raises the success rate. Entries without a measured effect are left out."""
    measured = [(label, tally, uplift) for label, tally in tallies if (uplift := tally.uplift)]
    height = TOP + ROW * len(measured) + BOTTOM
    bars = [
        Bar(
            label[:LABEL_LENGTH],
            tally,
            y=TOP + ROW * (n + 0.5),
            x=_across(uplift.mean),
            low=_across(uplift.low),
            high=_across(uplift.high),
        )
        for n, (label, tally, uplift) in enumerate(measured)
    ]
    ticks = [(_across(percent / 100), f"{percent:+d}" if percent else "0") for percent in range(-100, 101, 50)]
    return Intervals(WIDTH, height, (LEFT, TOP, WIDTH - RIGHT, height - BOTTOM), _across(0.0), ticks, bars)


def _across(effect: float) -> float:
    """The position of an effect on the axis from -1 to 1. An effect beyond that is drawn at the edge."""
    return round(LEFT + (min(max(effect, -1.0), 1.0) + 1) / 2 * (WIDTH - LEFT - RIGHT), 1)


# --- relevance against success ------------------------------------------------------------------------------------

BINS = 10


def calibration(shown: Sequence[tuple[float, bool]]) -> tuple[Chart, Table]:
    """How often tasks succeeded, by the relevance of the lessons that they were shown.

    shown: the relevance of each lesson, from 0 to 1, and whether its task succeeded.
    """
    bins: list[list[bool]] = [[] for _ in range(BINS)]
    for relevance, success in shown:
        bins[min(max(int(relevance * BINS), 0), BINS - 1)].append(success)
    points, rows = list[Point](), list[list[str]]()
    for n, successes in enumerate(bins):
        share = rate(sum(successes), len(successes))
        if share.value is not None and share.low is not None and share.high is not None:
            points.append(Point((n + 0.5) / BINS, share.value, share.low, share.high))
            span = f"{n / BINS:.1f} to {(n + 1) / BINS:.1f}"
            interval = f"{100 * share.low:.0f} to {100 * share.high:.0f} %"
            rows.append([span, f"{share.n}", f"{share.count}", f"{100 * share.value:.0f} %", interval])
    chart = Chart(
        name="calibration",
        title="Share of tasks that succeeded, with 95 % intervals, by relevance of the lessons shown",
        axis_label="relevance of the lesson shown",
        ticks=[(n / 5, f"{n / 5:.1f}") for n in range(6)],
        curves=[Curve("", points)],
        joined=False,
        marks=[(min(relevance for relevance, _ in shown), "lowest shown")] if shown else [],
    )
    return chart, Table(["Relevance", "Lessons shown", "Succeeded", "Share", "95 % interval"], rows)


# --- runs over time -----------------------------------------------------------------------------------------------

HISTORY_HEIGHT, FOOT = 140, 24
OUTCOMES = ("ok", "later", "bad")
"""The kinds of parts of a bar, from the bottom: solved on the first try, solved later, not solved."""


@dataclass(frozen=True)
class Day:
    """The bar of a day. bars: kind, top and height of each non-empty part. x: the left edge."""

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
    """Runs by day as stacked bars. days: each with its numbers of runs, in the order of `OUTCOMES`."""
    most_runs = max([sum(counts) for _, counts in days], default=1) or 1
    slot = (WIDTH - 2 * RIGHT) / max(len(days), 1)
    bar = round(min(slot * 0.7, 60), 1)
    drawn_days: list[Day] = []
    for n, (label, counts) in enumerate(days):
        top, bars = float(HISTORY_HEIGHT - FOOT), list[tuple[str, float, float]]()
        for kind, number in zip(OUTCOMES, counts, strict=True):
            height = round((HISTORY_HEIGHT - FOOT - TOP) * number / most_runs, 1)
            top -= height
            if number:
                bars.append((kind, round(top, 1), height))
        drawn_days.append(Day(label, counts, round(RIGHT + n * slot + (slot - bar) / 2, 1), bars))
    return History(WIDTH, HISTORY_HEIGHT, bar, drawn_days)
