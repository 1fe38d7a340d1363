"""Values as texts in the cells of a report's tables."""

from __future__ import annotations

from mulligan.bench.report.statistics import Estimate, Mean
from mulligan.core.rates import Rate
from mulligan.text.figures import money

EMPTY, UNKNOWN = "-", "unknown"
"""What cells contain in place of a value."""


def number(value: float | None, form: str) -> str:
    return EMPTY if value is None else format(value, form)


def interval_of(bounds: Estimate | Mean | Rate | None, form: str) -> str:
    if bounds is None or bounds.low is None or bounds.high is None:
        return EMPTY
    return f"{bounds.low:{form}} to {bounds.high:{form}}"


def dollars(cost: float | None) -> str:
    return UNKNOWN if cost is None else money(cost) if cost else EMPTY
