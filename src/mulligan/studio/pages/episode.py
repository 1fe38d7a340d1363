"""An episode trial by trial, live while it runs, and the steps of its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.app.recipe import Recipe
from mulligan.app.story import state
from mulligan.core.episode import RESUMABLE, Move, due
from mulligan.core.errors import NotFound
from mulligan.core.limits import Limits
from mulligan.core.protocols import StepRow
from mulligan.core.records import Episode, Image, Trial, Usage
from mulligan.recording.drivers import (
    asked_by_name,
    driver,
    led_by_client,
    led_by_function,
    led_by_graph,
    sentence_in,
)
from mulligan.studio.diffs import Line, diff
from mulligan.studio.marks import kind_of_state, kind_of_verdict, verdict
from mulligan.studio.rendering import Studio, pretty, render, studio_of
from mulligan.text.formatting import kind_text
from mulligan.text.images import format_of
from mulligan.text.reflections import quality_words

MOST = 6_000
"""Characters of one text that the page shows, unless all of it is asked for."""

DOING = {"recall": "recalling lessons", "act": "trying", "evaluate": "judging", "reflect": "reflecting"}
ROLES = ("actor", "evaluator", "strategy", "reflector", "foresight")


@dataclass(frozen=True)
class Call:
    """A step of the journal: a model call, a tool call, or another effect.

    Attributes:
        number: among the steps of the episode, from 1.
        name: what was called, such as "model.actor#1"; `move` is what it was called for, such as "act".
        usage: of a model call that is done.
    """

    number: int
    trial: int
    move: str
    name: str
    done: bool
    usage: Usage | None


@dataclass(frozen=True)
class Shown:
    """A trial as the page has it.

    Attributes:
        changes: from the attempt that it grew from.
        prompt: the messages of the first question to the actor: what the trial was shown.
        calls: the steps of the journal that belong to it.
    """

    trial: Trial
    verdict: str
    kind: str
    changes: Sequence[Line]
    prompt: Sequence[tuple[str, str]]
    calls: Sequence[Call]
    quality: str


async def episode(request: Request) -> Response:
    studio, name = studio_of(request), str(request.path_params["id"])
    found = await _find(studio, name)
    if found is None:
        return RedirectResponse(f"/runs?{urlencode({'q': name, 'benches': 1})}")
    running = found.stop is None and await studio.store.holder(found.id) is not None
    rows = await studio.store.steps(found.id)
    calls = [_call(number, row) for number, row in enumerate(rows, 1)]
    said = state(found, running)
    over = found.stop is not None and found.stop.reason not in RESUMABLE
    return render(
        request,
        "episode.html",
        episode=found,
        state=said,
        kind=kind_of_state(found, said),
        doing=_doing(found, running, calls),
        facts=_facts(found),
        recall_calls=[call for call in calls if not call.trial],
        trials=[_shown(found, trial, rows, calls) for trial in found.trials],
        under_way=_under_way(found, rows, calls),
        sentence=sentence_in(rows) if asked_by_name(found) else "",
        image_numbers={id(image): number for number, image in enumerate(_images(found), 1)},
        most=0 if request.query_params.get("full") else MOST,
        live="" if over else f"/runs/{found.id}/live",
    )


async def _find(studio: Studio, id: str) -> Episode | None:
    """The episode of this id, or the only one of this run; None if there are several.

    Raises `NotFound`, also for those of an agent that is not served.
    """
    try:
        return await studio.store.load(id, agent=studio.agent_id)
    except NotFound:
        own = await studio.store.ids(id, agent=studio.agent_id, limit=2)
        if not own:
            raise
    return await studio.store.load(own[0], agent=studio.agent_id) if len(own) == 1 else None


def _facts(episode: Episode) -> Mapping[str, str]:
    settings: Mapping[str, Any] = episode.head.settings
    models = dict[str, list[str]]()
    for role, model in episode.head.models.items():
        models.setdefault(model, []).append(role)
    driven = {
        "Led by": "a client over MCP" if led_by_client(episode) else "",
        "Function": str(settings.get("function", "")) if led_by_function(episode) else "",
        "Graph": driver(episode) if led_by_graph(episode) else "",
    }
    roles = {role.capitalize(): str(_table(settings.get(role)).get("name", "")) for role in ROLES}
    said = {
        "Model": "; ".join(f"{model} ({', '.join(roles)})" for model, roles in models.items()),
        **driven,
        **({} if any(driven.values()) else roles),
        "Agent": episode.agent,
        "Kind of task": kind_text(episode.task),
        "Ended": episode.stop.detail if episode.stop else "",
    }
    return {name: text for name, text in said.items() if text}


def _call(number: int, row: StepRow) -> Call:
    path, _, name = row.key.rpartition("/")
    trial, _, move = path.partition("/")
    digits = trial.removeprefix("trial.")
    usage = _table(_table(row.result).get("usage")) if "model." in name else {}
    return Call(
        number=number,
        trial=int(digits) if digits.isdecimal() else 0,
        move=move or path,
        name=name,
        done=row.done,
        usage=Usage(**usage) if usage else None,
    )


def _shown(episode: Episode, trial: Trial, rows: Sequence[StepRow], calls: Sequence[Call]) -> Shown:
    own = [call for call in calls if call.trial == trial.number]
    parent = episode.trials[trial.parent - 1] if trial.parent else None
    quality = trial.reflection.quality if trial.reflection else None
    return Shown(
        trial,
        verdict(trial.feedback),
        kind_of_verdict(trial.feedback),
        diff(parent.attempt.output, trial.attempt.output) if parent else (),
        _prompt(rows, own),
        own,
        quality_words(quality) if quality else "",
    )


def _prompt(rows: Sequence[StepRow], calls: Sequence[Call]) -> Sequence[tuple[str, str]]:
    """Who says what in the first question to the actor."""
    asked = (rows[call.number - 1].request for call in calls if call.move == "act" and call.name.startswith("model."))
    return messages_of(next(asked, None))


def messages_of(request: Any) -> Sequence[tuple[str, str]]:
    """Who says what in a question to a model, as the journal has it; empty for other requests."""
    found = _table(request).get("messages")
    messages = map(_table, cast(list[Any], found) if isinstance(found, list) else [])
    return [(str(one.get("role", "")), str(one.get("text", ""))) for one in messages]


def _table(value: Any) -> dict[str, Any]:
    """The value if it is an object of JSON, else an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def _under_way(
    episode: Episode, rows: Sequence[StepRow], calls: Sequence[Call]
) -> tuple[int, Sequence[tuple[str, str]], Sequence[Call]] | None:
    """The trial whose attempt is not there yet: its number, what it is shown, and its steps. None: there is none."""
    number = len(episode.trials) + 1
    own = [call for call in calls if call.trial == number]
    return (number, _prompt(rows, own), own) if own else None


