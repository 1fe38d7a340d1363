"""Benchmark runs: the list, and one run or several compared: curves, tables, case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.core.benchmarks import BenchRun, CaseResult
from mulligan.pages import bench_report, legend, method_of, svg
from mulligan.plugins import InvalidInput
from mulligan.studio.rendering import PAGE_ROWS, Studio, render, studio_of, with_query

RUNS = 20
"""Runs in the list at first; each further look shows twice as many."""

MOST_COMPARED = 6
KINDS: Mapping[str, str] = {"solved": "ok", "failed": "bad", "unjudged": "unknown", "error": "error"}
"""Of badges, by how a case ended."""
SHOWN: Mapping[str, str] = {
    "": "all cases",
    "failures": "not solved by every run",
    "differ": "with different results",
}


@dataclass(frozen=True)
class Row:
    """A run in the list. counts: how its cases ended, with the kinds of their badges; stream: it has no report here."""

    run: BenchRun
    method: str
    model: str
    ended: int
    counts: Sequence[tuple[str, str, int]]
    stream: bool


@dataclass(frozen=True)
class Cell:
    """How a case ended in a run, and its scores after each trial. episodes: ids, one for each sample or restart."""

    status: str
    kind: str
    scores: str
    text: str
    episodes: Sequence[str]


async def benchmarks(request: Request) -> Response:
    studio, limit = studio_of(request), _number(request, "limit", RUNS)
    found = await studio.store.benches.runs(limit + 1)
    return render(
        request,
        "benchmarks.html",
        rows=[await _row(studio, run) for run in found[:limit]],
        more=with_query(request, limit=str(2 * limit)) if len(found) > limit else "",
    )


async def _row(studio: Studio, run: BenchRun) -> Row:
    results, method = await studio.store.benches.results(run.id), method_of(run)
    counts = Counter[str](result.status for result in results)
    return Row(
        run,
        method or "",
        str(run.options.get("model") or ""),
        len(results),
        [(kind, status, counts[status]) for status, kind in KINDS.items() if counts[status]],
        method is None,
    )


async def compared(request: Request) -> Response:
    """The runs named in the address, the first compared with each of the others."""
    studio, ids = studio_of(request), list(dict.fromkeys(request.query_params.getlist("run")))
    if not 1 <= len(ids) <= MOST_COMPARED:
        raise InvalidInput(f"Choose from 1 to {MOST_COMPARED} benchmark runs, not {len(ids)}.")
    report = await bench_report(studio.store, ids)
    if request.query_params.get("format") == "svg":
        chart = report.curve if request.query_params.get("figure") == "curve" else report.spending
        return Response(svg(chart, alone=True), media_type="image/svg+xml")
    shown, after = request.query_params.get("show", ""), _number(request, "after", 0)
    cases = _cases(report.results, shown)
    return render(
        request,
        "compared.html",
        report=report,
        legend=legend(report.curve),
        curve_file=with_query(request, format="svg", figure="curve"),
        spending_file=with_query(request, format="svg", figure="spending"),
        cases=cases[after : after + PAGE_ROWS],
        count=len(cases),
        more=with_query(request, after=str(after + PAGE_ROWS)) if len(cases) > after + PAGE_ROWS else "",
        shown=shown,
        filters=[(name, text, with_query(request, show=name, after="")) for name, text in SHOWN.items()],
    )


def _cases(results: Sequence[Sequence[CaseResult]], shown: str) -> Sequence[tuple[str, Sequence[Cell | None]]]:
    """Each case with its result in each run; None: it has not ended there."""
    by_run = [{result.case: result for result in of_run} for of_run in results]
    order = dict.fromkeys(result.case for of_run in results for result in of_run)
    found = [(case, [found.get(case) for found in by_run]) for case in order]
    if shown == "failures":
        found = [(case, of) for case, of in found if any(one is not None and not one.solved for one in of)]
    if shown == "differ":
        found = [(case, of) for case, of in found if len({one and one.status for one in of}) > 1]
    return [(case, [one and _cell(one) for one in of]) for case, of in found]


def _cell(result: CaseResult) -> Cell:
    scores = result.episodes[0].scores if result.episodes else ()
    said = " → ".join("?" if score is None else f"{score:g}" for score in scores)
    text = result.text if result.status == "error" else ""  # else it may reveal the target
    return Cell(result.status, KINDS[result.status], said, text, [one.episode for one in result.episodes])


async def one_run(request: Request) -> Response:
    return RedirectResponse(request.url_for("compared").include_query_params(run=request.path_params["id"]))


def _number(request: Request, name: str, otherwise: int) -> int:
    given = request.query_params.get(name, "")
    return min(int(given), 100_000) if given.isdecimal() and len(given) < 8 else otherwise


routes = [
    Route("/benchmarks", benchmarks),
    Route("/benchmarks/compare", compared, name="compared"),
    Route("/benchmarks/{id}", one_run),
]
