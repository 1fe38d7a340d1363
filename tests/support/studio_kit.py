"""A studio over the store of the test's own home, and what is recorded there."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import httpx2

import mulligan
from mulligan.app.service import ServerOptions, Service
from mulligan.bench.report.figures import Recorded
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Task
from mulligan.models.scripted import ScriptedModel
from mulligan.studio.application import application
from mulligan.web.hosts import HostPolicy, bind
from mulligan.web.tokens import Token

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e{{ 7 * 7 }} sk-ant-api03-" + "x" * 95
"""What a model might say to the one who looks."""


class StudioClient(httpx2.AsyncClient):
    """csrf: the secret that the forms of its studio carry."""

    csrf: str = ""


@asynccontextmanager
async def studio_client(
    *, agent_id: str | None = None, write: bool = False, tokens: Sequence[Token] = (), host: str = "127.0.0.1"
) -> AsyncGenerator[StudioClient]:
    """A client of a studio in this process, as a browser on this machine would call it."""
    service = Service(ServerOptions(agent_id))
    bound = bind(host, 0, guarded=bool(tokens))
    with closing(bound.listening):
        app = application(HostPolicy(bound, ()), service=service, write=write, tokens=tokens)
    transport = httpx2.ASGITransport(app=app)
    try:
        async with StudioClient(transport=transport, base_url=f"http://{host}:8642") as client:
            client.csrf = app.state.studio.csrf
            yield client
    finally:
        await service.close()


async def solved(store: Store, task: str = "Say green", **options: Any) -> Episode:
    """An episode whose second trial passes."""
    lesson = "I must say green, the word that the check asks for."
    return await mulligan.solve(
        task,
        model=ScriptedModel(["red", lesson, "green"]),
        evaluator="contains:green",
        store=store,
        trials=3,
        **options,
    )


async def keep(store: Store, *runs: Recorded) -> None:
    """Stores benchmark runs, with episodes that have no trials."""
    for one in runs:
        await store.benches.begin(one.run)
        for result in one.results:
            await store.benches.settle(one.run.id, result)
        for episode in one.episodes.values():
            await store.create(Episode(episode.id, Task("say right"), one.run.id, head=episode.head))
