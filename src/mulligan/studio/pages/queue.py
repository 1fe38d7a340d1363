"""The pages of the queue: pending jobs of the bank, and questions that wait for an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from mulligan.plugins import InvalidInput
from mulligan.running import Bank
from mulligan.studio.pages.lesson import address, text_of
from mulligan.studio.rendering import render, studio_of
from mulligan.studio.safety import form_of

MARKS: Mapping[str, str] = {"queued": "note", "running": "running", "waiting": "unjudged", "failed": "error"}
"""The mark of each status of a job."""


async def queue(request: Request) -> Response:
    """Pending jobs, oldest first, as `mulligan memory pending` lists them."""
    return render(
        request,
        "queue.html",
        pending=await studio_of(request).bank.pending(),
        marks=MARKS,
        live="/queue/live",
    )


async def _bank_of(request: Request) -> Bank:
    """The bank of the job that the address names. Raises `NotFound`, also if the bank is not served."""
    studio = studio_of(request)
    job = await studio.store.memory.queue.look(studio.agent_id, str(request.path_params["id"]))
    return studio.chosen_bank(job.agent_id)


async def live(request: Request) -> Response:
    studio = studio_of(request)
    return studio.listeners.stream(studio.bank.pending)


async def question(request: Request) -> Response:
    """The question of a job, with a form for its answer."""
    job = str(request.path_params["id"])
    asked = await (await _bank_of(request)).question(job)
    schema = json.dumps(asked.schema, ensure_ascii=False, indent=2)
    return render(request, "question.html", work=job, question=asked, schema=schema)


async def commit(request: Request) -> Response:
    """Answers a question, as `mulligan memory pending` does."""
    bank = await _bank_of(request)
    try:
        answer = json.loads(text_of(form_of(request), "answer"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The answer is not valid JSON: {error}.") from error
    learned = await bank.commit(str(request.path_params["id"]), answer)
    if learned.failed:
        raise InvalidInput(f"Nothing was learned: {learned.failed}")
    new = (*learned.lessons, *learned.folded, *learned.quarantined)
    return RedirectResponse(address(new[0]) if new else "/queue", 303)


routes = [
    Route("/queue", queue),
    Route("/queue/live", live),
    Route("/queue/{id}", question),
    Route("/queue/{id}", commit, methods=["POST"]),
]
