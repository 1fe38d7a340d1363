"""The pages of benchmark runs: the list, and a comparison of runs by curves, tables and cases."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.pages import BenchReport
from mulligan.plugins import InvalidInput
from mulligan.studio.rendering import PAGE_ROWS, render, studio_of, with_query

FIRST_RUNS = 20
"""The list first shows this many runs; each "more" doubles the number."""

MAX_RUNS = 6
MARKS: Mapping[str, str] = {"solved": "passed", "failed": "failed", "unjudged": "unjudged", "error": "error"}
"""The mark of each status of a case."""
FILTERS: Mapping[str, str] = {
    "": "all cases",
    "failures": "not solved by every run",
    "differ": "with different results",
}
"""The choices of cases, by their names in an address."""


async def benchmarks(request: Request) -> Response:
    studio, limit = studio_of(request), _number(request, "limit", FIRST_RUNS)
    rows = await BenchReport.rows(studio.store, limit + 1)
    return render(
        request,
        "benchmarks.html",
        rows=rows[:limit],
        marks=MARKS,
        more=with_query(request, limit=str(2 * limit)) if len(rows) > limit else "",
    )


async def compared(request: Request) -> Response:
    """Compares the first run in the address with each of the others."""
    studio, ids = studio_of(request), list(dict.fromkeys(request.query_params.getlist("run")))
    if not 1 <= len(ids) <= MAX_RUNS:
        raise InvalidInput(f"Select 1 to {MAX_RUNS} benchmark runs, not {len(ids)}.")
    report = await BenchReport.of(studio.store, ids)
    if request.query_params.get("format") == "svg":
        chart = report.curve if request.query_params.get("figure") == "curve" else report.spending
        return Response(chart.svg(alone=True), media_type="image/svg+xml")
    shown, after = request.query_params.get("show", ""), _number(request, "after", 0)
    cases = list(report.cases.items())
    if shown == "failures":
        cases = [(id, row) for id, row in cases if any(result is not None and not result.solved for result in row)]
    if shown == "differ":
        cases = [(id, row) for id, row in cases if len({result and result.status for result in row}) > 1]
    return render(
        request,
        "compared.html",
        report=report,
        legend=report.curve.legend,
        curve_file=with_query(request, format="svg", figure="curve"),
        spending_file=with_query(request, format="svg", figure="spending"),
        cases=cases[after : after + PAGE_ROWS],
        count=len(cases),
        marks=MARKS,
        more=with_query(request, after=str(after + PAGE_ROWS)) if len(cases) > after + PAGE_ROWS else "",
        shown=shown,
        filters=[(name, text, with_query(request, show=name, after="")) for name, text in FILTERS.items()],
    )


async def one_run(request: Request) -> Response:
    return RedirectResponse(request.url_for("compared").include_query_params(run=request.path_params["id"]))


def _number(request: Request, name: str, default: int) -> int:
    """A number of the address; the default if it has none, or no sensible one."""
    text = request.query_params.get(name, "")
    return min(int(text), 100_000) if text.isdecimal() and len(text) < 8 else default


routes = [
    Route("/benchmarks", benchmarks),
    Route("/benchmarks/compare", compared, name="compared"),
    Route("/benchmarks/{id}", one_run),
]
