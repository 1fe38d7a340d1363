"""An environment whose steps are journaled: a resume acts on where it was, and notices a world that has changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mulligan.app.environments import EpisodeEnvironment
from mulligan.core.errors import JournalDiverged
from mulligan.core.records import Episode, Outcome, Spec, Step, Task
from mulligan.recording.journal import NoJournal, StoredJournal
from mulligan.recording.ledger import Entry
from mulligan.store.sqlite import SqliteStore

SPEC = Spec("counter", {"start": 5})


class Counter:
    """Adds up what it is told; `log` is shared by all that were made, so that every real action shows."""

    def __init__(self, log: list[str], start: int = 5) -> None:
        self._log, self._start, self._sum = log, start, start

    async def reset(self) -> str:
        self._log.append("reset")
        self._sum = self._start
        return f"at {self._sum}"

    async def step(self, action: str) -> Step:
        self._log.append(action)
        self._sum += int(action)
        return Step(action=action, observation=f"at {self._sum}", outcome=Outcome(float(self._sum), self._sum > 9))

    async def close(self) -> None:
        self._log.append("close")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    own = SqliteStore(tmp_path / "m.db")
    await own.create(Episode("e.1", Task("count")))
    yield own
    await own.close()


async def walked(store: SqliteStore, owner: str, log: list[str], actions: list[str], start: int = 5) -> list[Step]:
    lease = await store.acquire("e.1", owner, 60)
    world = EpisodeEnvironment(SPEC, lambda: Counter(log, start), StoredJournal(await Entry.read(store, lease)))
    try:
        async with world.open() as environment:
            assert await environment.reset() == "at 5"
            return [await environment.step(action) for action in actions]
    finally:
        await store.release(lease)


async def test_a_resume_takes_what_was_observed_and_acts_only_on_what_is_new(store: SqliteStore) -> None:
    before, replayed, further = list[str](), list[str](), list[str]()
    first = await walked(store, "a", before, ["1", "2"])
    assert before == ["reset", "1", "2", "close"]
    assert await walked(store, "b", replayed, ["1", "2"]) == first
    assert replayed == []
    steps = await walked(store, "c", further, ["1", "2", "3"])
    assert further == ["reset", "1", "2", "3", "close"]
    assert steps == [*first, Step(action="3", observation="at 11", outcome=Outcome(11.0, True))]


async def test_a_world_that_answers_otherwise_is_noticed_before_anything_new_is_done(store: SqliteStore) -> None:
    await walked(store, "a", [], ["1"])
    log = list[str]()
    with pytest.raises(JournalDiverged, match="counter answers to action 0"):
        await walked(store, "b", log, ["1", "2"], start=6)
    assert log == ["reset", "close"]


async def test_each_trial_has_a_world_of_its_own() -> None:
    log = list[str]()
    world = EpisodeEnvironment(SPEC, lambda: Counter(log), NoJournal())
    for _ in range(2):
        async with world.open() as environment:
            await environment.reset()
            assert (await environment.step("1")).observation == "at 6"
    assert log == ["reset", "1", "close"] * 2
