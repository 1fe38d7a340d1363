"""Whole episodes against a provider on loopback: real store, real roles, every format, every kind of trouble."""

from pathlib import Path
from typing import Any

import pytest
from wire_client import KEY, Wire, patience

from mulligan.app.solve import resume, solve
from mulligan.core.protocols import Model
from mulligan.models.catalog import open_model
from mulligan.models.settings import CallSettings
from mulligan.store.sqlite import SqliteStore

TASK = "What is six times seven? Answer with the number alone."
LESSON = "Six times seven is not forty-one: count again."
FORMATS = ["openai:gpt-4o", "anthropic:claude-haiku-4-5", "alibaba:qwen-plus"]
TROUBLES: dict[str, Any] = {
    "429": {"status": 429, "headers": {"Retry-After": "1"}, "body": {"error": {"message": "slow down"}}},
    "500": {"status": 500},
    "dropped": {"drop": True},
    "hang": {"hang": True},
    "malformed": {"malformed": True},
}


def opened(name: str, trouble: str = "") -> Model:
    seconds = patience(TROUBLES.get(trouble, {}))
    return open_model(name, settings=CallSettings(timeout=seconds, attempts=2, first_wait=0, longest_wait=0))


def written(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("name", FORMATS)
async def test_an_episode_in_every_format(wire: Wire, tmp_path: Path, name: str) -> None:
    wire.plays("41", LESSON, "42")
    store = SqliteStore(tmp_path / "mulligan.db")
    episode = await solve(TASK, evaluator="exact_match:42", strategy="reflexion", model=opened(name), store=store)
    assert episode.solved
    assert [trial.attempt.output for trial in episode.trials] == ["41", "42"]
    assert LESSON in str(wire.bodies[2]), "the second trial was shown the lesson of the first"
    assert episode.usage.calls == 3
    assert episode.usage.tokens > 0
    steps = await store.steps(episode.id)
    assert sum("model." in step.key for step in steps) == 3
    await store.close()
    assert KEY.encode() not in written(tmp_path)


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_that_passes_does_not_show_in_the_episode(wire: Wire, tmp_path: Path, trouble: str) -> None:
    wire.plays("41", TROUBLES[trouble], LESSON, TROUBLES[trouble], "42")
    store = SqliteStore(tmp_path / "mulligan.db")
    episode = await solve(
        TASK, evaluator="exact_match:42", strategy="reflexion", model=opened("openai:gpt-4o", trouble), store=store
    )
    await store.close()
    assert episode.solved
    assert (len(episode.trials), episode.usage.calls) == (2, 3)


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_trouble_that_stays_ends_in_an_error_and_the_run_goes_on_later(
    wire: Wire, tmp_path: Path, trouble: str
) -> None:
    wire.plays("41", TROUBLES[trouble], TROUBLES[trouble])
    store = SqliteStore(tmp_path / "mulligan.db")
    stopped = await solve(
        TASK, evaluator="exact_match:42", strategy="reflexion", model=opened("openai:gpt-4o", trouble), store=store
    )
    assert stopped.stop is not None
    assert stopped.stop.reason == "error"
    assert "reflect of trial 1: openai:gpt-4o at http://127.0.0.1" in stopped.stop.detail
    assert "(tried 2 times)" in stopped.stop.detail
    wire.plays(LESSON, "42")
    episode = await resume(stopped.run, model=opened("openai:gpt-4o", trouble), store=store)
    await store.close()
    assert episode.solved
    assert [trial.attempt.output for trial in episode.trials] == ["41", "42"]
    assert len(wire.requests) == 2, "the first trial was not asked for again"
