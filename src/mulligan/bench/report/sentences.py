"""What a report says first: of each run how many cases it solved, of each comparison who solved more, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.bench.report.figures import Comparison, Report
from mulligan.bench.report.statistics import Rate
from mulligan.text.plain import count

SURE = 0.05
"""The p-value below which a difference is called one."""


def sentences(report: Report) -> Sequence[str]:
    """The result of a report: the comparisons, or of a single run its rate."""
    labels = {run.about.run: label for label, run in zip(report.labels, report.runs, strict=True)}
    if report.comparisons:
        return [_compared(one, labels[one.a], labels[one.b]) for one in report.comparisons]
    runs = zip(report.labels, report.runs, strict=True)
    return [_alone(label, run.figures.trials[-1].solved) for label, run in runs if run.figures.trials]


def _alone(label: str, solved: Rate) -> str:
    if solved.value is None or solved.low is None or solved.high is None:
        return f"{label} has no case with a verdict."
    interval = f"95 % interval {100 * solved.low:.0f} to {100 * solved.high:.0f}"
    return f"{label} solved {solved.count} of {solved.n} cases: {100 * solved.value:.0f} % ({interval})."


def _compared(one: Comparison, a: str, b: str) -> str:
    found = one.counts
    more = found.only_b - found.only_a
    interval = f"95 % interval {100 * found.low:+.0f} to {100 * found.high:+.0f}"
    points = f"{100 * found.difference:+.0f} points ({interval}), p {one.p:.2g}"
    if more == 0:
        return f"{b} solved as many of {count(found.n, 'case')} as {a}: {points}."
    said = f"{b} solved {abs(more)} {'more' if more > 0 else 'fewer'} of {found.n} cases than {a}: {points}."
    return said if one.p < SURE else f"{said} The difference may be chance."
