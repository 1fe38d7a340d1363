"""The pages of an episode: its tries, live while it runs; the steps of its journal; and the ratings of people."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import Iterator, Sequence
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
from mulligan.pages import Block, body, doing, format_of, formatted, header, images_of, mask_json, run_context
from mulligan.plugins import Episode, InvalidInput, NotFound
from mulligan.studio.rendering import Studio, render, studio_of
from mulligan.studio.safety import form_of

TASKS = "tasks.toml"
"""The file in the project's folder that tasks are added to."""


async def episode(request: Request) -> Response:
    studio, name = studio_of(request), str(request.path_params["id"])
    shown = await _find(studio, name)
    if shown is None:
        return RedirectResponse(f"/runs?{urlencode({'q': name, 'benches': 1})}")
    context = await run_context(studio.store, shown, only=studio.agent_id)
    queue = request.query_params.get("queue")
    return render(
        request,
        "episode.html",
        episode=shown,
        header=header(shown, context),
        body=body(shown, context),
        doing=doing(shown, context),
        task=task_table(shown),
        has_task=await asyncio.to_thread(_has_task, studio, shown),
        tasks=TASKS,
        queue=None if queue is None else queue.split(),
        following=_queue_address(queue.split()) if queue else "",
        live="" if shown.over else f"/runs/{shown.id}/live",
    )


def task_table(episode: Episode) -> str:
    """The task of a run as a table for `mulligan bench run`, with its judge if a file can name it."""
    table = {"id": episode.id, "prompt": episode.task.prompt, **_judge_of(episode)}
    masked = cast(dict[str, Any], mask_json(table))
    return "\n".join(["[[task]]", *(f"{name} = {_toml(value)}" for name, value in masked.items()), ""])


def _judge_of(episode: Episode) -> dict[str, Any]:
    """The keys of a task file that name the episode's judge. Empty: a file cannot name it."""
    judge = table_of(episode.head.settings.get("evaluator"))
    name, settings = str(judge.get("name", "")), table_of(judge.get("settings"))
    if not name or name.startswith(OBJECT) or name == "model_judge":
        return {}
    return {"evaluator": name, "settings": settings} if settings else {"evaluator": name}


def _toml(value: Any) -> str:
    """A value of JSON as TOML, which has no null: what is null is left out."""
    if isinstance(value, dict):
        pairs = (f"{_toml(key)} = {_toml(part)}" for key, part in table_of(value).items() if part is not None)
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(part) for part in cast(list[Any], value) if part is not None)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML wants DEL escaped


async def _find(studio: Studio, id: str) -> Episode | None:
    """The episode with this id, or the only episode of the run with this id. None: the run has several.

    Raises `NotFound`, also for an episode of an agent that is not served.
    """
    try:
        return await studio.store.load(id, agent=studio.agent_id)
    except NotFound:
        matches = await studio.store.ids(f"{id}.", agent=studio.agent_id, limit=2)
        matches = matches or await studio.store.ids(id, agent=studio.agent_id, limit=2)
        if not matches:
            raise
    return await studio.store.load(matches[0], agent=studio.agent_id) if len(matches) == 1 else None


async def _named_episode(request: Request) -> Episode:
    """The episode that the address names. Raises `NotFound` unless it is the only one."""
    episode = await _find(studio_of(request), str(request.path_params["id"]))
    if episode is None:
        raise NotFound(f"{request.path_params['id']} matches several episodes. Give more characters of the id.")
    return episode


async def live(request: Request) -> Response:
    studio, id = studio_of(request), str(request.path_params["id"])
    await studio.store.load(id, agent=studio.agent_id)  # raises NotFound for an episode of another agent
    return studio.listeners.stream(partial(studio.store.revision, id))


async def step(request: Request) -> Response:
    """One step of the journal: its request and its response."""
    number, episode = int(request.path_params["number"]), await _named_episode(request)
    rows = await studio_of(request).store.steps(episode.id)
    if not 1 <= number <= len(rows):
        raise NotFound(f"Episode {episode.id} has {len(rows)} steps, not {number}.")
    row = rows[number - 1]
    messages = messages_of(row.request)
    settings = {name: part for name, part in table_of(row.request).items() if name != "messages"}
    return render(
        request,
        "step.html",
        episode=episode,
        call=calls_of(rows)[number - 1],
        key=row.key,
        last=len(rows),
        messages=messages,
        rest=list(formatted(settings if messages else row.request)),
        answer=list(_response_blocks(row)) if row.done else [],
        raw=[_json(row.request), _json(row.result)],
    )


def _response_blocks(row: StepRow) -> Iterator[Block]:
    """The response of a step; of a model's answer the text first, then the other fields."""
    table = table_of(row.result)
    content = table.get("content")
    if isinstance(content, str) and content:
        yield from formatted(_parsed(content))
        yield from formatted({name: part for name, part in table.items() if name not in ("content", "usage")})
    else:
        yield from formatted(row.result)


def _parsed(text: str) -> Any:
    """The object, if the text is one of JSON; else the text."""
    try:
        return json.loads(text) if text.lstrip().startswith("{") else text
    except ValueError:
        return text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


async def image(request: Request) -> Response:
    """An image of the episode, by its number from 1."""
    number, episode = int(request.path_params["number"]), await _named_episode(request)
    images = images_of(episode)
    if not 1 <= number <= len(images):
        raise NotFound(f"Episode {episode.id} has no image {number}: its images are numbered from 1 to {len(images)}.")
    data = images[number - 1].data
    return Response(data, media_type=format_of(data).media_type)


async def rating(request: Request) -> Response:
    """Opens the first of the selected runs, which are rated one after another."""
    return RedirectResponse(_queue_address(list(dict.fromkeys(request.query_params.getlist("id")))), 303)


def _queue_address(ids: Sequence[str]) -> str:
    """The address of the first of these runs, with the others as its queue. Without runs: that of the list."""
    return f"/runs/{quote(ids[0], safe='')}?{urlencode({'queue': ' '.join(ids[1:])})}" if ids else "/runs"


async def annotate(request: Request) -> Response:
    """Stores a person's score of the result, as `mulligan runs rate` does, and opens the next run of the queue."""
    studio, form, episode = studio_of(request), form_of(request), await _named_episode(request)
    try:
        score = float(form.get("score", ""))
    except ValueError as error:
        raise InvalidInput("Choose a score from 0 to 1.") from error
    await rate(studio.store, episode.id, None, score, form.get("comment", "").strip(), person())
    queue = form.get("queue", "").split()
    return RedirectResponse(_queue_address(queue) if queue else f"/runs/{quote(episode.id, safe='')}#ratings", 303)


async def add_task(request: Request) -> Response:
    """Adds the task of a run to the project's file of tasks."""
    studio, episode = studio_of(request), await _named_episode(request)
    if not _judge_of(episode):
        raise InvalidInput("The judge of this run cannot be named in a file, so its task cannot be added to one.")
    if not await asyncio.to_thread(_has_task, studio, episode):
        await asyncio.to_thread(_append, studio.root / TASKS, task_table(episode))
    return RedirectResponse(f"/runs/{quote(episode.id, safe='')}#as-task", 303)


def _has_task(studio: Studio, episode: Episode) -> bool:
    """Whether the project's file of tasks contains the task of this run."""
    with suppress(OSError, UnicodeDecodeError):
        return task_table(episode) in (studio.root / TASKS).read_text(encoding="utf-8")
    return False


def _append(file: Path, text: str) -> None:
    # Never through a symbolic link: an agent may have made one that leads out of the project.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    try:
        with open(os.open(file, flags, 0o644), "a", encoding="utf-8") as opened:
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
