"""The first page: what failed, what was learned, whether it helped, and what waits for a person."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mulligan.pages import HookRecord, count, rate
from mulligan.plugins import Lesson, Selection
from mulligan.running import Brief
from mulligan.studio.charts import OUTCOMES, History, history
from mulligan.studio.pages.bank import worths
from mulligan.studio.pages.runs import STATES, live, rows_of
from mulligan.studio.rendering import Studio, render, studio_of

RECENT_RUNS = 200
"""The figures are of this many runs."""
LIST_ROWS = 4
MAX_WAITING = 100
MIN_PROBABILITY = 0.8
"""A lesson is listed as helpful, or as harmful, if that is at least this probable."""


@dataclass(frozen=True)
class Rate:
    """How many runs of a group were solved, and how many of these on the first try."""

    name: str
    first: int
    solved: int
    runs: int

    @property
    def words(self) -> str:
        share = rate(self.first, self.runs)
        percent = f"{100 * (share.value or 0):.0f} %, {100 * (share.low or 0):.0f} to {100 * (share.high or 0):.0f}"
        return f"{share.count} of {share.n} on the first try ({percent})"


async def overview(request: Request) -> Response:
    studio = studio_of(request)
    briefs = await studio.store.briefs(agent=studio.agent_id, limit=RECENT_RUNS, benches=False)
    ended = [brief for brief in briefs if brief.judged and brief.stop is not None]
    failed = [brief for brief in briefs if brief.stop in (*STATES["failed"][1], *STATES["paused"][1])][:LIST_ROWS]
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
    """The rates of the runs with memory, and of those without."""
    groups: Mapping[str, Sequence[Brief]] = {
        "with memory": [brief for brief in ended if brief.head.settings.get("recalls")],
        "without memory": [brief for brief in ended if not brief.head.settings.get("recalls")],
    }
    return [
        Rate(name, sum(map(_is_first_try, group)), sum(brief.stop == "solved" for brief in group), len(group))
        for name, group in groups.items()
        if group
    ]


def _is_first_try(brief: Brief) -> bool:
    """Whether the run was solved on the first try."""
    return brief.stop == "solved" and brief.trials == 1


def _history(ended: Sequence[Brief]) -> History:
    """The runs of the last 14 days that have any."""
    days = dict[str, list[int]]()
    for brief in sorted(ended, key=lambda brief: brief.started):
        counts = days.setdefault(time.strftime("%m-%d", time.localtime(brief.started)), [0, 0, 0])
        outcome = "ok" if _is_first_try(brief) else "later" if brief.stop == "solved" else "bad"
        counts[OUTCOMES.index(outcome)] += 1
    return history(list(days.items())[-14:])


async def _lessons(studio: Studio) -> Mapping[str, Sequence[Lesson]]:
    """The newest lessons, those that help most ("worth"), and those that do most harm ("harm")."""
    lists = dict[str, Sequence[Lesson]](newest=await studio.bank.list(Selection(limit=LIST_ROWS)))
    for order in ("worth", "harm"):
        lessons = await studio.bank.list(Selection(limit=LIST_ROWS, order=order, states=("active", "retired")))
        uplifts = {id: tally.uplift for id, tally in (await worths(studio, lessons)).items()}
        lists[order] = [
            lesson
            for lesson in lessons
            if (uplift := uplifts.get(lesson.id))
            and (uplift.positive if order == "worth" else 1 - uplift.positive) >= MIN_PROBABILITY
        ]
    return lists


async def _waiting(studio: Studio, briefs: Sequence[Brief]) -> Sequence[tuple[str, str]]:
    """What waits for a person: each a sentence, and the address of the page."""
    quarantined = await studio.bank.list(Selection(("quarantined",), limit=MAX_WAITING))
    questions = [job for job in await studio.bank.pending() if job.status == "waiting"]
    paused = [brief for brief in briefs if brief.stop in STATES["paused"][1]]
    status = await asyncio.to_thread(HookRecord.status_of, str(studio.root)) if studio.agent_id is None else None
    candidates = status.candidates if status else 0
    waiting = [
        (len(quarantined), f"{count(len(quarantined), 'quarantined lesson')} to read", "/bank?state=quarantined"),
        (candidates, f"{count(candidates, 'coding-agent candidate')} to review", "/hooks#candidates"),
        (len(questions), f"{count(len(questions), 'question')} from the bank to answer", "/queue"),
        (len(paused), f"{count(len(paused), 'run')} to resume", "/runs?state=paused"),
    ]
    return [(sentence, address) for number, sentence, address in waiting if number]


routes = [Route("/", overview), Route("/live/overview", live)]
