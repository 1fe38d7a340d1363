"""An episode try by try, live while it runs, the steps of its journal, and what a person says of it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.app.compose import OBJECT
from mulligan.app.editing import person, rate
from mulligan.app.run_context import calls_of, messages_of, table_of
from mulligan.core.protocols import StepRow
from mulligan.pages import body, doing, format_of, formatted, header, images_of, mask_json, run_context
from mulligan.plugins import Episode, InvalidInput, NotFound
from mulligan.studio.rendering import Studio, render, studio_of
from mulligan.studio.safety import form_of

TASKS = "tasks.toml"
"""The file in the project's folder that tasks are added to."""


async def episode(request: Request) -> Response:
    studio, name = studio_of(request), str(request.path_params["id"])
    found = await _find(studio, name)
    if found is None:
        return RedirectResponse(f"/runs?{urlencode({'q': name, 'benches': 1})}")
    known = await run_context(studio.store, found, only=studio.agent_id)
    queue = request.query_params.get("queue")
    return render(
        request,
        "episode.html",
        episode=found,
        header=header(found, known),
        body=body(found, known),
        doing=doing(found, known),
        task=task_table(found),
        has_task=await asyncio.to_thread(_has_task, studio, found),
        tasks=TASKS,
        queue=None if queue is None else queue.split(),
        following=_queued(queue.split()) if queue else "",
        live="" if found.over else f"/runs/{found.id}/live",
    )


