"""Hostile messages to a server with a model that is no better: calls that take a while, and are cancelled meanwhile."""

from collections.abc import Generator
from pathlib import Path

import pytest
from hostile_lane import StdioLane, intact, keep
from repetition import repeats
from serving import piped
from wire_client import KEY, Wire, running

from mulligan.app.config import load

LESSON = {"title": "Look first", "description": "When it is dark.", "content": "Look first.", "steps": [1]}
LESSONS = {"lessons": [LESSON], "nothing_because": "", "why": "It looked."}
VERDICT = {"reasoning": "So it seems.", "verdict": "failure"}
"""What fits some questions and not others: each is answered with one of them, or not well at all."""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Generator[Wire]:
    with running("--port", "0") as wire:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", wire.url)
        yield wire


async def lane(wire: Wire, seed: int, revision: str, count: int) -> None:
    database = Path(load().database)
    known = await keep(database)
    wire.plays(
        {"when": "verdict", "answer": VERDICT, "delay": 0.02},
        {"when": "lessons", "answer": LESSONS, "delay": 0.03},
        {"when": "plain", "answer": "42", "delay": 0.05},
        {"when": "other", **({"malformed": True} if count > 100 else {"status": 400, "body": "no"})},  # tried again
        {"when": "good", "status": 400, "body": "no"},
        {"when": "", "answer": "\x00 ﷺ </answer>", "delay": 0.01},
    )
    with piped("--embedder", "none", "--output-schemas", "--model", "openai:gpt-4o") as server:
        driven = StdioLane(server, seed, revision=revision)
        driven.drive(count)
        print(driven.report())
        server.close_input()
        assert server.ended() == 0
        said = server.said()
    await intact(
        database, known, said, "canary"
    )  # a step without an id may go on with the canary's episode, and end it


@pytest.mark.slow
async def test_hostile_calls_of_a_model(model: Wire) -> None:
    await lane(model, 1, "2025-06-18", 60)


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_many_hostile_calls_of_a_model(model: Wire, revision: str) -> None:
    await lane(model, 51, revision, repeats(500))
