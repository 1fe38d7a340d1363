"""The list of runs, newest first, with search and filters; live on its first page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.pages import count, run_state, verdict
from mulligan.plugins import Episode, StoreError
from mulligan.running import Brief
from mulligan.studio.pages import episode
from mulligan.studio.rendering import PAGE_ROWS, Rows, Studio, render, studio_of, with_query

STATES: Mapping[str, tuple[str, Sequence[str]]] = {
    "": ("all", ()),
    "solved": ("solved", ("solved",)),
    "failed": ("not solved", ("exhausted", "gave_up", "stuck", "unconfirmed")),
    "paused": ("paused or stopped by an error", ("error", "interrupted", "over_budget")),
    "going": ("still running", ("",)),
}
"""The filters, by their names in an address: the label, and the reasons to stop that match."""
MAX_TRIES = 30
"""A run with more tries is not loaded, which would take too long: its row has only their number."""


@dataclass(frozen=True)
class Row:
    """A run in the list.

    Attributes:
        mark: of its state.
        dots: for each try the mark of its verdict, and the verdict in words.
        reason: why the run paused.
        of: the kind of its task, else the name of the function or agent.
    """

    brief: Brief
    state: str
    mark: str
    dots: Sequence[tuple[str, str]] = ()
    seconds: float | None = None
    tokens: int | None = None
    reason: str = ""
    of: str = ""


async def runs(request: Request) -> Response:
    studio, query = studio_of(request), request.query_params
    chosen = query.get("state", "")
    after, text, benches = query.get("after"), query.get("q", "").strip(), query.get("benches") == "1"
    briefs = await studio.store.briefs(
        agent=studio.agent_id,
        before=after,
        limit=PAGE_ROWS + 1,
        text=text,
        stops=STATES.get(chosen, STATES[""])[1],
        benches=benches,
    )
    shown = briefs[:PAGE_ROWS]
    rows = Rows(await rows_of(studio, shown), shown[-1].id if len(briefs) > PAGE_ROWS else "")
    return render(
        request,
        "runs.html",
        rows=rows,
        more=with_query(request, after=rows.next, id="") if rows.next else "",
        filters={"q": text, "state": chosen, "benches": benches},
        states={name: label for name, (label, _) in STATES.items()},
        totals=_totals(rows.items),
        selected=set(query.getlist("id")),
        live="" if after else "/runs/live",
    )


async def rows_of(studio: Studio, briefs: Sequence[Brief]) -> Sequence[Row]:
    return await asyncio.gather(*(_row(studio, brief) for brief in briefs))


async def _row(studio: Studio, brief: Brief) -> Row:
    running = brief.stop is None and await studio.store.holder(brief.id) is not None
    episode = await _episode(studio, brief)
    state = run_state(episode or brief, running)
    owner = str(brief.head.settings.get("function") or brief.agent or "")
    if episode is None:
        return Row(brief, state.word, state.mark, of=owner)
    return Row(
        brief,
        state.word,
        state.mark,
        dots=[verdict(trial.feedback) for trial in episode.trials],
        seconds=episode.seconds,
        tokens=episode.usage.tokens,
        reason=state.detail if state.name.startswith("paused") else "",
        of=episode.task.kind or owner,
    )


async def _episode(studio: Studio, brief: Brief) -> Episode | None:
    """The whole run. None: it has too many tries, or cannot be read."""
    if brief.trials > MAX_TRIES:
        return None
    try:
        return await studio.store.load(brief.id)
    except StoreError:
        return None


def _totals(rows: Sequence[Row]) -> Mapping[str, str]:
    """The totals of the runs on the page."""
    solved = [row for row in rows if row.brief.stop == "solved"]
    first = [row for row in solved if row.brief.trials == 1]
    return {
        "runs": count(len(rows), "run"),
        "solved": str(len(solved)),
        "on the first try": str(len(first)),
        "tokens": f"{tokens:,}" if (tokens := sum(row.tokens or 0 for row in rows)) else "",
        "seconds": f"{sum(row.seconds or 0 for row in rows):,.1f}",
    }


async def live(request: Request) -> Response:
    studio = studio_of(request)
    return studio.listeners.stream(studio.store.revision)


routes = [Route("/runs", runs), Route("/runs/live", live), *episode.routes]
