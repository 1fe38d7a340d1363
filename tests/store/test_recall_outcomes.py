"""What came of the tasks that lessons were recalled for, and work that changes hands: through the protocols alone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from lesson_kit import KINDS, STORES, entry

from mulligan.core.errors import LeaseLost, NotFound, StoreError
from mulligan.core.lesson_history import Receipt, TaskOutcome
from mulligan.core.lesson_store import Memory
from mulligan.store import open_store


@pytest.fixture(params=KINDS)
async def memory(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Memory]:
    opened = STORES[request.param](tmp_path)
    for agent in ("a", "b"):
        await opened.lessons.recalled(Receipt("r", agent, 1.0, "q"))
    await opened.lessons.recalled(Receipt("all", None, 1.0, "q"))
    yield opened
    await opened.close()


async def outcomes(memory: Memory, agent: str | None = "a", id: str = "r") -> list[TaskOutcome]:
    return list((await memory.lessons.receipt(agent, id)).outcomes)


async def test_a_receipt_tells_what_came_of_its_tasks(memory: Memory) -> None:
    first = await memory.queue.enqueue("k", "a", {"success": None}, follows=["r", "all", "gone"])
    second = await memory.queue.enqueue("k", "a", {"success": True}, follows=["r"])
    assert await outcomes(memory) == [TaskOutcome(first, None), TaskOutcome(second, True)]
    claimed = await memory.queue.claim("me", 60, ["k"])
    assert claimed is not None
    await memory.queue.finish(claimed[1], {"success": False})
    assert await outcomes(memory) == [TaskOutcome(first, False), TaskOutcome(second, True)]
    assert await outcomes(memory, None, "all") == [TaskOutcome(first, False)]
    assert await outcomes(memory, "b") == []


async def test_work_that_is_there_already_follows_once(memory: Memory) -> None:
    id = await memory.queue.enqueue("k", "a", {"success": True}, key="x")
    assert await outcomes(memory) == []
    for _ in range(2):
        assert await memory.queue.enqueue("k", "a", {}, key="x", follows=["r"]) == id
    assert await outcomes(memory) == [TaskOutcome(id, True)]


async def test_a_purge_forgets_the_outcomes(memory: Memory) -> None:
    await memory.lessons.add("a", [entry("1")])
    await memory.queue.enqueue("k", "a", {"success": True}, follows=["r", "all"])
    other = await memory.queue.enqueue("k", "b", {"success": True}, follows=["r", "all"])
    await memory.lessons.purge("a", None)
    with pytest.raises(NotFound):
        await memory.lessons.receipt("a", "r")
    assert await outcomes(memory, "b") == [TaskOutcome(other, True)]
    assert await outcomes(memory, None, "all") == [TaskOutcome(other, True)]
    assert list(await memory.lessons.verify()) == []


async def test_an_archive_keeps_the_outcomes(tmp_path: Path) -> None:
    here, there = open_store(tmp_path / "here.db").memory, open_store(tmp_path / "there.db").memory
    await here.lessons.recalled(Receipt("r", "a", 1.0, "q"))
    work = await here.queue.enqueue("k", "a", {"success": False}, follows=["r"])
    archives = await here.lessons.archive("a")
    for _ in range(2):
        await there.lessons.restore([(archive, ()) for archive in archives])
    assert await outcomes(there) == [TaskOutcome(work, False)]
    later = await there.queue.enqueue("k", "a", {"success": True}, follows=["r"])
    assert await outcomes(there) == [TaskOutcome(work, False), TaskOutcome(later, True)]
    assert (await there.lessons.archive("a"))[0].receipts == (await there.lessons.receipt("a", "r"),)
    for memory in (here, there):
        await memory.close()


async def test_work_is_found_by_its_key_until_it_fails(memory: Memory) -> None:
    id = await memory.queue.enqueue("k", "a", {}, key="x")
    assert await memory.queue.find("a", "k", "x") == id
    for agent, kind, key in (("b", "k", "x"), ("a", "j", "x"), ("a", "k", "y"), ("c", "k", "x")):
        assert await memory.queue.find(agent, kind, key) is None
    claimed = await memory.queue.claim("me", 60, ["k"])
    assert claimed is not None
    await memory.queue.fail(claimed[1], "no", retry_in=None)
    assert await memory.queue.find("a", "k", "x") is None


async def test_work_that_waits_can_be_queued_and_the_other_way_round(memory: Memory) -> None:
    queue = memory.queue
    id = await queue.enqueue("k", "a", {}, waiting=True)
    assert await queue.due(["k"]) is None
    await queue.turn("a", id, waiting=False)
    claimed = await queue.claim("me", 60, ["k"])
    assert claimed is not None
    with pytest.raises(LeaseLost, match="is being run by me"):
        await queue.turn("a", id, waiting=True)
    await queue.fail(claimed[1], "no", retry_in=60)
    with pytest.raises(NotFound):
        await queue.turn("b", id, waiting=True)
    await queue.turn("a", id, waiting=True)
    assert await queue.claim("me", 60, ["k"]) is None
    _, claim = await queue.take("a", id, "me", 60)
    await queue.finish(claim, None)
    with pytest.raises(StoreError, match="is done: there is nothing left"):
        await queue.turn("a", id, waiting=False)


async def test_pending_work_of_one_kind(memory: Memory) -> None:
    for kind in ("j", "k", "k"):
        await memory.queue.enqueue(kind, "a", {})
    assert [work.kind for work in await memory.queue.pending("a", kind="k")] == ["k", "k"]
    assert len(await memory.queue.pending("a")) == 3
    assert await memory.queue.pending("b", kind="k") == ()


async def test_when_the_next_work_is_due(memory: Memory) -> None:
    queue = memory.queue
    assert await queue.due(["k", "j"]) is None
    await queue.enqueue("k", "a", {})
    assert await queue.due(["j"]) is None
    assert await queue.due(["k", "j"]) == 0.0
    claimed = await queue.claim("me", 60, ["k"])
    assert claimed is not None
    assert 50 < (await queue.due(["k"]) or 0) - time.time() < 70
    await queue.fail(claimed[1], "later", retry_in=500)
    assert 400 < (await queue.due(["k"]) or 0) - time.time() < 510
