"""The page of a lesson: its text, origin, history and worth, and a form to change it. Also the page of a recall."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.pages import LessonPage, when
from mulligan.plugins import InvalidInput, Lesson, NotFound, lesson_fields
from mulligan.running import Bank, Tally, acting_as, digest
from mulligan.studio.charts import intervals
from mulligan.studio.rendering import Studio, environment, harmless, render, studio_of
from mulligan.studio.safety import form_of

RECENT_CHANGES = 30
"""How many changes the page shows, unless all are asked for."""
TEXTS = {
    name: annotation.help for name, (kind, annotation) in lesson_fields().items() if kind is str and annotation.option
}
"""The text fields of the form, each with its help. The form also has tags, separated by commas."""
TEMPLATE_FIELDS = ("title", "description", "content", "query", "kind")
"""Fields that the template places itself; it lists the others."""


def address(id: str) -> str:
    return f"/bank/lessons/{quote(id, safe='')}"


def version_of(lesson: Lesson) -> str:
    """A digest of the fields that the form has."""
    return digest([*(getattr(lesson, name) for name in TEXTS), list(lesson.tags)])[:16]


def text_of(form: Mapping[str, str], name: str) -> str:
    """A text field of a form, with LF in place of the CR LF that browsers send."""
    return form.get(name, "").replace("\r\n", "\n").strip()


async def lesson(request: Request) -> Response:
    studio, id = studio_of(request), str(request.path_params["id"])
    bank = await studio.bank_of(id)
    shown = await bank.get(id)
    if shown.id != id:  # the address has only the beginning of the id
        return RedirectResponse(address(shown.id))
    tallies = await _tallies(bank, id)
    page = LessonPage(shown)
    relatives = await page.relatives(bank)
    return render(
        request,
        "lesson.html",
        lesson=shown,
        version=version_of(shown),
        facts=_facts(page),
        others={name: help for name, help in TEXTS.items() if name not in TEMPLATE_FIELDS},
        lineage=relatives.lineage,
        near=relatives.near,
        worth=tallies.get(id),
        plot=intervals(_bars(tallies, shown)),
        history=await page.history(bank, None if request.query_params.get("full") else RECENT_CHANGES),
        merged=shown.origin.kind == "merged" or (shown.nature == "fact" and bool(shown.origin.parents)),
    )


async def _tallies(bank: Bank, id: str) -> Mapping[str, Tally]:
    """What is counted of this lesson, and under "" of the whole bank."""
    return {worth.id: worth.tally for worth in await bank.worth(of=[id])}


def _bars(tallies: Mapping[str, Tally], lesson: Lesson) -> Sequence[tuple[str, Tally]]:
    """The tally of the lesson, and that of the whole bank to compare it with."""
    labels = {lesson.id: "this lesson", "": "whole bank"}
    return [(label, tallies[id]) for id, label in labels.items() if id in tallies]


async def plot(request: Request) -> Response:
    """The chart of what a lesson is worth, as a file."""
    bank = await studio_of(request).bank_of(str(request.path_params["id"]))
    shown = await bank.get(str(request.path_params["id"]))
    chart = intervals(_bars(await _tallies(bank, shown.id), shown))
    if not chart.bars:
        raise NotFound(f"The worth of lesson {shown.id} has not been measured, so there is no chart.")
    svg = environment().get_template("intervals.svg").render(plot=chart, title=f"Worth of lesson {shown.id}")
    return Response(svg, media_type="image/svg+xml")


def _facts(page: LessonPage) -> Mapping[str, str]:
    """The facts about a lesson that the page does not show elsewhere."""
    elsewhere = ("id", "state", "flags", "context")
    return {name.capitalize(): text for name, text in page.facts(when).items() if name not in elsewhere}


# --- changes ------------------------------------------------------------------------------------------------------


async def change(request: Request) -> Response:
    """Changes a lesson as `mulligan memory` does, then shows it; after an unmerge, the first restored lesson."""
    studio, id, form = studio_of(request), str(request.path_params["id"]), form_of(request)
    name = form.get("do", "")
    if name not in CHANGES:
        raise InvalidInput(f"Unknown change {name!r:.40}. Available: {', '.join(CHANGES)}")
    bank = await studio.bank_of(id)
    with acting_as("studio"):
        return RedirectResponse(address((await CHANGES[name](bank, id, form)).id), 303)


async def _edit(bank: Bank, id: str, form: Mapping[str, str]) -> Lesson:
    """Changes the fields that the person changed, compared with the version that the form was made from.

    So a text that the page masked stays as it is, and a change that somebody else made in the meantime is kept.
    """
    before = await bank.get(id)
    if form.get("version") and form["version"] != version_of(before):
        past = [version.lesson for version in await bank.history(before.id) if version.lesson is not None]
        edited = next((lesson for lesson in reversed(past) if version_of(lesson) == form["version"]), None)
        if edited is None:
            raise InvalidInput(
                f"Lesson {before.id} has changed since this form was opened. Reload the page and edit the current "
                "version."
            )
        before = edited
    texts = {name: text_of(form, name) for name in TEXTS if name in form}
    changes: dict[str, Any] = {
        name: text for name, text in texts.items() if text != str(harmless(getattr(before, name))).strip()
    }
    if "tags" in form:
        tags = tuple(tag for tag in (tag.strip() for tag in form["tags"].split(",")) if tag)
        if tags != tuple(map(harmless, before.tags)):
            changes["tags"] = tags
    if not changes:
        raise InvalidInput("The form contains no changes.")
    return await bank.edit(id, read=before, **changes)


async def _unmerge(bank: Bank, id: str) -> Lesson:
    restored = await bank.unmerge(id)
    return await bank.get(restored[0] if restored else id)


CHANGES: Mapping[str, Callable[[Bank, str, Mapping[str, str]], Awaitable[Lesson]]] = {
    "edit": _edit,
    "retire": lambda bank, id, form: bank.retire(id, text_of(form, "why")),
    "unmerge": lambda bank, id, form: _unmerge(bank, id),
    "restore": lambda bank, id, form: bank.restore(id),
    "undo": lambda bank, id, form: bank.undo(id),
    "pin": lambda bank, id, form: bank.pin(id),
    "unpin": lambda bank, id, form: bank.pin(id, False),
    "release": lambda bank, id, form: bank.release(id),
}
"""The changes by their names in forms. Each returns the lesson to show next."""


async def _bank_of_recall(studio: Studio, id: str) -> Bank:
    """The bank that the recall with this id is from."""
    with suppress(NotFound):
        await studio.bank.receipt(id)
        return studio.bank
    names = ("", *await studio.store.memory.lessons.agents()) if studio.agent_id is None else ()
    for name in names:
        bank = studio.chosen_bank(name)
        with suppress(NotFound):
            await bank.receipt(id)
            return bank
    raise NotFound(f"There is no recall {id!r} here.")


async def receipt(request: Request) -> Response:
    """A recall: its task, the lessons that it showed and withheld, and the outcome."""
    studio, id = studio_of(request), str(request.path_params["id"])
    bank = await _bank_of_recall(studio, id)
    shown = await bank.receipt(id)
    found = await studio.store.memory.lessons.there(bank.agent_id, (*shown.lessons, *shown.withheld))
    lessons = {lesson.id: lesson for lesson in found}
    return render(request, "receipt.html", receipt=shown, lessons=lessons)


routes = [
    Route("/bank/lessons/{id}", lesson),
    Route("/bank/lessons/{id}", change, methods=["POST"]),
    Route("/bank/lessons/{id}/worth.svg", plot),
    Route("/bank/recalls/{id}", receipt),
]
