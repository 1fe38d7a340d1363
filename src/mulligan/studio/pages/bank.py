"""The pages of the bank: its lessons as a list or by relevance, merging, the notebook, and relevance and success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.pages import held_back
from mulligan.plugins import InvalidInput, Lesson, Recall, Selection
from mulligan.running import LAYERS, Bank, Tally
from mulligan.studio.charts import calibration
from mulligan.studio.pages import lesson
from mulligan.studio.rendering import PAGE_ROWS, Rows, Studio, render, studio_of, with_query
from mulligan.studio.safety import form_of

STATES: Sequence[str] = ("active", "quarantined", "retired", "superseded")
MARKS: Mapping[str, str] = {"active": "passed", "quarantined": "error", "retired": "note", "superseded": "note"}
"""The mark of each state of a lesson."""
THRESHOLDS: Mapping[str, float | str | None] = {
    "": None,
    "strict": "strict",
    "standard": "standard",
    "lenient": "lenient",
    "none": 0.0,
}
"""The lowest relevance of a recalled lesson, by the name in the form. "": as the settings say."""
SORTS: Mapping[str, str] = {
    "": "newest",
    "worth": "worth, highest first",
    "harm": "worth, lowest first",
    "uses": "uses",
}
"""The orders of the list, by their names in an address."""
ALL_BANKS = "*"
"""Stands for all banks in place of a name."""
MAX_BANKS = 200
MAX_MERGED = 20
MAX_RECALLS = 1000


async def bank(request: Request) -> Response:
    """The list, or what a recall finds for `q`. Such a recall counts no use and keeps no receipt."""
    studio, query = studio_of(request), request.query_params
    fields = ("q", "state", "nature", "layer", "kind", "threshold", "sort")
    chosen = {name: query.get(name, "").strip() for name in fields}
    by_words = query.get("by") == "words"
    name = studio.agent_id if studio.agent_id is not None else query.get("bank", ALL_BANKS)
    selected_bank = studio.bank if name in (ALL_BANKS, studio.agent_id) else studio.chosen_bank(name)
    recall, rows = None, Rows[Lesson](())
    if chosen["q"] and not by_words:
        recall = await selected_bank.recall(
            chosen["q"],
            threshold=THRESHOLDS[_check_choice(chosen, "threshold", tuple(THRESHOLDS))],
            kind=chosen["kind"] or None,
            forms="lessons",
            counted=False,
        )
    else:
        state = _check_choice(chosen, "state", (*STATES, "all"))
        selection: dict[str, Any] = {
            "states": STATES if state == "all" else (state or "active",),
            "text": chosen["q"] or None,
            "kind": chosen["kind"] or None,
            "nature": _check_choice(chosen, "nature", ("fact", "strategy")) or None,
            "layer": _check_choice(chosen, "layer", LAYERS) or None,
            "order": _check_choice(chosen, "sort", tuple(SORTS)[1:]) or "newest",
        }
        rows = await paged(selected_bank, query.get("after"), **selection)
    shown = recall.lessons if recall else rows.items
    return render(
        request,
        "bank.html",
        chosen={**chosen, "by": "words" if by_words else "", "bank": name},
        filtered=any((*chosen.values(), by_words)),
        banks=await _banks(studio),
        whose=name == ALL_BANKS,
        sorts=SORTS,
        rows=shown,
        recall=recall,
        held=held_back(recall) if recall else "",
        why={lesson.id: _why(lesson, recall, chosen["kind"]) for lesson in shown} if recall else {},
        worth=await worths(studio, shown),
        states=STATES,
        thresholds=list(THRESHOLDS),
        layers=LAYERS,
        marks=MARKS,
        selected=set(query.getlist("id")),
        note=query.get("note", "") == "select",
        most=MAX_MERGED,
        balance=await selected_bank.balance() if query.get("balance") else None,  # it reads all recalls of 30 days
        balanced=with_query(request, balance="1", id="", note=""),
        more=with_query(request, after=rows.next, id="", note="") if rows.next else "",
    )


async def _banks(studio: Studio) -> Sequence[str]:
    """The names of the banks to choose from. Empty in a studio of one agent."""
    if studio.agent_id is not None:
        return ()
    return ["", *await studio.store.memory.lessons.agents(limit=MAX_BANKS)]


async def paged(bank: Bank, after: str | None, **selection: Any) -> Rows[Lesson]:
    """A page of a bank's lessons. after: the cursor: the id of a lesson, or if they are sorted, a number of rows."""
    by_age = selection.get("order", "newest") == "newest"
    offset = int(after) if after and not by_age and after.isdecimal() else 0
    before = after if by_age else None
    lessons = await bank.list(Selection(**selection, before=before, offset=offset, limit=PAGE_ROWS + 1))
    shown, has_more = lessons[:PAGE_ROWS], len(lessons) > PAGE_ROWS
    cursor = shown[-1].id if has_more and by_age else str(offset + PAGE_ROWS)
    return Rows(shown, cursor if has_more else "")


