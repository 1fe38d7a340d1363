"""A lesson: its text, where it is from, what became of it and what it is worth; and the changes that a person makes."""

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
from mulligan.core.lesson import fields_with
from mulligan.core.lessons import Receipt, Version
from mulligan.core.operations import acting_as
from mulligan.core.worth import Tally
from mulligan.pages import Diff, when
from mulligan.plugins import InvalidInput, Lesson, LessonFields, NotFound, annotations_of
from mulligan.running import Bank, digest, to_json
from mulligan.studio.charts import intervals
from mulligan.studio.rendering import Studio, environment, harmless, render, studio_of
from mulligan.studio.safety import form_of

NEWEST = 30
"""Changes in the history that the page shows, unless all are asked for."""
TEXTS = {
    name: written.help
    for name, (kind, written) in annotations_of(LessonFields).items()
    if kind is str and written.option
}
"""The fields of the form, with what to write; tags stand in one, too, with commas."""
ARRANGED = ("title", "description", "content", "query", "kind")
"""Those that the form has in places of its own."""


@dataclass(frozen=True)
class Past:
    """A change in the history.

    success: whether the task of its recall succeeded.
    diff: of the text; fields: the other fields that changed, as they were and as they became.
    """

    version: Version
    why: str
    success: bool | None
    diff: Sequence[Diff]
    fields: Sequence[tuple[str, str, str]]


def address(id: str) -> str:
    return f"/bank/lessons/{quote(id, safe='')}"


def version_of(lesson: Lesson) -> str:
    """What is equal only for lessons with the same fields in the form."""
    return digest([*(getattr(lesson, name) for name in TEXTS), list(lesson.tags)])[:16]


def text_of(form: Mapping[str, str], name: str) -> str:
    """A text of a form; browsers end its lines with CR and LF."""
    return form.get(name, "").replace("\r\n", "\n").strip()


async def lesson(request: Request) -> Response:
    studio, id = studio_of(request), str(request.path_params["id"])
    bank = await studio.bank_of(id)
    found = await bank.get(id)
    if found.id != id:  # a beginning of an id
        return RedirectResponse(address(found.id))
    counted = {one.id: one.tally for one in await bank.worth(of=[id])}
    past = await bank.history(id)
    whole = bool(request.query_params.get("full"))
    history = await _history(bank, past, None if whole else NEWEST)
    its = await around(bank, found)
    return render(
        request,
        "lesson.html",
        lesson=found,
        version=version_of(found),
        facts=_facts(found),
        others={name: help for name, help in TEXTS.items() if name not in ARRANGED},
        lineage=its.lineage,
        near=its.near,
        worth=counted.get(id),
        plot=intervals(_bars(counted, found)),
        history=history,
        older=max(len(past) - len(history), 0),
        undoable=found.state == "retired" or len([one for one in past if one.lesson is not None]) > 1,
        merged=found.origin.kind == "merged" or (found.nature == "fact" and bool(found.origin.parents)),
    )


def _bars(counted: Mapping[str, Tally], lesson: Lesson) -> Sequence[tuple[str, Tally]]:
    """What is measured of a lesson, and of the whole bank to compare it with."""
    named = {lesson.id: "this lesson", "": "whole bank"}
    return [(named[id], counted[id]) for id in named if id in counted]


async def plot(request: Request) -> Response:
    """What a lesson is worth, as a file."""
    bank = await studio_of(request).bank_of(str(request.path_params["id"]))
    found = await bank.get(str(request.path_params["id"]))
    counted = {one.id: one.tally for one in await bank.worth(of=[found.id])}
    drawn = intervals(_bars(counted, found))
    if not drawn.bars:
        raise NotFound(f"The worth of lesson {found.id} has not been measured, so there is no chart.")
    svg = environment().get_template("intervals.svg").render(plot=drawn, title=f"What lesson {found.id} is worth")
    return Response(svg, media_type="image/svg+xml")


def _facts(lesson: Lesson) -> Mapping[str, str]:
    """As `facts`, without what the page says elsewhere."""
    besides = ("id", "state", "flags", "context")
    return {name.capitalize(): text for name, text in facts(lesson, when).items() if name not in besides}


