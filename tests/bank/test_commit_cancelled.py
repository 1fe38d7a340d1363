"""An answer whose call is cancelled on the way: the work is answered, or waits again at once. It is never held by nobody."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from banks import a_bank, an_episode, lessons_of

from mulligan import Bank
from mulligan.app.memory import open_bank
from mulligan.core.work_queue import Queued
from mulligan.store import open_store

ANSWER = lessons_of(("Oil first", "Oil the hinge first."))


class Gated:
    """A part of the store that stops behind (or before) one of its calls until it is let go on."""

    def __init__(self, part: Any, name: str, *, behind: bool) -> None:
        self._part, self._name, self._behind = part, name, behind
        self.there, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._part, name)
        if name != self._name:
            return call

        async def stopping(*args: Any, **given: Any) -> Any:
            done = await call(*args, **given) if self._behind else None
            self.there.set()
            await self.go.wait()
            return done if self._behind else await call(*args, **given)

        return stopping


async def looked_at(bank: Bank, work: str) -> Queued:
    """The work, as soon as nobody is at it any more."""
    async with asyncio.timeout(10):
        while True:
            (queued,) = await bank.pending()
            if queued.status != "running":
                return queued
            await asyncio.sleep(0.01)


async def cancelled_at(folder: Path, part: str, name: str, *, behind: bool) -> None:
    real = open_store(folder / "m.db").memory
    gate = Gated(getattr(real, part), name, behind=behind)
    shown: Any = {"lessons": real.lessons, "queue": real.queue, "close": real.close, part: gate}
    bank = open_bank("", store=cast(Any, SimpleNamespace(**shown)), embedder="none")
    async with a_bank(folder / "m.db") as other:
        learned = await bank.learn(an_episode("e", "Open the door.", "x"))
        assert learned.work is not None
        committing = asyncio.create_task(bank.commit(learned.work, ANSWER))
        async with asyncio.timeout(10):
            await gate.there.wait()
        committing.cancel()
        await asyncio.wait([committing], timeout=10)
        assert committing.cancelled()
        gate.go.set()
        assert (await looked_at(other, learned.work)).status == "waiting"
        assert len((await other.commit(learned.work, ANSWER)).lessons) == 1
    await bank.close()


async def test_cancelled_when_it_was_just_taken(tmp_path: Path) -> None:
    await cancelled_at(tmp_path, "queue", "take", behind=True)


async def test_cancelled_before_the_lessons_are_kept(tmp_path: Path) -> None:
    await cancelled_at(tmp_path, "lessons", "add", behind=False)
