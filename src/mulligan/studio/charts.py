"""Measured effects with their intervals as shapes of an SVG; templates/intervals.svg draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.core.worth import Tally, Uplift

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 640, 34, 190, 24, 12, 40
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