async def _history(bank: Bank, versions: Sequence[Version], most: int | None) -> Sequence[Past]:
    """Newest first, each with what it changed."""
    first = 0 if most is None else max(len(versions) - most, 0)
    outcomes = await outcomes_of(bank.receipt, versions[first:])
    found: list[Past] = []
    before: Lesson | None = None
    for one in versions:
        found.append(
            Past(
                one,
                str(one.details.get("why", "")),
                outcomes.get(one.recall),
                _content_change(before, one.lesson),
                _changed(before, one.lesson) if before and one.lesson else (),
            )
        )
        before = one.lesson or before
    return found[first:][::-1]


def _content_change(before: Lesson | None, after: Lesson | None) -> Sequence[Diff]:
    changed = before and after and before.content != after.content
    return [Diff(before.content, after.content)] if before and after and changed else ()


def _changed(before: Lesson, after: Lesson) -> Sequence[tuple[str, str, str]]:
    old, new = cast(dict[str, Any], to_json(before)), cast(dict[str, Any], to_json(after))
    besides = {"content", *fields_with("counted")}
    names = [name for name in new if name not in besides and new[name] != old.get(name)]
    return [(name, _shown(old.get(name)), _shown(new[name])) for name in names]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- changes ------------------------------------------------------------------------------------------------------


async def change(request: Request) -> Response:
    """Changes a lesson as `mulligan memory` does, and shows it, or the first of those that an unmerge brought back."""
    studio, id, form = studio_of(request), str(request.path_params["id"]), form_of(request)
    name = form.get("do", "")
    if name not in CHANGES:
        raise InvalidInput(f"This change of a lesson does not exist. Available: {', '.join(CHANGES)}")
    bank = await studio.bank_of(id)  # of an agent that is not served: as if there were none
    with acting_as("studio"):
        return RedirectResponse(address((await CHANGES[name](bank, id, form)).id), 303)


async def _edit(bank: Bank, id: str, form: Mapping[str, str]) -> Lesson:
    """Changes what was written over. A text that the page masked stays as it is where nobody touched it, and what
    somebody else changed since the page was made is not undone."""
    before = await bank.get(id)
    if form.get("version") and form["version"] != version_of(before):
        past = [one.lesson for one in await bank.history(before.id) if one.lesson is not None]
        read = next((one for one in reversed(past) if version_of(one) == form["version"]), None)
        if read is None:
            raise LessonChanged(
                f"Lesson {before.id} has changed since this form was opened. Reload the page and edit the current "
                "version."
            )
        before = read
    given = {name: text_of(form, name) for name in TEXTS if name in form}
    changes: dict[str, Any] = {
        name: text for name, text in given.items() if text != str(harmless(getattr(before, name))).strip()
    }
    if "tags" in form:
        tags = tuple(tag for tag in (tag.strip() for tag in form["tags"].split(",")) if tag)
        if tags != tuple(map(harmless, before.tags)):
            changes["tags"] = tags
    if not changes:
        raise InvalidInput("Nothing was changed in the form.")
    return await bank.edit(id, since(before, changes))


async def _unmerge(bank: Bank, id: str) -> Lesson:
    return await bank.get([*await bank.unmerge(id), id][0])


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
"""The changes by the names that forms have for them; each returns the lesson to show next."""


async def _receipt(studio: Studio, id: str) -> tuple[Bank, Receipt]:
    """The recall of this id, and the bank that keeps it."""
    for name in [None] if studio.agent_id is not None else [None, "", *await studio.store.memory.lessons.agents()]:
        bank = studio.bank if name is None else studio.chosen_bank(name)
        with suppress(NotFound):
            return bank, await bank.receipt(id)
    raise NotFound(f"There is no recall {id!r} here.")


async def receipt(request: Request) -> Response:
    """A recall: what it was for, what it gave and withheld, and how the task ended."""
    bank, found = await _receipt(studio_of(request), str(request.path_params["id"]))
    lessons = {one.id: one for one in await existing(bank, (*found.lessons, *found.withheld))}
    return render(request, "receipt.html", receipt=found, lessons=lessons)


routes = [
    Route("/bank/lessons/{id}", lesson),
    Route("/bank/lessons/{id}", change, methods=["POST"]),
    Route("/bank/lessons/{id}/worth.svg", plot),
    Route("/bank/recalls/{id}", receipt),
]
