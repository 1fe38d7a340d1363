"""The pages of an episode: its tries, live while it runs; the steps of its journal; and the ratings of people."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.pages import EpisodePages
from mulligan.plugins import Episode, InvalidInput, NotFound
from mulligan.running import rate_run
from mulligan.studio.rendering import Studio, render, studio_of
from mulligan.studio.safety import form_of

TASKS = "tasks.toml"
"""The file in the project's folder that tasks are added to."""


async def episode(request: Request) -> Response:
    studio, name = studio_of(request), str(request.path_params["id"])
    shown = await _find(studio, name)
    if shown is None:
        return RedirectResponse(f"/runs?{urlencode({'q': name, 'benches': 1})}")
    pages = _pages(studio, shown)
    queue = request.query_params.get("queue")
    return render(
        request,
        "episode.html",
        episode=shown,
        story=await pages.story(),
        task=pages.task,
        has_judge=pages.has_judge,
        has_task=await asyncio.to_thread(_has_task, studio, pages.task),
        tasks=TASKS,
        queue=None if queue is None else queue.split(),
        following=_queue_address(queue.split()) if queue else "",
        live="" if shown.over else f"/runs/{shown.id}/live",
    )


def _pages(studio: Studio, episode: Episode) -> EpisodePages:
    return EpisodePages(studio.store, episode, studio.agent_id)


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
        raise NotFound(f"{request.path_params['id']} matches several episodes. Use more characters of the id.")
    return episode


async def live(request: Request) -> Response:
    studio, id = studio_of(request), str(request.path_params["id"])
    await studio.store.load(id, agent=studio.agent_id)  # raises NotFound for an episode of another agent
    return studio.listeners.stream(partial(studio.store.revision, id))


async def step(request: Request) -> Response:
    """One step of the journal: its request and its response."""
    episode = await _named_episode(request)
    page = await _pages(studio_of(request), episode).step(int(request.path_params["number"]))
    return render(request, "step.html", episode=episode, page=page, call=page.call)


async def image(request: Request) -> Response:
    """An image of the episode, by its number from 1."""
    pages = _pages(studio_of(request), await _named_episode(request))
    data, media_type = pages.image(int(request.path_params["number"]))
    return Response(data, media_type=media_type)


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
    await rate_run(studio.store, episode.id, score, comment=form.get("comment", "").strip())
    queue = form.get("queue", "").split()
    return RedirectResponse(_queue_address(queue) if queue else f"/runs/{quote(episode.id, safe='')}#ratings", 303)


async def add_task(request: Request) -> Response:
    """Adds the task of a run to the project's file of tasks."""
    studio, episode = studio_of(request), await _named_episode(request)
    pages = _pages(studio, episode)
    if not pages.has_judge:
        raise InvalidInput("A task file cannot specify this run's judge, so the task cannot be added to one.")
    if not await asyncio.to_thread(_has_task, studio, pages.task):
        await asyncio.to_thread(_append, studio.root / TASKS, pages.task)
    return RedirectResponse(f"/runs/{quote(episode.id, safe='')}#as-task", 303)


def _has_task(studio: Studio, task: str) -> bool:
    """Whether the project's file of tasks contains this task."""
    with suppress(OSError, UnicodeDecodeError):
        return task in (studio.root / TASKS).read_text(encoding="utf-8")
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