def task_table(episode: Episode) -> str:
    """The task of a run as a table for `mulligan bench run`, with its judge if a file can name it."""
    judge = table_of(episode.head.settings.get("evaluator"))
    table: dict[str, Any] = {"id": episode.id, "prompt": episode.task.prompt}
    if (name := str(judge.get("name", ""))) and not name.startswith(OBJECT) and name != "model_judge":
        table["evaluator"] = name
        if settings := table_of(judge.get("settings")):
            table["settings"] = settings
    shown = cast(dict[str, Any], mask_json(table))
    return "\n".join(["[[task]]", *(f"{name} = {_toml(value)}" for name, value in shown.items()), ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        rows = (f"{json.dumps(name)} = {_toml(one)}" for name, one in table_of(value).items() if one is not None)
        return f"{{ {', '.join(rows)} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in cast(list[Any], value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML wants escaped


async def _find(studio: Studio, id: str) -> Episode | None:
    """The episode of this id, or the only one of this run; None if there are several.

    Raises `NotFound`, also for those of an agent that is not served.
    """
    try:
        return await studio.store.load(id, agent=studio.agent_id)
    except NotFound:
        own = await studio.store.ids(f"{id}.", agent=studio.agent_id, limit=2)
        own = own or await studio.store.ids(id, agent=studio.agent_id, limit=2)
        if not own:
            raise
    return await studio.store.load(own[0], agent=studio.agent_id) if len(own) == 1 else None


async def _one(request: Request) -> Episode:
    """The only episode that the address names."""
    found = await _find(studio_of(request), str(request.path_params["id"]))
    if found is None:
        raise NotFound(f"{request.path_params['id']} matches several episodes. Give more characters of the id.")
    return found


async def live(request: Request) -> Response:
    studio, id = studio_of(request), str(request.path_params["id"])
    await studio.store.load(id, agent=studio.agent_id)
    return studio.listeners.stream(partial(studio.store.revision, id))


async def step(request: Request) -> Response:
    """One step of the journal: its request and its response."""
    studio, number, found = studio_of(request), int(request.path_params["number"]), await _one(request)
    rows = await studio.store.steps(found.id)
    if not 1 <= number <= len(rows):
        raise NotFound(f"Episode {found.id} has {len(rows)} steps, not {number}.")
    row = rows[number - 1]
    messages = messages_of(row.request)
    settings = {name: part for name, part in table_of(row.request).items() if name != "messages"}
    return render(
        request,
        "step.html",
        episode=found,
        call=calls_of(rows)[number - 1],
        key=row.key,
        last=len(rows),
        messages=messages,
        rest=list(formatted(settings if messages else row.request)),
        answer=list(_answer(row)) if row.done else [],
        raw=[_json(row.request), _json(row.result)],
    )


def _answer(row: StepRow) -> Any:
    """The response: what a model said first, then the rest of it."""
    table = table_of(row.result)
    content = table.get("content")
    if isinstance(content, str) and content:
        yield from formatted(_parsed(content))
        yield from formatted({name: part for name, part in table.items() if name not in ("content", "usage")})
    else:
        yield from formatted(row.result)


def _parsed(text: str) -> Any:
    """An object of JSON as such; any other text as it is."""
    try:
        found = json.loads(text) if text.lstrip().startswith("{") else text
    except ValueError:
        return text
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


async def image(request: Request) -> Response:
    """An image of the episode, by its number from 1."""
    number, found = int(request.path_params["number"]), await _one(request)
    images = images_of(found)
    if not 1 <= number <= len(images):
        raise NotFound(f"Episode {found.id} has no image {number}: its images are numbered from 1 to {len(images)}.")
    data = images[number - 1].data
    return Response(data, media_type=format_of(data).media_type)


async def rating(request: Request) -> Response:
    """Opens the first of the selected runs, which are rated one after another."""
    return RedirectResponse(_queued(list(dict.fromkeys(request.query_params.getlist("id")))), 303)


def _queued(ids: Sequence[str]) -> str:
    """The page of the first of these runs, which leads to the others; without any the list."""
    return f"/runs/{quote(ids[0], safe='')}?{urlencode({'queue': ' '.join(ids[1:])})}" if ids else "/runs"


async def annotate(request: Request) -> Response:
    """Keeps a person's score of the result, as `mulligan runs rate` does, and opens the next run of a queue."""
    studio, form, found = studio_of(request), form_of(request), await _one(request)
    try:
        score = float(form.get("score", ""))
    except ValueError as error:
        raise InvalidInput("Choose a score from 0 to 1.") from error
    await rate(studio.store, found.id, None, score, form.get("comment", "").strip(), person())
    queue = form.get("queue", "").split()
    return RedirectResponse(_queued(queue) if queue else f"/runs/{quote(found.id, safe='')}#ratings", 303)


async def add_task(request: Request) -> Response:
    """Adds the task of a run to the project's file of tasks."""
    studio, found = studio_of(request), await _one(request)
    if "\nevaluator = " not in task_table(found):
        raise InvalidInput("The judge of this run cannot be named in a file, so its task cannot be added to one.")
    if not await asyncio.to_thread(_has_task, studio, found):
        await asyncio.to_thread(_append, studio.root / TASKS, task_table(found))
    return RedirectResponse(f"/runs/{quote(found.id, safe='')}#as-task", 303)


def _has_task(studio: Studio, episode: Episode) -> bool:
    """Whether the project's file of tasks has the task of this run."""
    with suppress(OSError, UnicodeDecodeError):
        return task_table(episode) in (studio.root / TASKS).read_text(encoding="utf-8")
    return False


def _append(file: Path, text: str) -> None:
    try:
        at = os.open(
            file, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644
        )  # it may be a link
        with open(at, "a+", encoding="utf-8") as opened:
            opened.write(f"\n{text}" if opened.tell() else text)
    except OSError as error:
        raise InvalidInput(f"{file} cannot be written: {error.strerror}.") from error


routes = [
    Route("/runs/rating", rating),
    Route("/runs/{id}", episode),
    Route("/runs/{id}", annotate, methods=["POST"]),
    Route("/runs/{id}/task", add_task, methods=["POST"]),
    Route("/runs/{id}/live", live),
    Route("/runs/{id}/steps/{number:int}", step),
    Route("/runs/{id}/images/{number:int}", image),
]
