"""Several processes on one file, and processes that are killed: nothing that was confirmed is lost."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.core.episode import Acted
from mulligan.core.errors import LeaseLost
from mulligan.core.records import Attempt, Episode, Task
from mulligan.recording.holders import owner
from mulligan.store.sqlite import SqliteStore

WRITER = """
import asyncio, sys
from mulligan.core.episode import Acted
from mulligan.core.records import Attempt, Episode, Task
from mulligan.recording.holders import owner
from mulligan.store.sqlite import SqliteStore

async def main(path, id, count):
    store = SqliteStore(path)
    await store.create(Episode(id, Task("p")), {"same.txt": "the same in all"})
    lease = await store.acquire(id, owner(), 60)
    for seq in range(count):
        await store.append(lease, seq, Acted(seq + 1, Attempt("x" * 500)))
        print(seq, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


def writer(path: Path, id: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), id, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pid_of_the_dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(timeout=60)
    return process.pid


@pytest.mark.slow
async def test_three_processes_that_start_at_once_lose_no_write(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "m.db"
    running = [writer(path, id, 100) for id in ("a", "b", "c")]
    for process in running:
        _, wrong = process.communicate(timeout=120)
        assert (process.returncode, wrong) == (0, "")
    store = SqliteStore(path)
    for id in ("a", "b", "c"):
        assert await store.events(id) == tuple(Acted(n, Attempt("x" * 500)) for n in range(1, 101))
        assert await store.files(id) == {"same.txt": "the same in all"}
    await store.close()


@pytest.mark.light_cases(1)
@pytest.mark.parametrize("after", [1, 7, 40])
async def test_what_was_confirmed_survives_a_kill_and_the_lease_is_free_at_once(tmp_path: Path, after: int) -> None:
    path = tmp_path / "m.db"
    process = writer(path, "e", 100_000)
    assert process.stdout is not None
    for _ in range(after):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    told = after + process.stdout.read().count("\n")
    process.communicate(timeout=60)
    store = SqliteStore(path)
    kept = len(await store.events("e"))
    assert told <= kept <= told + 1
    lease = await store.acquire("e", owner(), 60)  # the holder is dead: no need to wait for its 60 seconds
    assert lease.fence == 2
    await store.close()


async def test_the_lease_of_a_living_process_or_of_another_machine_is_waited_for(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "m.db")
    gone = pid_of_the_dead()
    holders = [owner(), f"elsewhere:{gone}:ab", f"{socket.gethostname()}-not:{gone}:ab", "a name", "a:b:c"]
    for n, holder in enumerate(holders):
        await store.create(Episode(f"e{n}", Task("p")))
        await store.acquire(f"e{n}", holder, 60)
        with pytest.raises(LeaseLost):
            await store.acquire(f"e{n}", owner(), 60)
    await store.close()


def test_owners_are_distinguished() -> None:
    assert owner() != owner()
    assert f":{os.getpid()}:" in owner()
