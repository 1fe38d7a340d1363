"""Exports episodes of any store as one JSON value that replays offline, with all secrets masked."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from mulligan.core.codec import SCHEMA, to_json
from mulligan.core.errors import Unreadable
from mulligan.core.protocols import StepRow
from mulligan.core.records import Json
from mulligan.core.stores import EpisodeReader
from mulligan.text.secrets import mask_json

T = TypeVar("T")

log = logging.getLogger("mulligan")


async def export(store: EpisodeReader, episodes: Sequence[str]) -> Json:
    """Exports records, events, journal steps (with whole requests and results) and files of these episodes.

    The form is {"mulligan": version, "schema": 1, "episodes": [{"episode", "events", "steps", "files"}], "steps":
    [...]}, where the last has the steps of all episodes, for a model that replays them. A step is {"episode", "key",
    "request", "request_hash", "result", "done"}; the hash is that of the request before masking. Raises `NotFound`.
    """
    from importlib.metadata import version

    exported = [episode for _, episode in await each_readable(episodes, lambda id: _exported(store, id))]
    return {
        "mulligan": version("mulligan"),
        "schema": SCHEMA,
        "episodes": exported,
        "steps": [step for episode in exported for step in episode["steps"]],
    }


async def each_readable(ids: Sequence[str], read: Callable[[str], Awaitable[T]]) -> list[tuple[str, T]]:
    """Each of these episodes with the result of `read`. Unreadable ones are left out, with a warning.

    Raises `Unreadable` if none can be read.
    """
    results: list[tuple[str, T]] = []
    errors: list[Unreadable] = []
    for id in ids:
        try:
            results.append((id, await read(id)))
        except Unreadable as error:
            errors.append(error)
    if errors and not results:
        raise errors[0]
    for error in errors:
        log.warning("left out: %s", error)
    return results


async def _exported(store: EpisodeReader, id: str) -> dict[str, Any]:
    return mask_json(
        {
            "episode": to_json(await store.load(id)),
            "events": [to_json(event) for event in await store.events(id)],
            "steps": [_step(id, row) for row in await store.steps(id)],
            "files": dict(await store.files(id)),
        }
    )


def _step(id: str, row: StepRow) -> Json:
    return {
        "episode": id,
        "key": row.key,
        "request": row.request,
        "request_hash": row.request_hash,
        "result": row.result,
        "done": row.done,
    }
