"""The page of coding agents in this project: their sessions, and candidates to review."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.pages import HookRecord
from mulligan.studio.rendering import render, studio_of
from mulligan.studio.safety import form_of


async def hooks(request: Request) -> Response:
    """The record of `mulligan hooks status`, session by session."""
    studio = studio_of(request)
    record = await HookRecord.read(str(studio.root), studio.chosen_bank)
    return render(request, "hooks.html", record=record, live="/runs/live")


async def review(request: Request) -> Response:
    """Accepts or rejects a candidate, as `mulligan memory review` does."""
    studio, form = studio_of(request), form_of(request)
    bank = await studio.bank_of(form.get("id", ""))
    await HookRecord.review(bank, form["id"], form.get("do", ""), by="studio")
    return RedirectResponse("/hooks#candidates", 303)


routes = [Route("/hooks", hooks), Route("/hooks", review, methods=["POST"])]