async def worths(studio: Studio, lessons: Sequence[Lesson]) -> Mapping[str, Tally]:
    """The tallies of these lessons, by their ids."""
    counted = await studio.bank.worth(of=[lesson.id for lesson in lessons])
    return {worth.id: worth.tally for worth in counted if worth.id}


def _check_choice(chosen: Mapping[str, str], name: str, valid: Sequence[str]) -> Any:
    """The value of a field, which may be empty. Raises `InvalidInput` unless it is one of `valid`."""
    if chosen[name] not in ("", *valid):
        raise InvalidInput(f"{chosen[name]!r:.40} is not a valid {name}. Available: {', '.join(filter(None, valid))}")
    return chosen[name]


def _why(lesson: Lesson, recall: Recall, kind: str) -> str:
    """Why a recall shows this lesson."""
    if lesson.nature == "fact":
        return "a fact about the current project"
    if lesson.layer == "metacognitive":
        return "a habit, which is recalled for any task"
    least = f" (minimum {recall.threshold:.2f})" if isinstance(recall.threshold, float) and recall.threshold else ""
    return f"relevance {lesson.score or 0:.2f}{least}{f'; the kind of task matches {kind!r:.60}' if kind else ''}"


# --- merging ------------------------------------------------------------------------------------------------------


async def merging(request: Request) -> Response:
    """The chosen lessons side by side, with a form for the lesson that replaces them."""
    studio = studio_of(request)
    lessons = [await studio.bank.get(id) for id in dict.fromkeys(request.query_params.getlist("id"))]
    if not 2 <= len(lessons) <= MAX_MERGED:
        query = [("id", lesson.id) for lesson in lessons]
        query += [("bank", request.query_params["bank"])] if "bank" in request.query_params else []
        return RedirectResponse(f"/bank?{urlencode([*query, ('note', 'select')])}", 303)
    one_bank = len({lesson.agent_id for lesson in lessons}) == 1
    back = f"/bank?{urlencode([('id', lesson.id) for lesson in lessons])}"
    worth = await worths(studio, lessons)
    return render(request, "merging.html", lessons=lessons, marks=MARKS, one_bank=one_bank, back=back, worth=worth)


async def merge(request: Request) -> Response:
    """Merges lessons into the lesson of the form, or into one that the bank's strategy writes."""
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
        raise InvalidInput("This bank has no model to write the merged lesson. Enter it in the form yourself.")
    if learned.failed:
        raise InvalidInput(f"The lessons were not merged: {learned.failed}")
    return RedirectResponse(lesson.address((*learned.lessons, *learned.folded)[0]), 303)


# --- notebook and worth -------------------------------------------------------------------------------------------


async def notebook(request: Request) -> Response:
    """The facts of the project, newest first."""
    studio = studio_of(request)
    bank = studio.chosen_bank(studio.agent_id or "")
    rows = await paged(bank, request.query_params.get("after"), nature="fact", project=bank.project)
    return render(
        request,
        "notebook.html",
        project=bank.project,
        rows=rows.items,
        more=with_query(request, after=rows.next) if rows.next else "",
    )


async def relevance(request: Request) -> Response:
    """How well relevance predicts success: a chart and a table; with `?format=svg` only the chart, as a file."""
    studio, name = studio_of(request), request.query_params.get("bank", ALL_BANKS)
    bank = studio.bank if name == ALL_BANKS else studio.chosen_bank(name)
    plot, table = calibration(await bank.relevances(MAX_RECALLS))
    if request.query_params.get("format") == "svg":
        return Response(plot.svg(alone=True), media_type="image/svg+xml")
    return render(request, "calibration.html", plot=plot, table=table, most=f"{MAX_RECALLS:,}")


routes = [
    Route("/bank", bank),
    Route("/bank/calibration", relevance),
    Route("/bank/merging", merging),
    Route("/bank/merging", merge, methods=["POST"]),
    Route("/bank/notebook", notebook),
    *lesson.routes,
]
