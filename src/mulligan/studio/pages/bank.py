"""The bank: its lessons as a list and by relevance, merging, the notebook, and what lessons are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.bank.recall.prompt_text import held_back
from mulligan.core.errors import InvalidInput
from mulligan.core.lessons import Selection
from mulligan.core.records import LAYERS, Lesson, LessonState, Recall
from mulligan.core.worth import Tally
from mulligan.studio.charts import calibration
from mulligan.studio.pages import lesson
from mulligan.studio.rendering import PAGE_ROWS, Rows, Studio, environment, render, studio_of, with_query
from mulligan.studio.safety import form_of

STATES: Sequence[LessonState] = ("active", "quarantined", "retired", "superseded")
KINDS: Mapping[LessonState, str] = {"active": "ok", "quarantined": "error", "retired": "", "superseded": ""}
"""Of badges, by a lesson's state."""
THRESHOLDS: Mapping[str, float | str | None] = {
    "": None,
    "strict": "strict",
    "standard": "standard",
    "lenient": "lenient",
    "none": 0.0,
}
"""The least relevance of what a recall gives, by its name; "": that of the settings."""
MOST_MERGED = 20
MOST_RECALLS = 1000
MOST_OTHERS = 20
"""Agents that a page without lessons names."""


async def bank(request: Request) -> Response:
    """The list, newest first, or what a recall finds for `q`: it counts no use and keeps no receipt."""
    studio, query = studio_of(request), request.query_params
    chosen = {name: query.get(name, "").strip() for name in ("q", "state", "nature", "layer", "kind", "threshold")}
    whole = query.get("by") == "words"
    recall, rows = None, Rows[Lesson](())
    if chosen["q"] and not whole:
        recall = await studio.bank.recall(
            chosen["q"],
            threshold=THRESHOLDS[_one_of(chosen, "threshold", tuple(THRESHOLDS))],
            kind=chosen["kind"] or None,
            forms="lessons",
            counted=False,
        )
    else:
        state = _one_of(chosen, "state", (*STATES, "all"))
        which: dict[str, Any] = {
            "states": STATES if state == "all" else (state or "active",),
            "text": chosen["q"] or None,
            "kind": chosen["kind"] or None,
            "nature": _one_of(chosen, "nature", ("fact", "strategy")) or None,
            "layer": _one_of(chosen, "layer", LAYERS) or None,
        }
        rows = await paged(studio, query.get("after"), **which)
    shown = recall.lessons if recall else rows.items
    others = () if shown or studio.agent_id is not None else await studio.store.memory.lessons.agents(limit=MOST_OTHERS)
    return render(
        request,
        "bank.html",
        chosen={**chosen, "by": "words" if whole else ""},
        rows=shown,
        others=others,
        recall=recall,
        held=held_back(recall) if recall else "",
        why={one.id: _why(one, recall, chosen["kind"]) for one in shown} if recall else {},
        worth=await worths(studio, shown),
        states=STATES,
        thresholds=list(THRESHOLDS),
        layers=LAYERS,
        kinds=KINDS,
        more=with_query(request, after=rows.next) if rows.next else "",
    )


async def paged(studio: Studio, after: str | None, **which: Any) -> Rows[Lesson]:
    """A page of the bank's lessons, newest first."""
    found = await studio.bank.list(Selection(**which, before=after, limit=PAGE_ROWS + 1))
    shown = found[:PAGE_ROWS]
    return Rows(shown, shown[-1].id if len(found) > PAGE_ROWS else "")


async def worths(studio: Studio, lessons: Sequence[Lesson]) -> Mapping[str, Tally]:
    """What is counted of these lessons, by their ids."""
    found = await studio.bank.worth(of=[one.id for one in lessons])
    return {one.id: one.tally for one in found if one.id}


def _one_of(chosen: Mapping[str, str], name: str, known: Sequence[str]) -> Any:
    """What was chosen. Raises `InvalidInput` for what is not there to choose."""
    if chosen[name] not in ("", *known):
        raise InvalidInput(f"{chosen[name]!r:.40} is not a valid {name}. Available: {', '.join(filter(None, known))}")
    return chosen[name]


def _why(lesson: Lesson, recall: Recall, kind: str) -> str:
    """Why a recall gives a lesson."""
    if lesson.nature == "fact":
        return "a fact of the current project"
    if lesson.layer == "metacognitive":
        return "a habit, which is recalled for any task"
    least = f", at least {recall.threshold:.2f}" if isinstance(recall.threshold, float) and recall.threshold else ""
    return f"relevance {lesson.score or 0:.2f}{least}{f'; its kind fits {kind!r:.60}' if kind else ''}"


# --- merging ------------------------------------------------------------------------------------------------------


async def merging(request: Request) -> Response:
    """The chosen lessons side by side, with a form for the lesson that takes their place."""
    studio = studio_of(request)
    lessons = [await studio.bank.get(id) for id in dict.fromkeys(request.query_params.getlist("id"))]
    if not 2 <= len(lessons) <= MOST_MERGED:
        raise InvalidInput(f"{len(lessons)} lessons are chosen: choose 2 to {MOST_MERGED} of the list to merge them.")
    return render(request, "merging.html", lessons=lessons, kinds=KINDS)


async def merge(request: Request) -> Response:
    """Merges lessons into the one of the form, or into the one that the bank's strategy makes."""
    studio, form = studio_of(request), form_of(request)
    ids, answer = form.get("ids", "").split(), None
    if form.get("by") != "bank":
        texts = {name: lesson.text_of(form, name) for name in ("title", "description", "content", "query")}
        level = form.get("level", "")
        answer = {
            **texts,
            "reasoning": "written by a person",
            "abstraction_level": int(level) if level.isdecimal() else 1,
        }
    learned = await studio.bank.merge(ids, answer=answer)
    if learned.question is not None:
        raise InvalidInput("This bank has no model to write the merged lesson: write it into the form yourself.")
    if learned.failed:
        raise InvalidInput(f"The lessons were not merged: {learned.failed}")
    return RedirectResponse(lesson.address((*learned.lessons, *learned.folded)[0]), 303)


# --- notebook and worth -------------------------------------------------------------------------------------------


async def notebook(request: Request) -> Response:
    """What is known of the project, newest first; each entry is a lesson, and is changed on its page."""
    studio = studio_of(request)
    rows = await paged(studio, request.query_params.get("after"), nature="fact", project=studio.bank.project)
    return render(
        request,
        "notebook.html",
        project=studio.bank.project,
        rows=rows.items,
        more=with_query(request, after=rows.next) if rows.next else "",
    )


async def relevance(request: Request) -> Response:
    """How far the relevance of lessons foretells success: a figure, a table, and with `?format=svg` a file."""
    drawn = calibration(await studio_of(request).bank.relevances(MOST_RECALLS))
    if request.query_params.get("format") == "svg":
        return Response(environment().get_template("calibration.svg").render(plot=drawn), media_type="image/svg+xml")
    return render(request, "calibration.html", plot=drawn, most=f"{MOST_RECALLS:,}")


routes = [
    Route("/bank", bank),
    Route("/bank/calibration", relevance),
    Route("/bank/merging", merging),
    Route("/bank/merging", merge, methods=["POST"]),
    Route("/bank/notebook", notebook),
    *lesson.routes,
]
