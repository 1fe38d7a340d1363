"""Who may take over from whom: no clock but one's own counts, and a process of this machine lives or does not."""

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from mulligan.core.errors import LeaseLost
from mulligan.core.records import Episode, Task
from mulligan.recording import holders
from mulligan.recording.holders import birth, died, owner
from mulligan.recording.leases import leased
from mulligan.store.sqlite import SqliteStore

ELSEWHERE = "another-machine/1:17:abcd.00000000"


class Clock:
    """A monotonic clock that is put forward by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(tmp_path: Path, clock: Clock) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(tmp_path / "m.db", clock=clock)
    await opened.create(Episode("e", Task("p")))
    yield opened
    await opened.close()


@pytest.mark.parametrize("off", [-3600.0, 0.0, 3600.0])
async def test_a_lease_of_another_machine_is_taken_when_it_has_stood_still_whatever_its_clock_says(
    store: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    now = time.time()
    with monkeypatch.context() as neighbour:
        neighbour.setattr("mulligan.store.sqlite.leases.time.time", lambda: now + off)
        theirs = await store.acquire("e", ELSEWHERE, 30)
    for _ in range(3):  # as long as it is renewed, it is theirs
        with pytest.raises(LeaseLost, match="in use by another-machine/1:17"):
            await store.acquire("e", owner(), 30)
        clock.now += 29
        with monkeypatch.context() as neighbour:
            neighbour.setattr("mulligan.store.sqlite.leases.time.time", lambda: clock.now + off)
            await store.renew(theirs, 30)
    with pytest.raises(LeaseLost):
        await store.acquire("e", owner(), 30)
    clock.now += 30
    assert (await store.acquire("e", owner(), 30)).fence == theirs.fence + 1


async def test_queued_work_of_another_machine_is_done_when_its_claim_has_stood_still(
    store: SqliteStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = store.memory.queue
    id = await queue.enqueue("k", "a", {})
    now = time.time()
    with monkeypatch.context() as neighbour:
        neighbour.setattr(
            "mulligan.store.sqlite.leases.time.time", lambda: now - 3600
        )  # its clock is behind: its claim looks old
        claimed = await queue.claim(ELSEWHERE, 60, ["k"])
    assert claimed is not None
    assert await queue.claim(owner(), 60, ["k"]) is None
    due = await queue.due(["k"])
    assert due is not None
    assert due > time.time() + 30
    clock.now += 60
    again = await queue.claim(owner(), 60, ["k"])
    assert again is not None
    assert again[0].id == id


async def test_a_holder_elsewhere_that_lives_is_left_alone_as_soon_as_it_is_seen_to(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = await store.acquire("e", ELSEWHERE, 30)
    trying = asyncio.ensure_future(leased(store, "e", seconds=30).__aenter__())
    while not caplog.records:  # it watches
        await asyncio.wait({trying}, timeout=0.01)
        assert not trying.done()
    await store.renew(theirs, 31)
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(trying, 30)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "Waiting up to 30 s to see whether it is still alive." in caplog.records[0].message


async def test_a_holder_elsewhere_that_died_is_waited_out(store: SqliteStore, clock: Clock) -> None:
    await store.acquire("e", ELSEWHERE, 30)
    trying = asyncio.ensure_future(leased(store, "e", seconds=30).__aenter__())
    while not trying.done():
        clock.now += 10
        await asyncio.wait({trying}, timeout=0.3)
    assert (await trying).fence == 2


async def test_a_process_of_this_machine_that_lives_is_left_alone_at_once(store: SqliteStore) -> None:
    await store.acquire("e", owner(), 30)
    with pytest.raises(LeaseLost) as refused:
        await store.acquire("e", owner(), 30)
    assert refused.value.heartbeat is None, "nobody waits for it"


SAYS_ITS_NAME = "from mulligan.recording.holders import owner; import sys; print(owner(), flush=True); sys.stdin.read()"


def test_a_process_that_has_ended_is_known_to_be_dead() -> None:
    command = [sys.executable, "-c", SAYS_ITS_NAME]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not died(name)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked how: a zombie
        assert died(name)
        process.communicate(timeout=30)
    assert died(name)


def test_a_process_that_has_the_number_of_an_older_one_is_not_taken_for_it() -> None:
    """As after a boot, or in a container that was started anew, where each process is number 1."""
    name = owner()
    assert not died(name)
    before = name.rpartition(".")[0] + ".00000000"
    assert died(before)
    assert not died(name.rpartition(".")[0]), "a holder of an older version says nothing of its birth"


@pytest.mark.parametrize("way", [holders._from_proc, holders._from_ps])  # pyright: ignore[reportPrivateUsage]
def test_the_birth_of_a_process_is_known_with_and_without_proc(way: Callable[[int], tuple[str, str]]) -> None:
    there = shutil.which("ps") if way is holders._from_ps else os.path.exists("/proc/self/stat")  # pyright: ignore[reportPrivateUsage]
    if not there:
        assert way(os.getpid()) == ("", ""), "then nothing is said of it"
        return
    state, began = way(os.getpid())
    assert state
    assert began == way(os.getpid())[1]
    with subprocess.Popen(["sleep", "60"]) as other:
        assert way(other.pid)[1]
        assert way(other.pid)[1] != way(os.getppid())[1]
        other.kill()
    assert birth(os.getpid())


async def test_an_older_name_without_a_birth_is_understood(store: SqliteStore) -> None:
    host = owner().split(":")[0]
    await store.acquire("e", f"{host}:{os.getpid()}:abcd1234", 30)
    with pytest.raises(LeaseLost):
        await store.acquire("e", owner(), 30)
