"""Reads benchmark runs from the store and makes their report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

from mulligan.bench.report.about import About, about
from mulligan.bench.report.figures import Comparison, Figures, Recorded, compare, figures
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Store
from mulligan.core.records import Json

SCHEMA = 2
"""The version of the JSON form; it rises when a key goes or changes its meaning."""
_ALL = 1_000_000


@dataclass(frozen=True)
class OneRun:
    about: About
    figures: Figures
    recorded: Recorded

    @property
    def label(self) -> str:
        """A short name for tables and plots; the report makes it unique."""
        method = self.about.method or self.about.benchmark
        return f"{method} with {self.about.strategy}" if self.about.replaced else method


@dataclass(frozen=True)
class Report:
    """labels: one for each run, all different. comparisons: of the first run with each of the others,
    or of every pair."""

    runs: Sequence[OneRun]
    labels: Sequence[str]
    comparisons: Sequence[Comparison]


async def read_run(store: Store, prefix: str) -> Recorded:
    """The record of the run whose id begins so. Raises `NotFound`, `StoreError`."""
    run = await store.benches.run(prefix)
    results = await store.benches.results(run.id)
    ended = {f"{run.id}.{result.position}" for result in results}
    episodes = await store.list(run=run.id, limit=_ALL)
    return Recorded(run, results, {e.id: e for e in episodes if e.id.rpartition(".")[0] in ended})


def make_report(recorded: Sequence[Recorded], *, every_pair: bool = False) -> Report:
    """every_pair: each run compared with each before it, and not the first alone.

    Raises `InvalidInput` for the same run twice, and for runs that cannot be compared.
    """
    ids = [one.run.id for one in recorded]
    if len(set(ids)) < len(ids):
        raise InvalidInput("A run is given twice: a report compares different ones.")
    runs = [OneRun(about(one.run, one.episodes.values()), figures(one), one) for one in recorded]
    pairs = [pair for pair in combinations(recorded, 2) if every_pair or pair[0] is recorded[0]]
    return Report(runs, _labels(runs), [compare(a, b) for a, b in pairs])


def _labels(runs: Sequence[OneRun]) -> Sequence[str]:
    """By method; where that is the same, with what tells them apart."""
    labels = [run.label for run in runs]
    models = [next(iter(run.about.models.values()), "").partition("@")[0] for run in runs]
    for extra in (models, [run.about.run for run in runs]):
        if len(set(labels)) == len(labels):
            break
        if len(set(extra)) > 1:
            labels = [f"{label} ({more})" if more else label for label, more in zip(labels, extra, strict=True)]
    return labels


def as_json(report: Report) -> Json:
    """See docs/benchmark-report.md for every key."""
    from importlib.metadata import version

    return {
        "schema": SCHEMA,
        "mulligan": version("mulligan"),
        "runs": [
            {"label": label, **asdict(run.about), **asdict(run.figures)}
            for label, run in zip(report.labels, report.runs, strict=True)
        ],
        "comparisons": [asdict(comparison) for comparison in report.comparisons],
    }
