"""The page that says what works on this machine, and how to fix the rest."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.running import check_machine
from mulligan.studio.rendering import render, studio_of


async def doctor(request: Request) -> Response:
    """The report of `mulligan doctor`. It runs a few small jobs in the sandbox, so it takes a moment."""
    report = await asyncio.to_thread(check_machine, studio_of(request).service.config)
    return render(request, "doctor.html", report=report)


routes = [Route("/doctor", doctor)]
