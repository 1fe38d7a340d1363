"""The worker behind a bank: what is accepted while it looks whether anything is left, and a store that fails once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from banks import an_episode, lessons_of, mind

from mulligan import Bank
from mulligan.app.memory import open_bank
from mulligan.bank.upkeep import upkeep as worker
from mulligan.core.errors import StoreError
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.store.sqlite import SqliteStore

ONE, OTHER = ("Whole history", "Open the full history."), ("Rest the dough", "Bread needs a night in the cold.")
MODEL = mind(lambda text: lessons_of(OTHER if "Bake" in text else ONE))


class Memory:
    """A store's memory, with something that happens once, after the queue was looked through or before a claim."""

    def __init__(self, store: SqliteStore) -> None:
        self.lessons: Any = store.memory.lessons
        self.queue: Any = self
        self._queue: Any = store.memory.queue
        self.after_due: Callable[[], Awaitable[Any]] | None = None
        self.before_claim: Exception | None = None

    async def due(self, kinds: Sequence[str]) -> float | None:
        found = await self._queue.due(kinds)
        happens, self.after_due = self.after_due, None
        if happens is not None:
            await happens()
        return found

    async def claim(self, *given: Any) -> Any:
        fails, self.before_claim = self.before_claim, None
        if fails is not None:
            raise fails
        return await self._queue.claim(*given)

    async def close(self) -> None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


async def learned(bank: Bank, count: int) -> None:
    """Looks only: nothing of it wakes the worker."""
    async with asyncio.timeout(20):
        while True:
            if len(await bank.list()) >= count:
                return
            await asyncio.sleep(0.01)


async def test_what_is_accepted_while_the_worker_looks_a_last_time_is_done(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    memory = Memory(store)
    async with open_bank("", store=memory, embedder=HashEmbedder(), model=MODEL) as bank:
        second = an_episode("e2", "Bake bread", "done")
        memory.after_due = lambda: bank.learn(second, background=True)
        await bank.learn(an_episode("e1", "Find it", "done"), background=True)
        await learned(bank, 2)
    await store.close()


async def test_a_store_that_fails_once_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "MAX_PAUSE", 0.05)
    store = SqliteStore(tmp_path / "m.db")
    memory = Memory(store)
    async with open_bank("", store=memory, embedder=HashEmbedder(), model=MODEL) as bank:
        memory.before_claim = StoreError("the store is busy")
        await bank.learn(an_episode("e1", "Find it", "done"), background=True)
        await learned(bank, 1)
        assert memory.before_claim is None
    await store.close()
