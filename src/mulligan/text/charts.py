"""Charts of rates with their intervals, as SVG with no more than the standard library.

A chart in a page takes its colours from the style sheet of the page; a file of its own has them in itself, and the
labels of its curves beside their ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mulligan.text.plain import encodable
from mulligan.text.web_pages import safe

WIDTH, HEIGHT, ROOM = 640, 320, 260
"""Of the picture; and how much wider it is with labels beside the ends of its curves."""
LEFT, RIGHT, TOP, BOTTOM = 64, 32, 24, 44
COLOURS = ("#1f77b4", "#c2541b", "#2a8f52", "#8e44ad", "#a8861d", "#c2407e")
DASHES = ("", "7 4", "2 3", "9 3 2 3")
MAX_TICKS = 12
MAX_DOTS = 24
"""Points of a curve above which it has no dots."""
NEAR = 15
"""The height that a label needs."""
TEXT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True)
class Point:
    """A rate above its place on the axis, with the ends of its interval. label: stands beside it."""

    x: float
    value: float
    low: float
    high: float
    label: str = ""


@dataclass(frozen=True)
class Curve:
    """The points of a curve, in the order of the axis."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Rates from 0 to 1 above an axis.

    Attributes:
        name: of the picture in its page.
        title: what it shows, in a sentence.
        across: what the axis counts.
        ticks: places on the axis, and what stands there; the axis goes from the first to the last.
        curves: of each, the points are joined by a line, with a band for the intervals, if `joined`.
        marks: places on the axis where a line goes up, and what it means.
    """

    name: str
    title: str
    across: str
    ticks: Sequence[tuple[float, str]]
    curves: Sequence[Curve]
    joined: bool = True
    marks: Sequence[tuple[float, str]] = ()

    def place(self, x: float) -> float:
        """Where something stands in the picture; what lies beyond the axis is drawn at its end."""
        least, most = self.ticks[0][0], self.ticks[-1][0]
        share = min(max((x - least) / (most - least), 0.0), 1.0)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def counting_ticks(last: int) -> Sequence[tuple[float, str]]:
    """The ticks of an axis that counts from 1, with a number at each place or at every few."""
    every = -(-last // MAX_TICKS)
    return [(n, str(n) if (n - 1) % every == 0 else "") for n in range(1, max(last, 2) + 1)]


def dashes(number: int) -> str:
    """By which a line differs from others besides its colour: an attribute of SVG, or ""."""
    found = DASHES[number % len(DASHES)]
    return f' stroke-dasharray="{found}"' if found else ""


def legend(chart: Chart) -> Sequence[tuple[int, str, str]]:
    """Of each curve the number of its colour in the style sheet, what makes its line differ, and its label."""
    return [(n % len(COLOURS), dashes(n), curve.label) for n, curve in enumerate(chart.curves)]


def height(share: float) -> float:
    """The height of a share."""
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def svg(chart: Chart, *, alone: bool = False) -> str:
    """The picture. alone: as a file of its own."""
    return encodable("\n".join(_svg(chart, alone)) + "\n")


def _svg(chart: Chart, alone: bool) -> Iterator[str]:
    wide, id = WIDTH + (ROOM if alone and chart.joined else 0), f"t-{chart.name}"
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {wide} {HEIGHT}" role="img" '
        f'aria-labelledby="{id}">\n<title id="{id}">{safe(chart.title)}</title>'
    )
    if alone:
        yield f'<rect width="{wide}" height="{HEIGHT}" fill="#fff"/>'
        yield f'<text {TEXT} x="{LEFT}" y="14">{safe(chart.title)}</text>'
    right, foot = WIDTH - RIGHT, HEIGHT - BOTTOM
    for share in range(0, 101, 20):
        y = height(share / 100)
        yield f'<line class="rule" stroke="#ccc" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        yield f'<text {TEXT} x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{share} %</text>'
    for place, text in chart.ticks:
        if text:
            yield f'<text {TEXT} x="{chart.place(place)}" y="{foot + 20}" text-anchor="middle">{safe(text)}</text>'
    middle = (LEFT + right) / 2
    yield f'<text {TEXT} x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{safe(chart.across)}</text>'
    yield f'<line class="axis" stroke="#555" x1="{LEFT}" x2="{right}" y1="{foot}" y2="{foot}"/>'
    for place, text in chart.marks:
        x = chart.place(place)
        yield f'<line class="axis" stroke="#555" stroke-dasharray="4 4" x1="{x}" x2="{x}" y1="{TOP}" y2="{foot}"/>'
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
        ends = [*((one.x, one.high) for one in points), *((one.x, one.low) for one in reversed(points))]
        yield f'<polygon class="band {kind}" fill="{colour}" fill-opacity="0.18" points="{_places(chart, ends)}"/>'
        whole = _places(chart, [(one.x, one.value) for one in points])
        yield f'<polyline {line} fill="none"{dashes(number)} points="{whole}"/>'
    for one in points:
        x, y = chart.place(one.x), height(one.value)
        if not joined:
            yield f'<line {line} x1="{x}" x2="{x}" y1="{height(one.low)}" y2="{height(one.high)}"/>'
        if len(points) <= MAX_DOTS:
            yield f'<circle class="{kind}" fill="{colour}" cx="{x}" cy="{y}" r="{3.5 if joined else 4.5}"/>'
        if one.label:
            yield f'<text {TEXT} x="{x + 8}" y="{y - 6}">{safe(one.label)}</text>'


def _places(chart: Chart, points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{chart.place(x):g},{height(share):g}" for x, share in points)


def _labels(curves: Sequence[Curve]) -> Iterator[str]:
    """A label beside the end of each curve, moved apart where they overlap; also for a curve without points."""
    ends = {n: height(curve.points[-1].value if curve.points else 0.0) for n, curve in enumerate(curves)}
    places, above = dict[int, float](), float(HEIGHT - BOTTOM + NEAR)
    for n in sorted(ends, key=lambda n: (bool(curves[n].points), -ends[n], n)):
        places[n] = above = min(ends[n], above - NEAR)
    low = max(0.0, TOP - above)
    for n, curve in enumerate(curves):
        text = curve.label if curve.points else f"{curve.label}: nothing scored"
        colour = COLOURS[n % len(COLOURS)]
        yield f'<text {TEXT} fill="{colour}" x="{WIDTH - RIGHT + 8}" y="{places[n] + low + 4}">{safe(text)}</text>'
