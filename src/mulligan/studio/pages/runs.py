"""The recorded runs: newest first, searched and filtered by the store, live on the first page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.app.story import state
from mulligan.core.protocols import Brief
from mulligan.studio.marks import kind_of_state
from mulligan.studio.pages import episode
from mulligan.studio.rendering import PAGE_ROWS, Rows, Studio, render, studio_of, with_query

STATES: Mapping[str, tuple[str, Sequence[str]]] = {
    "": ("all", ()),
    "solved": ("solved", ("solved",)),
    "failed": ("not solved", ("exhausted", "gave_up", "stuck", "unconfirmed")),
    "paused": ("paused, or stopped by an error", ("error", "interrupted", "over_budget")),
    "going": ("not ended", ("",)),
}
"""What a list can be filtered by: its name in an address, what it is called, and the reasons that it takes."""


@dataclass(frozen=True)
class Row:
    """A run in the list. kind: of its badge."""

    brief: Brief
    state: str
    kind: str


async def runs(request: Request) -> Response:
    studio, query = studio_of(request), request.query_params
    chosen = query.get("state", "")
    after, text, benches = query.get("after"), query.get("q", "").strip(), query.get("benches") == "1"
    found = await studio.store.briefs(
        agent=studio.agent_id,
        before=after,
        limit=PAGE_ROWS + 1,
        text=text,
        stops=STATES.get(chosen, STATES[""])[1],
        benches=benches,
    )
    shown = found[:PAGE_ROWS]
    rows = Rows([await _row(studio, one) for one in shown], shown[-1].id if len(found) > PAGE_ROWS else "")
    return render(
        request,
        "runs.html",
        rows=rows,
        more=with_query(request, after=rows.next) if rows.next else "",
        filters={"q": text, "state": chosen, "benches": benches},
        states={name: said for name, (said, _) in STATES.items()},
        live="" if after else "/runs/live",
    )


async def _row(studio: Studio, brief: Brief) -> Row:
    running = brief.stop is None and await studio.store.holder(brief.id) is not None
    said = state(brief, running)
    return Row(brief, said, kind_of_state(brief, said))


async def live(request: Request) -> Response:
    studio = studio_of(request)
    return studio.listeners.stream(studio.store.revision)


routes = [Route("/runs", runs), Route("/runs/live", live), *episode.routes]
