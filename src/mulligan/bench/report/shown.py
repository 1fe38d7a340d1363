"""Reports of benchmark runs, for pages that show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mulligan.bench.harness.plan import is_stream, options_of_today
from mulligan.bench.report.figures import make_report, read_run
from mulligan.bench.report.page import page, solved_by_tries, summary
from mulligan.bench.report.plot import by_tries, spending
from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.core.protocols import Store
from mulligan.text.charts import Chart
from mulligan.text.pages import Block, Heading


@dataclass(frozen=True)
class BenchReport:
    """The report of one or more runs.

    Attributes:
        labels: the runs' labels.
        result: a summary in a few lines.
        curve, by_tries: the learning curve as a chart and as a table.
        spending, spent: the cost of success, as a chart and as a table.
        details: all other figures, with headings from level 3.
        cases: the cases by id, with their result in each run. None: the case has not ended in that run.
    """

    labels: Sequence[str]
    result: Sequence[Block]
    curve: Chart
    by_tries: Block
    spending: Chart
    spent: Block
    details: Sequence[Block]
    cases: Mapping[str, Sequence[CaseResult | None]]

    @classmethod
    async def of(cls, store: Store, ids: Sequence[str]) -> BenchReport:
        """Compares the first run with each of the others.

        Raises:
            NotFound, InvalidInput
        """
        report = make_report([await read_run(store, id) for id in ids])
        result, (chart, spent) = summary(report), spending(report)
        lowered = [
            replace(block, level=min(block.level + 1, 6)) if isinstance(block, Heading) else block
            for block in page(report)[1 + len(result) :]
        ]
        by_run = [{result.case: result for result in run.recorded.results} for run in report.runs]
        cases = {id: [results.get(id) for results in by_run] for run in by_run for id in run}
        return cls(report.labels, result, by_tries(report), solved_by_tries(report), chart, spent, lowered, cases)

    @staticmethod
    async def rows(store: Store, limit: int) -> Sequence[BenchRow]:
        """Returns the newest runs as rows of a list, newest first."""
        return [await _row(store, run) for run in await store.benches.runs(limit)]


@dataclass(frozen=True)
class BenchRow:
    """A run in a list.

    Attributes:
        method: the method and the strategy, in words. None: it is a stream, which has another report.
        counts: how many cases ended with each status.
    """

    run: BenchRun
    method: str | None
    model: str
    counts: Mapping[str, int]


async def _row(store: Store, run: BenchRun) -> BenchRow:
    results, options = await store.benches.results(run.id), options_of_today(run.options)
    named = " with ".join(str(name) for name in (options.get("method"), options.get("strategy")) if name)
    return BenchRow(
        run,
        method=None if is_stream(run) else named,
        model=str(run.options.get("model") or ""),
        counts=Counter[str](result.status for result in results),
    )
