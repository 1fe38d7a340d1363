"""Several processes on one bank, and processes that are killed: nothing is lost, doubled or half done."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from repetition import repeats

from mulligan.core.lessons import Selection
from mulligan.store import open_store

HERE = Path(__file__).parent
KILLS = repeats(125)
PER_FILE = 25

LEARNER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from lesson_kit import entry
from mulligan.store import open_store

async def main(path, name, count):
    memory = open_store(path).memory
    for n in range(count):
        ids = [f"{name}-{n}-{part}" for part in range(3)]
        batch = [entry(ids[0]), entry(ids[1]), entry(ids[2], "the same in all")]
        kept = await memory.lessons.add("a", batch)
        assert [k.id for k in kept[:2]] == ids[:2]
    await memory.close()

asyncio.run(main(*sys.argv[2:4], int(sys.argv[4])))
"""

WORKER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from lesson_kit import entry
from mulligan.recording.holders import owner
from mulligan.store import open_store

async def main(path):
    memory, me, first = open_store(path).memory, owner(), True
    while claimed := await memory.queue.claim(me, 60, ["k"]):
        work, claim = claimed
        print(work.payload, flush=True)
        if first:
            sys.stdin.readline()  # until it is told to go on
            first = False
        await memory.lessons.add("a", [entry(f"made of {work.payload}")], claim=claim)
    await memory.close()

asyncio.run(main(sys.argv[2]))
"""


def started(program: str, *given: object) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, str(HERE), *map(str, given)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


async def learns(path: Path, batches: int) -> None:
    running = [started(LEARNER, path, name, batches) for name in ("x", "y", "z")]
    for process in running:
        _, wrong = process.communicate(timeout=300)
        assert (process.returncode, wrong) == (0, "")
    memory = open_store(path).memory
    lessons = {lesson.id: lesson for lesson in await memory.lessons.list("a", Selection(limit=None))}
    own = {f"{name}-{n}-{part}" for name in ("x", "y", "z") for n in range(batches) for part in range(2)}
    (same,) = set(lessons) - own
    assert own <= set(lessons)
    assert lessons[same].support == 3 * batches
    assert len(await memory.lessons.history("a", same)) == 3 * batches
    assert await memory.lessons.verify() == []
    await memory.close()


@pytest.mark.slow
async def test_three_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    await learns(tmp_path / "m.db", 30)


@pytest.mark.slow
async def test_nine_hundred_of_nine_hundred_batches_are_kept(tmp_path: Path) -> None:
    await learns(tmp_path / "m.db", 300)


@pytest.mark.slow
async def test_two_processes_never_do_the_same_work(tmp_path: Path) -> None:
    memory = open_store(tmp_path / "m.db").memory
    for n in range(100):
        await memory.queue.enqueue("k", "a", n)
    workers = [started(WORKER, tmp_path / "m.db") for _ in range(2)]
    done: list[int] = []
    for worker in workers:
        assert worker.stdout is not None
        done.append(int(worker.stdout.readline()))
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=120) for worker in workers]
    assert [wrong for _, wrong in said] == ["", ""]
    done += [int(number) for out, _ in said for number in out.split()]
    assert sorted(done) == list(range(100))
    assert len(await memory.lessons.list("a", Selection(limit=None))) == 100
    assert await memory.queue.pending() == ()
    await memory.close()


async def test_the_work_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    memory = open_store(tmp_path / "m.db").memory
    id = await memory.queue.enqueue("k", "a", "x")
    worker = started(WORKER, tmp_path / "m.db")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "x\n"
    assert await memory.queue.claim("me", 60, ["k"]) is None
    assert (await memory.queue.look("a", id)).status == "running"
    worker.send_signal(signal.SIGKILL)
    worker.communicate(timeout=60)
    assert (await memory.queue.look("a", id)).status == "queued"
    claimed = await memory.queue.claim("me", 60, ["k"])
    assert claimed is not None
    assert (claimed[0].id, claimed[0].attempts) == (id, 2)
    await memory.close()


@dataclass(frozen=True)
class Known:
    """What is in a file: lessons by id with state and uses, work by key with whether it is done."""

    lessons: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    work: dict[str, bool] = field(default_factory=dict[str, bool])

    def after(self, what: str, *given: Any) -> "Known":
        lessons, work = dict(self.lessons), dict(self.work)
        if what == "add":
            lessons |= dict.fromkeys(given[0], ("active", 0))
        elif what == "use":
            lessons[given[0]] = ("active", 1)
        elif what == "retire":
            lessons[given[0]] = ("retired", 0)
        elif what == "merge":
            lessons |= {id: ("superseded", lessons[id][1]) for id in given[1]} | {given[0]: ("active", 0)}
        elif what == "purge":
            del lessons[given[0]]
        elif what == "queue":
            work[given[0]] = False
        else:
            work[given[0]] = True
            lessons[given[1]] = ("active", 0)
        return replace(self, lessons=lessons, work=work)


async def found(path: Path) -> Known:
    """Opens the file as any process would, and has it checked."""
    memory = open_store(path).memory
    rows = (await memory.lessons.delta("a", None)).rows
    wrong = await memory.lessons.verify()
    assert [finding for finding in wrong if "no process does it" not in finding.what] == []
    await memory.close()
    with closing(sqlite3.connect(path)) as db:
        work = {key: status == "done" for key, status in db.execute("SELECT key, status FROM work")}
    return Known({row.id: (row.state, row.uses) for row in rows}, work)


class Writer:
    """The process that forks the writers."""

    def __init__(self) -> None:
        command = [sys.executable, str(HERE / "lesson_writer.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def killed(self, path: Path, known: Known, seconds: float) -> tuple[Known, Known, int]:
        """What the file must hold, with and without what was being written, and how much was confirmed."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        pid, first = self.hear()["pid"], self.hear()
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        flying, count = known.after(*first["will"]), 0
        while "exit" not in (heard := self.hear()):
            if "did" in heard:
                known, count = flying, count + 1
            elif "will" in heard:
                flying = known.after(*heard["will"])
        return known, flying, count

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=10)


async def kills(folder: Path, count: int) -> str:
    writer, chance, known = Writer(), random.Random(20261121), Known()
    began, confirmed, flew = time.monotonic(), 0, 0
    for number in range(count):
        path = folder / f"{number // PER_FILE}.db"
        known = known if number % PER_FILE else Known()
        known, flying, told = writer.killed(path, known, chance.uniform(0, 0.1))
        is_there = await found(path)
        assert is_there in (known, flying), f"kill {number}: something confirmed is gone, or something is half done"
        confirmed, flew = confirmed + told, flew + (is_there == flying != known)
        known = is_there
    writer.close()
    return f"{count} kills, {confirmed} confirmed writes, {flew} that were done and not yet confirmed, {time.monotonic() - began:.0f} s"


@pytest.mark.slow
async def test_a_few_kills_lose_nothing_that_was_confirmed(tmp_path: Path) -> None:
    await kills(tmp_path, 10)


@pytest.mark.slow
async def test_kills_at_any_moment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = await kills(tmp_path, KILLS)
    with capsys.disabled():
        print(f"\n{told}")
