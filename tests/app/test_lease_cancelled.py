"""Work that is cancelled while it takes its lease leaves none behind."""

import asyncio
from pathlib import Path

import pytest

from mulligan.core.records import Episode, Task
from mulligan.recording.leases import leased
from mulligan.store.sqlite import SqliteStore


async def test_a_lease_is_given_back_however_early_the_work_is_cancelled(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "mulligan.db")
    await store.create(Episode("e", Task("p")))

    async def work() -> None:
        async with leased(store, "e"):
            await asyncio.Event().wait()

    for turns in range(1, 6):
        working = asyncio.create_task(work())
        for _ in range(turns):
            await asyncio.sleep(0)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(working, 20)
        assert await store.holder("e") is None
    async with leased(store, "e"):
        assert await store.holder("e")
    await store.close()