def _doing(episode: Episode, running: bool, calls: Sequence[Call]) -> str:
    """What is done now, in words; "" if nobody drives it."""
    if not running:
        return ""
    limits = Limits(**cast(dict[str, Any], Recipe.completed(episode.head.settings)["limits"]))
    move = due(episode, limits)
    if not isinstance(move, Move):
        return "ending"
    now = next((call.name.partition("#")[0] for call in reversed(calls) if not call.done), "")
    at = f"trial {move.trial} of {limits.trials}: " if move.trial else ""
    return f"{at}{DOING[move.kind]}{f' ({now})' if now else ''}"


async def live(request: Request) -> Response:
    studio, id = studio_of(request), str(request.path_params["id"])
    await studio.store.load(id, agent=studio.agent_id)
    return studio.listeners.stream(partial(studio.store.revision, id))


async def step(request: Request) -> Response:
    """One step of the journal: what was asked, and what came back."""
    studio, number = studio_of(request), int(request.path_params["number"])
    found = await studio.store.load(request.path_params["id"], agent=studio.agent_id)
    rows = await studio.store.steps(found.id)
    if not 1 <= number <= len(rows):
        raise NotFound(f"Episode {found.id} has {len(rows)} steps, not {number}.")
    row = rows[number - 1]
    messages = messages_of(row.request)
    settings = {name: part for name, part in _table(row.request).items() if name != "messages"}
    content = _table(row.result).get("content")
    return render(
        request,
        "step.html",
        episode=found,
        call=_call(number, row),
        key=row.key,
        last=len(rows),
        messages=messages,
        rest=pretty(settings if messages else row.request),
        answer=content if isinstance(content, str) and messages else "",
        result=pretty(row.result) if row.done else "",
    )


async def image(request: Request) -> Response:
    """An image of the episode, by its number from 1."""
    studio, number = studio_of(request), int(request.path_params["number"])
    found = await studio.store.load(request.path_params["id"], agent=studio.agent_id)
    images = _images(found)
    if not 1 <= number <= len(images):
        raise NotFound(f"Episode {found.id} has {len(images)} images, not {number}.")
    data = images[number - 1].data
    return Response(data, media_type=format_of(data).media_type)


def _images(episode: Episode) -> Sequence[Image]:
    """All images of the episode: of the task, of steps, of feedback."""
    return [
        *episode.task.images,
        *(one for trial in episode.trials for step in trial.attempt.steps for one in step.images),
        *(one for trial in episode.trials if trial.feedback for one in trial.feedback.images),
    ]


routes = [
    Route("/runs/{id}", episode),
    Route("/runs/{id}/live", live),
    Route("/runs/{id}/steps/{number:int}", step),
    Route("/runs/{id}/images/{number:int}", image),
]
