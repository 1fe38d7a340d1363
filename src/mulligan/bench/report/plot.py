"""Draws the learning curve of a report as SVG or PNG, with matplotlib (the extra `plot`)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mulligan.bench.report.figures import Report
from mulligan.bench.report.page import kind_of
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require

MEDIA = {".svg": "image/svg+xml", ".png": "image/png"}
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""The palette of Okabe and Ito, for colour-blind readers."""
LINES = {"results": "-", "oracle": "--", "scripted": ":"}
_NOTES = {"oracle": ", oracle", "scripted": ", no result"}
_NEAR = 0.055
"""The share of the height that a label needs."""
_DENSE = 30
"""Points above which a line has no dots, and the axis no number for each of them."""


@dataclass(frozen=True)
class Frame:
    """What stands around the curves. changes: where on the first axis a line goes up, such as at a drift."""

    title: str
    across: str
    up: str
    changes: Sequence[float] = ()


BY_TRIAL = Frame(
    "Solved by number of tries, with 95 % intervals", "tries allowed", "solved by the hidden verdict (pass@1)"
)


@dataclass(frozen=True)
class Curve:
    """The curve of one run: the share of cases solved by trial 1, 2, …, with its interval; None: nothing was scored."""

    label: str
    kind: str
    solved: Sequence[float | None]
    low: Sequence[float | None]
    high: Sequence[float | None]
    n: int


def ending(path: str) -> str:
    """The ending of the file. Raises `InvalidInput` where it is neither .svg nor .png."""
    found = Path(path).suffix.lower()
    if found not in MEDIA:
        raise InvalidInput(f"The name of the plot {path} must end in {' or '.join(MEDIA)}.")
    return found


def check_installed() -> None:
    """Raises `InvalidInput`, saying what to install, where matplotlib is missing."""
    require("A plot needs matplotlib", "matplotlib", "plot")


def curves(report: Report) -> list[Curve]:
    found = list[Curve]()
    for label, run in zip(report.labels, report.runs, strict=True):
        rates, kind = [at.solved for at in run.figures.trials], kind_of(run)
        n = max((rate.n for rate in rates), default=0)
        columns = ([rate.value for rate in rates], [rate.low for rate in rates], [rate.high for rate in rates])
        found.append(Curve(f"{label}{_NOTES.get(kind, '')} (n={n})", kind, *columns, n))
    return found


def draw(curves: Sequence[Curve], form: str, frame: Frame = BY_TRIAL) -> bytes:
    """The picture as a file's bytes; the same curves give the same bytes.

    form: ".svg" or ".png". Raises `InvalidInput` without matplotlib.
    """
    check_installed()
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fixed: dict[str, Any] = {"svg.hashsalt": "mulligan", "svg.fonttype": "none", "font.family": "sans-serif"}
    with cast(Any, matplotlib).rc_context(fixed):
        figure: Any = Figure(figsize=(8, 5), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        axes: Any = figure.subplots()
        last = max([2, *(len(curve.solved) for curve in curves)])
        for number, curve in enumerate(curves):
            _line(axes, curve, last, COLOURS[number % len(COLOURS)], f"curve-{number + 1}")
        _frame(axes, last, frame)
        _labels(axes, curves)
        written = io.BytesIO()
        omitted: Any = {"Date": None, "Creator": None} if form == ".svg" else {"Software": None}
        figure.savefig(written, format=form[1:], metadata=omitted)
    return written.getvalue()


def _line(axes: Any, curve: Curve, last: int, colour: str, id: str) -> None:
    known = list[tuple[int, float, float, float]]()
    for trial, (solved, low, high) in enumerate(zip(curve.solved, curve.low, curve.high, strict=True), 1):
        if solved is not None and low is not None and high is not None:
            known.append((trial, solved, low, high))
    if not known:
        return
    trials, solved, low, high = (list(column) for column in zip(*known, strict=True))
    dots = {"marker": "o", "markersize": 5} if last <= _DENSE else {}
    axes.plot(trials, solved, LINES[curve.kind], color=colour, linewidth=2, gid=id, **dots)
    if len(known) == 1:
        axes.errorbar(trials, solved, yerr=[[solved[0] - low[0]], [high[0] - solved[0]]], color=colour, capsize=4)
    else:
        axes.fill_between(trials, low, high, color=colour, alpha=0.13, linewidth=0)
    if trials[-1] < last:  # a thin line to the label, as this run had no further trials
        axes.plot([trials[-1], last], [solved[-1]] * 2, color=colour, linewidth=0.7, alpha=0.6)


def _frame(axes: Any, last: int, frame: Frame) -> None:
    axes.set_xlim(0.8, last + 0.1)
    axes.set_ylim(0, 1)
    if last <= _DENSE:
        axes.set_xticks(range(1, last + 1))
    for change in frame.changes:
        axes.axvline(change, color="0.6", linewidth=1, linestyle=":")
    axes.set_yticks([n / 5 for n in range(6)], [f"{20 * n} %" for n in range(6)])
    axes.set_xlabel(frame.across)
    axes.set_ylabel(frame.up)
    axes.set_title(frame.title, loc="left")
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _labels(axes: Any, curves: Sequence[Curve]) -> None:
    """Write a label beside the end of each line, moved apart where they overlap; also for a curve without points."""
    ends = [next((value for value in reversed(curve.solved) if value is not None), None) for curve in curves]
    order = sorted(range(len(curves)), key=lambda n: (ends[n] is not None, ends[n] or 0.0, n))
    heights, floor = dict[int, float](), 0.0
    for n in order:
        heights[n] = floor = max(ends[n] or 0.0, floor)
        floor += _NEAR
    over = max(0.0, floor - _NEAR - 1)
    right = axes.get_xlim()[1]
    for n in order:
        text = curves[n].label if ends[n] is not None else f"{curves[n].label}: nothing scored"
        at = (right + 0.02, heights[n] - over)
        axes.text(*at, text, color=COLOURS[n % len(COLOURS)], va="center", fontsize=9)
