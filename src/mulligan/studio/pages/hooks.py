"""Hooks of coding agents in this project: sessions, what was shown, errors that came back, and what went wrong."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.core.home import home_path
from mulligan.hooks.journal import FILE
from mulligan.hooks.status import Status, status_of
from mulligan.studio.rendering import render, studio_of
from mulligan.text.plain import count

MOST = 50
"""Sessions that the page lists, the newest first."""


async def hooks(request: Request) -> Response:
    """What `mulligan hooks status` says. A journal that is not there is not made by looking."""
    folder = studio_of(request).service.config.root or Path.cwd()
    status = await asyncio.to_thread(_status, str(folder))
    sessions = sorted(status.sessions, key=lambda one: -one.seen)[:MOST] if status else []
    return render(
        request,
        "hooks.html",
        found=status,
        facts=_facts(status) if status else {},
        sessions=sessions,
        older=len(status.sessions) - len(sessions) if status else 0,
    )


def _status(folder: str) -> Status | None:
    return status_of(folder) if os.path.exists(os.path.join(home_path(), FILE)) else None


def _facts(status: Status) -> Mapping[str, str]:
    moments = Counter(one.moment for one in status.shown if one.way == "shown")
    again, known = status.again()
    withheld_again, withheld = status.again("withheld")
    said = {
        "Project": status.project,
        "Bank": status.bank if status.bank != status.project else "the project's own",
        "Store": status.store,
        "Paused": ", ".join(one or "everywhere" for one in status.paused) or "nowhere",
        "Lessons": f"{status.kept} kept, {count(status.candidates, 'candidate')}",
        "Shown": ", ".join(f"{number} at {moment}" for moment, number in moments.items()) or "none yet",
        "Same error again": f"{again} of {count(known, 'lesson')} shown" if known else "not known yet",
        "When withheld": f"{withheld_again} of {withheld}" if withheld else "",
        "Calls denied": str(sum(one.way == "denied" for one in status.shown) or ""),
        **{f"Of {kind}": f"{kept} kept, {count(few, 'candidate')}" for kind, kept, few in status.subagents},
    }
    return {name: text for name, text in said.items() if text}


routes = [Route("/hooks", hooks)]
