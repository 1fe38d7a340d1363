"""The first page: what failed, what was learned, and whether it helped; each a sentence with a link."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.core.protocols import Brief
from mulligan.pages import count, hook_status, rate
from mulligan.plugins import Lesson, Selection
from mulligan.studio.charts import History, history
from mulligan.studio.pages.bank import worths
from mulligan.studio.pages.runs import STATES, live, rows_of
from mulligan.studio.rendering import Studio, render, studio_of

NEWEST = 200
"""Runs that the figures are of."""
FEW = 4
"""Rows of each list."""
MAX_WAITING = 100
LIKELY = 0.8
"""The probability from which a lesson is said to help, or to harm; its interval stands beside it."""


@dataclass(frozen=True)
class Rate:
    """How many of some runs were solved on the first try, with the 95 % interval of their share."""

    name: str
    first: int
    solved: int
    runs: int

    @property
    def words(self) -> str:
        of = rate(self.first, self.runs)
        share = f"{100 * (of.value or 0):.0f} %, {100 * (of.low or 0):.0f} to {100 * (of.high or 0):.0f}"
        return f"{of.count} of {of.n} on the first try ({share})"


async def overview(request: Request) -> Response:
    studio = studio_of(request)
    briefs = await studio.store.briefs(agent=studio.agent_id, limit=NEWEST, benches=False)
    ended = [one for one in briefs if one.judged and one.stop is not None]
    failed = [one for one in briefs if one.stop in (*STATES["failed"][1], *STATES["paused"][1])][:FEW]
    lessons = await _lessons(studio)
    return render(
        request,
        "overview.html",
        rates=_rates(ended),
        history=_history(ended),
        runs=len(briefs),
        failed=await rows_of(studio, failed),
        learned=lessons["newest"],
        helped=lessons["worth"],
        harmed=lessons["harm"],
        worth=await worths(studio, [*lessons["worth"], *lessons["harm"]]),
        waiting=await _waiting(studio, briefs),
        live="/live/overview",
    )


def _rates(ended: Sequence[Brief]) -> Sequence[Rate]:
    """With memory and without."""
    groups: Mapping[str, Sequence[Brief]] = {
        "with memory": [one for one in ended if one.head.settings.get("recalls")],
        "without memory": [one for one in ended if not one.head.settings.get("recalls")],
    }
    return [
        Rate(name, sum(_first(one) for one in group), sum(one.stop == "solved" for one in group), len(group))
        for name, group in groups.items()
        if group
    ]


def _first(brief: Brief) -> bool:
    return brief.stop == "solved" and brief.trials == 1


def _history(ended: Sequence[Brief]) -> History:
    """By day: runs solved on the first try, later, and not."""
    days = dict[str, list[int]]()
    for one in sorted(ended, key=lambda one: one.started):
        day = days.setdefault(time.strftime("%m-%d", time.localtime(one.started)), [0, 0, 0])
        day[0 if _first(one) else 1 if one.stop == "solved" else 2] += 1
    return history(list(days.items())[-14:])


async def _lessons(studio: Studio) -> Mapping[str, Sequence[Lesson]]:
    """The newest lessons, and those that are measured to help or to harm."""
    newest = await studio.bank.list(Selection(limit=FEW))
    found = dict[str, Sequence[Lesson]](newest=newest)
    for order in ("worth", "harm"):
        rows = await studio.bank.list(Selection(limit=FEW, order=order, states=("active", "retired")))
        counted = await worths(studio, rows)
        chances = {one.id: up.positive for one in rows if (tally := counted.get(one.id)) and (up := tally.uplift)}
        likely = {id for id, chance in chances.items() if (chance if order == "worth" else 1 - chance) >= LIKELY}
        found[order] = [one for one in rows if one.id in likely]
    return found


async def _waiting(studio: Studio, briefs: Sequence[Brief]) -> Sequence[tuple[str, str]]:
    """Decisions that wait for a person, each with where it is made."""
    quarantined = await studio.bank.list(Selection(("quarantined",), limit=MAX_WAITING))
    questions = [one for one in await studio.bank.pending() if one.status == "waiting"]
    paused = [one for one in briefs if one.stop in STATES["paused"][1]]
    status = await asyncio.to_thread(hook_status, str(studio.root)) if studio.agent_id is None else None
    found = {
        f"{count(len(quarantined), 'quarantined lesson')} to read": ("/bank?state=quarantined", len(quarantined)),
        f"{count(status.candidates if status else 0, 'candidate')} of coding agents to review": (
            "/hooks#candidates",
            status.candidates if status else 0,
        ),
        f"{count(len(questions), 'question')} of the bank to answer": ("/queue", len(questions)),
        f"{count(len(paused), 'run')} to continue": ("/runs?state=paused", len(paused)),
    }
    return [(text, address) for text, (address, number) in found.items() if number]


routes = [Route("/", overview), Route("/live/overview", live)]
