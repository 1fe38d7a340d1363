"""Charts of rates with their intervals as SVG, with the standard library alone.

A chart in a page takes its colours from the page's style sheet. A chart in its own file contains its colours, and
labels the end of each curve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mulligan.text.plain import encodable
from mulligan.text.web_pages import safe

WIDTH, HEIGHT = 640, 320
LABEL_WIDTH = 260
"""The width that labels at the ends of the curves add."""
LEFT, RIGHT, TOP, BOTTOM = 64, 32, 24, 44
"""The margins."""
COLOURS = ("#1f77b4", "#c2541b", "#2a8f52", "#8e44ad", "#a8861d", "#c2407e")
DASHES = ("", "7 4", "2 3", "9 3 2 3")
MAX_TICKS = 12
MAX_DOTS = 24
"""A curve with more points is drawn without dots."""
LABEL_HEIGHT = 15
TEXT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True)
class Point:
    """A rate and its interval, at a position on the axis.

    Attributes:
        label: the text next to the point.
    """

    x: float
    value: float
    low: float
    high: float
    label: str = ""


@dataclass(frozen=True)
class Curve:
    """A curve: its points, in the order of the axis."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of rates from 0 to 1.

    Attributes:
        name: a part of the title's id that is unique on a page.
        title: what the chart shows.
        axis_label: the label of the axis.
        ticks: positions on the axis and their labels. The axis extends from the first to the last.
        joined: whether a line connects a curve's points, and a band shows their intervals.
        marks: positions of vertical lines and their labels.
    """

    name: str
    title: str
    axis_label: str
    ticks: Sequence[tuple[float, str]]
    curves: Sequence[Curve]
    joined: bool = True
    marks: Sequence[tuple[float, str]] = ()

    def place(self, x: float) -> float:
        """Returns the horizontal coordinate of a position. Positions beyond the axis are drawn at its end."""
        first, last = self.ticks[0][0], self.ticks[-1][0]
        share = min(max((x - first) / (last - first), 0.0), 1.0)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    @property
    def legend(self) -> Sequence[tuple[int, str, str]]:
        """Each curve's colour number, its dashes as an SVG attribute, and its label."""
        return [(n % len(COLOURS), dashes(n), curve.label) for n, curve in enumerate(self.curves)]

    def svg(self, *, alone: bool = False) -> str:
        """Returns the chart as SVG.

        Args:
            alone: whether the chart is for its own file.
        """
        return encodable("\n".join(_svg(self, alone)) + "\n")


def counting_ticks(last: int) -> Sequence[tuple[float, str]]:
    """Returns the ticks of an axis that counts from 1. At most `MAX_TICKS` of them have a label."""
    last = max(last, 2)
    every = -(-last // MAX_TICKS)
    return [(n, str(n) if (n - 1) % every == 0 else "") for n in range(1, last + 1)]


def dashes(number: int) -> str:
    """Returns the SVG attribute for the dashes of a curve, so that curves differ in more than colour; "" for none."""
    pattern = DASHES[number % len(DASHES)]
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def height(share: float) -> float:
    """Returns the vertical coordinate of a share from 0 to 1."""
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _svg(chart: Chart, alone: bool) -> Iterator[str]:
    width, id = WIDTH + (LABEL_WIDTH if alone and chart.joined else 0), f"t-{chart.name}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'aria-labelledby="{id}">\n<title id="{id}">{safe(chart.title)}</title>'
    )
    if alone:
        yield f'<rect width="{width}" height="{HEIGHT}" fill="#fff"/>'
        yield f'<text {TEXT} x="{LEFT}" y="14">{safe(chart.title)}</text>'
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    for share in range(0, 101, 20):
        y = height(share / 100)
        yield f'<line class="rule" stroke="#ccc" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text {TEXT} x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{share} %</text>'
    for position, text in chart.ticks:
        if text:
            yield f'<text {TEXT} x="{chart.place(position)}" y="{bottom + 20}" text-anchor="middle">{safe(text)}</text>'
    middle = (LEFT + right) / 2
    yield f'<text {TEXT} x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{safe(chart.axis_label)}</text>'
    yield f'<line class="axis" stroke="#555" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
    for position, text in chart.marks:
        x = chart.place(position)
        yield f'<line class="axis" stroke="#555" stroke-dasharray="4 4" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text {TEXT} x="{x - 6}" y="{TOP + 12}" text-anchor="end">{safe(text)}</text>' if text else ""
    for number, curve in enumerate(chart.curves):
        yield from _curve(chart, number, curve.points)
    if alone and chart.joined:
        yield from _labels(chart.curves)
    yield "</svg>"


def _curve(chart: Chart, number: int, points: Sequence[Point]) -> Iterator[str]:
    kind, colour = f"c{number % len(COLOURS)}", COLOURS[number % len(COLOURS)]
    line = f'class="curve {kind}" stroke="{colour}" stroke-width="2.25"'
    joined = chart.joined and len(points) > 1
    if joined:
        ends = [*((point.x, point.high) for point in points), *((point.x, point.low) for point in reversed(points))]
        yield f'<polygon class="band {kind}" fill="{colour}" fill-opacity="0.18" points="{_places(chart, ends)}"/>'
        values = _places(chart, [(point.x, point.value) for point in points])
        yield f'<polyline {line} fill="none"{dashes(number)} points="{values}"/>'
    for point in points:
        x, y = chart.place(point.x), height(point.value)
        if not joined:
            yield f'<line {line} x1="{x}" x2="{x}" y1="{height(point.low)}" y2="{height(point.high)}"/>'
        if len(points) <= MAX_DOTS:
            yield f'<circle class="{kind}" fill="{colour}" cx="{x}" cy="{y}" r="{3.5 if joined else 4.5}"/>'
        if point.label:
            yield f'<text {TEXT} x="{x + 8}" y="{y - 6}">{safe(point.label)}</text>'


def _places(chart: Chart, points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{chart.place(x):g},{height(share):g}" for x, share in points)


def _labels(curves: Sequence[Curve]) -> Iterator[str]:
    """Yields a label for the end of each curve. Labels that would overlap are moved apart."""
    ends = {n: height(curve.points[-1].value if curve.points else 0.0) for n, curve in enumerate(curves)}
    heights, highest = dict[int, float](), float(HEIGHT - BOTTOM + LABEL_HEIGHT)
    for n in sorted(ends, key=lambda n: (bool(curves[n].points), -ends[n], n)):
        heights[n] = highest = min(ends[n], highest - LABEL_HEIGHT)
    shift = max(0.0, TOP - highest)
    for n, curve in enumerate(curves):
        text = curve.label if curve.points else f"{curve.label}: nothing scored"
        colour = COLOURS[n % len(COLOURS)]
        yield f'<text {TEXT} fill="{colour}" x="{WIDTH - RIGHT + 8}" y="{heights[n] + shift + 4}">{safe(text)}</text>'
