"""What a server does when it starts and until it stops: warnings, background learning."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, cast

from mulligan.core.operations import watched_by

if TYPE_CHECKING:
    from mulligan.app.service import Service

SETTLE_SECONDS = 1.0
"""How long to wait before background work, so that the client gets its first answers first."""

LOOK_SECONDS = 30.0
"""How often to look for learning jobs of servers that have died since."""

KEY = "_API_KEY"
"""How the names of variables with keys end; the table of providers is imported only if one is set."""


@asynccontextmanager
async def background_learning(service: Service) -> AsyncGenerator[None]:
    """A context in which learning jobs that other processes left behind are finished in the background, and what agents
    use counts for their quotas."""
    task = asyncio.create_task(_finish_pending(service))
    try:
        with watched_by(service.quotas.watch) if service.quotas else nullcontext():
            yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _finish_pending(service: Service) -> None:
    await asyncio.sleep(SETTLE_SECONDS)
    while True:
        await service.finish_pending()
        await asyncio.sleep(LOOK_SECONDS)


def unused_keys(service: Service) -> Iterator[str]:
    """A warning for each variable with the key of a provider that no named model belongs to.

    A key alone does not choose a model; users of other servers may expect it to.
    """
    if not any(name.endswith(KEY) for name in os.environ):
        return
    from mulligan.models.providers import PROVIDERS

    named = tuple(_named(service))
    used = {key for name in named if name in PROVIDERS for key in PROVIDERS[name].keys}
    seen = set(used)
    for name, provider in PROVIDERS.items():
        for key in provider.keys:
            if key in seen or not os.environ.get(key, "").strip():
                continue
            seen.add(key)
            why = "no model was named" if service.model is None else "no model that was named uses it"
            yield f"{key} is set, and {why}, so it is not used: to use it, --model {name}:{provider.example or 'NAME'}"


def _named(service: Service) -> Iterator[str]:
    """The providers of all models named by flag, variable or mulligan.toml."""
    variables = [value for name, value in os.environ.items() if name.startswith("MULLIGAN_MODEL")]
    for model in _texts([service.served.model, service.served.embedder, variables, service.config.values]):
        yield model.partition(":")[0]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(cast("Mapping[str, Any]", value).values()))
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _texts(one)
