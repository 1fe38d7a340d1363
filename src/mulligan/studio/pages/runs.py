"""The recorded runs, newest first."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.studio.rendering import PAGE_ROWS, Rows, render, studio_of


async def runs(request: Request) -> Response:
    studio, after = studio_of(request), request.query_params.get("after")
    found = await studio.store.briefs(agent=studio.agent_id, before=after, limit=PAGE_ROWS + 1)
    shown = found[:PAGE_ROWS]
    return render(request, "runs.html", rows=Rows(shown, shown[-1].id if len(found) > PAGE_ROWS else ""))


routes = [Route("/runs", runs)]
