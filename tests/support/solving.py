"""A `solve` that hangs after its first trial, in a server of its own, and what its store says of the episode then."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wire_client import Wire

from mulligan.app.solve import resume
from mulligan.core.records import Episode
from mulligan.store.sqlite import SqliteStore

ASK = {"task": "What is six times seven?", "expected": "42", "agentId": "me"}
MODEL = ("--model", "openai:gpt-4o")
HANGS = ("41", "Six times seven is more than 41.", {"hang": True})
REFLECTED = 1
"""The progress once the first trial is reflected on."""
REQUEST = {
    "jsonrpc": "2.0",
    "id": 77,
    "method": "tools/call",
    "params": {"name": "solve", "arguments": ASK, "_meta": {"progressToken": "p"}},
}


def until_hung(receive: Callable[[], Any]) -> None:
    """Reads what the server sends until the first trial is reflected on."""
    while (message := receive())["params"]["progress"] < REFLECTED:
        assert message["params"]["progressToken"] == "p"


async def left() -> Episode:
    """The only episode of the store, once nobody drives it any more."""
    store = SqliteStore(Path(os.environ["MULLIGAN_HOME"]) / "mulligan.db")
    try:
        async with asyncio.timeout(20):
            while True:
                (episode,) = await store.list()
                if not await store.holder(episode.id):
                    return await store.load(episode.id)
                await asyncio.sleep(0.02)
    finally:
        await store.close()


async def goes_on(wire: Wire, episode: Episode, *, interrupted: bool = True) -> None:
    """The episode was broken off after its first trial, and a resume begins with the second."""
    assert [trial.attempt.output for trial in episode.trials] == ["41"]
    assert episode.agent == "me"
    if interrupted:
        assert episode.stop is not None
        assert episode.stop.reason == "interrupted"
    wire.plays("42")
    assert (await resume(episode.id)).solved
    assert len(wire.requests) == 1, "the first trial was not asked for again"
