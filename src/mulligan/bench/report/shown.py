"""Benchmark runs as a page for people shows them: the list, and one run or several compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mulligan.bench.harness.plan import STREAM, options_of_today
from mulligan.bench.report.figures import make_report, read_run
from mulligan.bench.report.page import page, solved_by_tries, summary
from mulligan.bench.report.plot import by_tries, spending
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.protocols import Store
from mulligan.text.charts import Chart
from mulligan.text.pages import Block, Heading


@dataclass(frozen=True)
class BenchReport:
    """One run or several, compared.

    Attributes:
        labels: of the runs.
        result: in a few lines.
        curve, spending: charts, each with its table in `by_tries` and `spent`.
        details: all other figures, with headings from level 3.
        results: of each run, by case.
    """

    labels: Sequence[str]
    result: Sequence[Block]
    curve: Chart
    by_tries: Block
    spending: Chart
    spent: Block
    details: Sequence[Block]
    results: Sequence[Sequence[CaseResult]]


async def bench_report(store: Store, ids: Sequence[str]) -> BenchReport:
    """The first of these runs compared with each of the others. Raises `NotFound`, `InvalidInput`."""
    report = make_report([await read_run(store, id) for id in ids])
    result, (chart, spent) = summary(report), spending(report)
    lowered = [
        replace(one, level=min(one.level + 1, 6)) if isinstance(one, Heading) else one
        for one in page(report)[1 + len(result) :]
    ]
    results = [run.recorded.results for run in report.runs]
    return BenchReport(report.labels, result, by_tries(report), solved_by_tries(report), chart, spent, lowered, results)


def method_of(run: BenchRun) -> str | None:
    """The method and the strategy of a run, in words. None for a stream, which has no report of this kind."""
    if run.benchmark.startswith(STREAM):
        return None
    options = options_of_today(run.options)
    return " with ".join(str(name) for name in (options.get("method"), options.get("strategy")) if name)
