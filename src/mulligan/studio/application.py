"""The studio as a Starlette application: its pages, its static files, and its errors as pages."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from mulligan.pages import style_sheet
from mulligan.plugins import MulliganError, NotFound
from mulligan.serving import HostPolicy, Service, Token
from mulligan.studio.live import Listeners
from mulligan.studio.pages import PAGES
from mulligan.studio.rendering import Studio, compile_templates, render
from mulligan.studio.safety import Safety

FOR_ALL_AGENTS = frozenset({"Benchmarks", "Coding agents"})
"""Areas that a studio of one agent leaves out: benchmark runs belong to no agent, and hooks use their own banks."""


def application(
    policy: HostPolicy,
    *,
    service: Service,
    write: bool = False,
    tokens: Sequence[Token] = (),
    cookie: str = "mulligan_studio",
    listeners: Listeners | None = None,
) -> Starlette:
    """The application for one service, which it closes when its lifespan ends.

    Args:
        policy: which Host and Origin headers are accepted.
        service: the store and the banks, of the agent that it was started for.
        write: whether visitors may change anything.
        tokens: visitors must send one of them. Without any, everyone on this machine may visit.
        cookie: the name of the cookie that holds the token.
        listeners: the open pages that update live.
    """
    studio = Studio(service, secrets.token_urlsafe(24), write, listeners or Listeners())
    pages = {name: page for name, page in PAGES.items() if studio.agent_id is None or name not in FOR_ALL_AGENTS}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        compile_templates()  # so that the first visitor does not wait for it
        yield
        await service.close()

    app = Starlette(
        routes=[
            *(route for page in pages.values() for route in page.routes),
            Route("/static/blocks.css", _blocks),
            Mount("/static", StaticFiles(directory=Path(__file__).with_name("static"))),
        ],
        middleware=[Middleware(Safety, studio=studio, policy=policy, tokens=tokens, cookie=cookie)],
        exception_handlers={MulliganError: _error, HTTPException: _error},
        lifespan=lifespan,
    )
    app.state.studio = studio
    app.state.nav = {name: page.routes[0].path for name, page in pages.items()}
    return app


def _blocks(_: Request) -> Response:
    return FileResponse(style_sheet())


def _error(request: Request, error: Exception) -> Response:
    """A page that says what is wrong, with a link to the area that the address belongs to."""
    nav: Mapping[str, str] = request.app.state.nav
    area = next((name for name, path in nav.items() if path != "/" and request.url.path.startswith(path)), "Overview")
    status, title, message = 400, "Invalid request", str(error)
    if isinstance(error, NotFound):
        status, title = 404, "Not found"
    elif isinstance(error, HTTPException):
        status, message = error.status_code, error.detail
        if status == 404:
            title = "Page not found"
            message = "There is no page at this address. It may have been removed, or the address may be incomplete."
    return render(request, "error.html", status=status, title=title, message=message, name=area, back=nav[area])
