"""Learning curves as shapes of an SVG, with no more than the standard library; templates/curve.svg draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mulligan.bench.report.plot import Curve
from mulligan.studio.charts import BOTTOM, COLOURS, HEIGHT, TOP, WIDTH, Rates, up

LEFT, RIGHT = 64, 24


@dataclass(frozen=True)
class Drawn:
    """A curve in the picture. line and band: `points` of SVG shapes, or "" for a single point; dots: where points are.

    dashes: by which the line differs from others besides its colour.
    """

    label: str
    colour: int
    dashes: str
    line: str
    band: str
    dots: Sequence[tuple[float, float]]
    bars: Sequence[tuple[float, float, float]]


@dataclass(frozen=True, kw_only=True)
class Plot(Rates):
    """Shares of solved cases above the number of the try."""

    curves: Sequence[Drawn]
    frame: tuple[int, int, int, int] = (LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM)


DASHES = ("", "7 4", "2 3", "9 3 2 3")
MOST_TICKS = 12


def plot(curves: Sequence[Curve]) -> Plot:
    """The shares of solved cases by trial, with their intervals."""
    last = max([2, *(len(curve.solved) for curve in curves)])
    every = -(-last // MOST_TICKS)
    return Plot(
        ticks=[(_across(trial, last), f"{trial}") for trial in range(1, last + 1, every)],
        curves=[_drawn(number, curve, last) for number, curve in enumerate(curves)],
    )


def _drawn(number: int, curve: Curve, last: int) -> Drawn:
    known = [
        (_across(trial, last), solved, low, high)
        for trial, (solved, low, high) in enumerate(zip(curve.solved, curve.low, curve.high, strict=True), 1)
        if solved is not None and low is not None and high is not None
    ]
    dots = [(x, up(solved)) for x, solved, _, _ in known]
    above = [(x, up(high)) for x, _, _, high in known]
    below = [(x, up(low)) for x, _, low, _ in known]
    several = len(known) > 1
    return Drawn(
        curve.label,
        number % COLOURS,
        DASHES[number % len(DASHES)],
        _points(dots) if several else "",
        _points([*above, *reversed(below)]) if several else "",
        dots if len(dots) <= 2 * MOST_TICKS else (),
        [] if several else [(x, top, bottom) for (x, top), (_, bottom) in zip(above, below, strict=True)],
    )


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _across(trial: int, last: int) -> float:
    return round(LEFT + (trial - 1) / (last - 1) * (WIDTH - LEFT - RIGHT), 1)
