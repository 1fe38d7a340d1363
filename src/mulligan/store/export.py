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
    """Records, events, journal steps (requests and results whole) and files of these episodes.

    {"mulligan": version, "schema": 1, "episodes": [{"episode", "events", "steps", "files"}], "steps": [...]}: the
    last holds the steps of all episodes, for a model that replays them. A step is {"episode", "key", "request",
    "request_hash", "result", "done"}; its hash is that of the request before masking. Raises `NotFound`.
    """
    from importlib.metadata import version

    exported = [one for _, one in await each_readable(episodes, lambda id: _exported(store, id))]
    return {
        "mulligan": version("mulligan"),
        "schema": SCHEMA,
        "episodes": exported,
        "steps": [step for one in exported for step in one["steps"]],
    }


async def each_readable(ids: Sequence[str], read: Callable[[str], Awaitable[T]]) -> list[tuple[str, T]]:
    """What `read` gives for each of these episodes, without those that cannot be read: a warning names them.

    Raises `Unreadable` where none can be read.
    """
    found: list[tuple[str, T]] = []
    errors: list[Unreadable] = []
    for id in ids:
        try:
            found.append((id, await read(id)))
        except Unreadable as error:
            errors.append(error)
    if errors and not found:
        raise errors[0]
    for error in errors:
        log.warning("left out: %s", error)
    return found


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
