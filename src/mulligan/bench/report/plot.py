"""The charts of a report: solved by number of tries, and what success costs."""

from __future__ import annotations

import os
from math import floor, log10
from pathlib import Path

from mulligan.bench.report.figures import Report
from mulligan.bench.report.page import kind_of
from mulligan.core.errors import InvalidInput
from mulligan.core.rates import Rate
from mulligan.text.charts import Chart, Curve, Point, counting_ticks
from mulligan.text.pages import Picture, Table

_KIND_NOTES = {"oracle": ", oracle", "scripted": ", no result"}
"""What follows the label of a curve, by the kind of its run."""


def check_ending(path: str) -> None:
    """Raises `InvalidInput` unless the file is an .svg."""
    if Path(path).suffix.lower() != ".svg":
        raise InvalidInput(
            f"The name of the plot {path} must end in .svg. A browser or rsvg-convert can convert it to PNG."
        )


def by_tries(report: Report) -> Chart:
    """The share of cases that each run solved, by the number of tries."""
    curves = list[Curve]()
    for label, run in zip(report.labels, report.runs, strict=True):
        rates = [at.solved for at in run.figures.trials]
        n = max((rate.n for rate in rates), default=0)
        points = [point(trial, rate) for trial, rate in enumerate(rates, 1) if rate.n]
        curves.append(Curve(f"{label}{_KIND_NOTES.get(kind_of(run), '')} (n={n})", points))
    return Chart(
        name="curve",
        title="Share of cases solved by number of tries, with 95 % intervals",
        axis_label="tries allowed",
        ticks=counting_ticks(max([2, *(len(run.figures.trials) for run in report.runs)])),
        curves=curves,
    )


def point(x: float, rate: Rate, label: str = "") -> Point:
    """The point of a known rate at `x`."""
    assert rate.value is not None
    assert rate.low is not None
    assert rate.high is not None
    return Point(x, rate.value, rate.low, rate.high, label)


def spending(report: Report) -> tuple[Chart, Table]:
    """What each run spent per case, and the share of the cases that it solved. Runs without a verdict are left out."""
    all_figures = [run.figures for run in report.runs]
    dollars = all(figures.spent.usage.cost for figures in all_figures)
    unit = "dollars" if dollars else "tokens"
    known = list[tuple[int, str, float, Rate]]()
    for number, (label, figures) in enumerate(zip(report.labels, all_figures, strict=True), 1):
        if figures.ended and figures.trials and figures.trials[-1].solved.n:
            usage = figures.spent.usage
            spent = (usage.cost or 0.0) if dollars else usage.tokens
            known.append((number, label, spent / figures.ended, figures.trials[-1].solved))
    most = _round_up(max([spent for _, _, spent, _ in known], default=0.0))
    chart = Chart(
        name="spending",
        title=f"Share of cases solved, with 95 % intervals, against the {unit} spent for each case",
        axis_label=f"{unit} for each case",
        ticks=[(most * n / 4, f"{most * n / 4:,.4g}") for n in range(5)],
        curves=[Curve(label, [point(spent, solved, str(number))]) for number, label, spent, solved in known],
        joined=False,
    )
    rows = [
        [str(number), label, f"{spent:,.4g}", f"{solved.value:.1%}", f"{solved.low:.1%} to {solved.high:.1%}"]
        for number, label, spent, solved in known
    ]
    columns = ["number in the figure", "run", f"{unit} for each case", "solved", "95 % interval"]
    return chart, Table(columns, rows, left=2)


def _round_up(most: float) -> float:
    """The next 1, 2, 4 or 8 times a power of ten, so that a quarter of it is a short number."""
    if most <= 0:
        return 1.0
    power = 10.0 ** floor(log10(most))
    return next(power * digit for digit in (1, 2, 4, 8, 10, 20) if power * digit > most * 1.02)


def write(chart: Chart, path: Path, folder: Path) -> Picture:
    """Writes the chart as a file. Returns the picture for a page in this folder.

    Raises `InvalidInput` if it cannot be written.
    """
    data = chart.svg(alone=True).encode()
    try:
        path.write_bytes(data)
    except OSError as error:
        raise InvalidInput(f"The plot cannot be written to {path}: {error.strerror or error}.") from error
    return Picture("Learning curve", os.path.relpath(path, folder), "image/svg+xml", data)
