"""The bank: its lessons as a list and by relevance, merging, the notebook, and what lessons are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.bank.recall.prompt_text import held_back
from mulligan.core.records import LAYERS, LessonState
from mulligan.core.worth import Tally
from mulligan.pages import svg
from mulligan.plugins import InvalidInput, Lesson, Recall, Selection
from mulligan.running import Bank
from mulligan.studio.charts import calibration
from mulligan.studio.pages import lesson
from mulligan.studio.rendering import PAGE_ROWS, Rows, Studio, render, studio_of, with_query
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
SORTS: Mapping[str, str] = {"": "newest", "worth": "worth, best first", "harm": "worth, worst first", "uses": "uses"}
"""The orders of the list, by their names in an address."""
ALL = "*"
"""In place of the name of a bank: all of them."""
MAX_BANKS = 200
MAX_MERGED = 20
MOST_RECALLS = 1000


async def bank(request: Request) -> Response:
    """The list, or what a recall finds for `q`: it counts no use and keeps no receipt."""
    studio, query = studio_of(request), request.query_params
    chosen = {
        name: query.get(name, "").strip() for name in ("q", "state", "nature", "layer", "kind", "threshold", "sort")
    }
    whole = query.get("by") == "words"
    name = studio.agent_id if studio.agent_id is not None else query.get("bank", ALL)
    of = studio.bank if name in (ALL, studio.agent_id) else studio.chosen_bank(name)
    recall, rows = None, Rows[Lesson](())
    if chosen["q"] and not whole:
        recall = await of.recall(
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
            "order": _one_of(chosen, "sort", tuple(SORTS)[1:]) or "newest",
        }
        rows = await paged(of, query.get("after"), **which)
    shown = recall.lessons if recall else rows.items
    return render(
        request,
        "bank.html",
        chosen={**chosen, "by": "words" if whole else "", "bank": name},
        filtered=any((*chosen.values(), whole)),
        banks=await _banks(studio),
        whose=name == ALL,
        sorts=SORTS,
        rows=shown,
        recall=recall,
        held=held_back(recall) if recall else "",
        why={one.id: _why(one, recall, chosen["kind"]) for one in shown} if recall else {},
        worth=await worths(studio, shown),
        states=STATES,
        thresholds=list(THRESHOLDS),
        layers=LAYERS,
        kinds=KINDS,
        selected=set(query.getlist("id")),
        note=query.get("note", "") == "select",
        most=MAX_MERGED,
        balance=await of.balance() if query.get("balance") else None,  # it reads all recalls of 30 days
        balanced=with_query(request, balance="1", id="", note=""),
        more=with_query(request, after=rows.next, id="", note="") if rows.next else "",
    )


async def _banks(studio: Studio) -> Sequence[str]:
    """The banks that can be chosen: none in a studio of one agent."""
    if studio.agent_id is not None:
        return ()
    return ["", *await studio.store.memory.lessons.agents(limit=MAX_BANKS)]


async def paged(bank: Bank, after: str | None, **which: Any) -> Rows[Lesson]:
    """A page of a bank's lessons. after: the last lesson of the page before, or its number where they are sorted."""
    by_age = which.get("order", "newest") == "newest"
    offset = int(after) if after and not by_age and after.isdecimal() else 0
    before = after if by_age else None
    found = await bank.list(Selection(**which, before=before, offset=offset, limit=PAGE_ROWS + 1))
    shown = found[:PAGE_ROWS]
    rest = (shown[-1].id if by_age else str(offset + PAGE_ROWS)) if len(found) > PAGE_ROWS else ""
    return Rows(shown, rest)


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
    if not 2 <= len(lessons) <= MAX_MERGED:
        query = [("id", one.id) for one in lessons]
        query += [("bank", request.query_params["bank"])] if "bank" in request.query_params else []
        return RedirectResponse(f"/bank?{urlencode([*query, ('note', 'select')])}", 303)
    one_bank = len({one.agent_id for one in lessons}) == 1
    back = f"/bank?{urlencode([('id', one.id) for one in lessons])}"
    counted = await worths(studio, lessons)
    return render(request, "merging.html", lessons=lessons, kinds=KINDS, one_bank=one_bank, back=back, worth=counted)


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
    owner = await studio.bank_of(ids[0]) if ids else studio.bank
    learned = await owner.merge(ids, answer=answer)
    if learned.question is not None:
        raise InvalidInput("This bank has no model to write the merged lesson: write it into the form yourself.")
    if learned.failed:
        raise InvalidInput(f"The lessons were not merged: {learned.failed}")
    return RedirectResponse(lesson.address((*learned.lessons, *learned.folded)[0]), 303)


# --- notebook and worth -------------------------------------------------------------------------------------------


async def notebook(request: Request) -> Response:
    """What is known of the project, newest first; each entry is a lesson, and is changed on its page."""
    studio = studio_of(request)
    own = studio.chosen_bank(studio.agent_id or "")
    rows = await paged(own, request.query_params.get("after"), nature="fact", project=own.project)
    return render(
        request,
        "notebook.html",
        project=own.project,
        rows=rows.items,
        more=with_query(request, after=rows.next) if rows.next else "",
    )


async def relevance(request: Request) -> Response:
    """How far the relevance of lessons foretells success: a figure, a table, and with `?format=svg` a file."""
    studio, name = studio_of(request), request.query_params.get("bank", ALL)
    of = studio.bank if name == ALL else studio.chosen_bank(name)
    plot, table = calibration(await of.relevances(MOST_RECALLS))
    if request.query_params.get("format") == "svg":
        return Response(svg(plot, alone=True), media_type="image/svg+xml")
    return render(request, "calibration.html", plot=plot, table=table, most=f"{MOST_RECALLS:,}")


routes = [
    Route("/bank", bank),
    Route("/bank/calibration", relevance),
    Route("/bank/merging", merging),
    Route("/bank/merging", merge, methods=["POST"]),
    Route("/bank/notebook", notebook),
    *lesson.routes,
]
