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

OF_ALL = frozenset({"Benchmarks", "Coding agents"})
"""Areas that a studio of one agent leaves out: a benchmark run is no agent's, and hooks have banks of their own."""


def application(
    policy: HostPolicy,
    *,
    service: Service,
    write: bool = False,
    tokens: Sequence[Token] = (),
    cookie: str = "mulligan_studio",
    listeners: Listeners | None = None,
) -> Starlette:
    """The studio of one store, and of one agent's bank. It closes the store when its lifespan ends.

    Args:
        policy: which Host and Origin headers are accepted.
        service: the store and the banks, of the agent that it was started for.
        write: whether visitors may change anything.
        tokens: what visitors must bear; none: anybody on this machine may look.
        cookie: the name under which a browser keeps the token.
        listeners: the pages that follow what is recorded.
    """
    studio = Studio(service, secrets.token_urlsafe(24), write, listeners or Listeners())

    pages = {name: page for name, page in PAGES.items() if studio.agent_id is None or name not in OF_ALL}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        compile_templates()  # now, and not while the first visitor waits
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
    """An error as a page that says what is wrong."""
    nav: Mapping[str, str] = request.app.state.nav
    areas = [name for name, path in nav.items() if path != "/" and request.url.path.startswith(path)]
    back = {"name": areas[0] if areas else "Overview", "back": nav[areas[0]] if areas else "/"}
    if isinstance(error, HTTPException):
        lost = "There is no page at this address: it was removed, or the address is incomplete."
        missing = lost if error.status_code == 404 else error.detail
        title = "Page not found" if error.status_code == 404 else "Not possible"
        return render(request, "error.html", status=error.status_code, title=title, message=missing, **back)
    title, status = ("Not found", 404) if isinstance(error, NotFound) else ("Not possible", 400)
    return render(request, "error.html", status=status, title=title, message=str(error), **back)
