"""The page of a lesson: its text, origin, history and worth, and a form to change it. Also the page of a recall."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.bank.changes import since
from mulligan.bank.exchange.lesson_page import around, existing, facts, outcomes_of
from mulligan.core.errors import LessonChanged
from mulligan.core.lesson_history import Receipt, Version
from mulligan.core.lessons import fields_with
from mulligan.core.operations import acting_as
from mulligan.core.worth import Tally
from mulligan.pages import Diff, when
from mulligan.plugins import InvalidInput, Lesson, LessonFields, NotFound, annotations_of
from mulligan.running import Bank, digest, to_json
from mulligan.studio.charts import intervals
from mulligan.studio.rendering import Studio, environment, harmless, render, studio_of
from mulligan.studio.safety import form_of

RECENT_CHANGES = 30
"""How many changes the page shows, unless all are asked for."""
TEXTS = {
    name: annotation.help
    for name, (kind, annotation) in annotations_of(LessonFields).items()
    if kind is str and annotation.option
}
"""The text fields of the form, each with its help. The form also has tags, separated by commas."""
TEMPLATE_FIELDS = ("title", "description", "content", "query", "kind")
"""Fields that the template places itself; it lists the others."""


@dataclass(frozen=True)
class Past:
    """A change in the history.

    Attributes:
        success: whether the task succeeded, if the change belongs to a recall.
        diff: the change of the text.
        fields: the other changed fields: name, old value, new value.
    """

    version: Version
    why: str
    success: bool | None
    diff: Sequence[Diff]
    fields: Sequence[tuple[str, str, str]]


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
    versions = await bank.history(id)
    history = await _history(bank, versions, None if request.query_params.get("full") else RECENT_CHANGES)
    relatives = await around(bank, shown)
    return render(
        request,
        "lesson.html",
        lesson=shown,
        version=version_of(shown),
        facts=_facts(shown),
        others={name: help for name, help in TEXTS.items() if name not in TEMPLATE_FIELDS},
        lineage=relatives.lineage,
        near=relatives.near,
        worth=tallies.get(id),
        plot=intervals(_bars(tallies, shown)),
        history=history,
        older=max(len(versions) - len(history), 0),
        undoable=shown.state == "retired" or sum(version.lesson is not None for version in versions) > 1,
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
    svg = environment().get_template("intervals.svg").render(plot=chart, title=f"What lesson {shown.id} is worth")
    return Response(svg, media_type="image/svg+xml")


def _facts(lesson: Lesson) -> Mapping[str, str]:
    """The facts about a lesson that the page does not show elsewhere."""
    elsewhere = ("id", "state", "flags", "context")
    return {name.capitalize(): text for name, text in facts(lesson, when).items() if name not in elsewhere}


async def _history(bank: Bank, versions: Sequence[Version], limit: int | None) -> Sequence[Past]:
    """The last changes, newest first. limit: how many; None: all."""
    first = 0 if limit is None else max(len(versions) - limit, 0)
    outcomes = await outcomes_of(bank.receipt, versions[first:])
    changes: list[Past] = []
    before: Lesson | None = None
    for version in versions:
        why, after = str(version.details.get("why", "")), version.lesson
        diff, fields = (), ()
        if before and after:
            diff = (Diff(before.content, after.content),) if before.content != after.content else ()
            fields = _changed_fields(before, after)
        changes.append(Past(version, why, outcomes.get(version.recall), diff, fields))
        before = after or before
    return changes[first:][::-1]


def _changed_fields(before: Lesson, after: Lesson) -> Sequence[tuple[str, str, str]]:
    """The name, the old and the new value of each changed field, but for the text and the counters."""
    old, new = cast(dict[str, Any], to_json(before)), cast(dict[str, Any], to_json(after))
    left_out = {"content", *fields_with("counted")}
    names = [name for name in new if name not in left_out and new[name] != old.get(name)]
    return [(name, _as_text(old.get(name)), _as_text(new[name])) for name in names]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- changes ------------------------------------------------------------------------------------------------------


async def change(request: Request) -> Response:
    """Changes a lesson as `mulligan memory` does, then shows it; after an unmerge, the first restored lesson."""
    studio, id, form = studio_of(request), str(request.path_params["id"]), form_of(request)
    name = form.get("do", "")
    if name not in CHANGES:
        raise InvalidInput(f"This change of a lesson does not exist. Available: {', '.join(CHANGES)}")
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
            raise LessonChanged(
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
        raise InvalidInput("Nothing was changed in the form.")
    return await bank.edit(id, since(before, changes))


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


async def _receipt(studio: Studio, id: str) -> tuple[Bank, Receipt]:
    """The recall with this id, and the bank that it is from."""
    with suppress(NotFound):
        return studio.bank, await studio.bank.receipt(id)
    names = ("", *await studio.store.memory.lessons.agents()) if studio.agent_id is None else ()
    for name in names:
        bank = studio.chosen_bank(name)
        with suppress(NotFound):
            return bank, await bank.receipt(id)
    raise NotFound(f"There is no recall {id!r} here.")


async def receipt(request: Request) -> Response:
    """A recall: its task, the lessons that it showed and withheld, and the outcome."""
    bank, shown = await _receipt(studio_of(request), str(request.path_params["id"]))
    lessons = {lesson.id: lesson for lesson in await existing(bank, (*shown.lessons, *shown.withheld))}
    return render(request, "receipt.html", receipt=shown, lessons=lessons)


routes = [
    Route("/bank/lessons/{id}", lesson),
    Route("/bank/lessons/{id}", change, methods=["POST"]),
    Route("/bank/lessons/{id}/worth.svg", plot),
    Route("/bank/recalls/{id}", receipt),
]
