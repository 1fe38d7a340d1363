"""What a page of the studio costs over a large store: CPU, wall and bytes, for each page. Aim: 100 ms and 100 kB.

    python perf/studio.py [--runs 10000] [--lessons 100000] [--rounds 10] [--folder DIR]

No model takes part: runs of one trial and lessons of some 30 words are made up, without vectors; every hundredth lesson
has recalls with a known outcome. The pages are asked for in this process, without a network; what the first look at
each took stands beside the median of the others. With --folder the store stays there, and is used again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import httpx2

from mulligan.app.service import Service
from mulligan.bank.recall.terms import search_text, terms_of
from mulligan.core.episode import Acted, Evaluated, Stopped
from mulligan.core.lesson_history import Addition, Receipt
from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Episode, Feedback, Lesson, Origin, Stop, Task
from mulligan.store import open_store
from mulligan.studio.application import application
from mulligan.web.hosts import HostPolicy, bind

WORDS = [
    "order",
    "price",
    "currency",
    "page",
    "test",
    "file",
    "retry",
    "import",
    "module",
    "function",
    "cache",
    "index",
    "schema",
    "token",
    "header",
    "client",
    "server",
    "branch",
    "commit",
    "review",
    "error",
    "warning",
    "timeout",
    "limit",
    "budget",
    "answer",
    "question",
    "lesson",
    "agent",
    "model",
    "tool",
    "sandbox",
    "store",
]
AT_ONCE = 100
"""Runs that are stored side by side, and five times as many lessons in one write."""


async def filled(store: Store, runs: int, lessons: int) -> None:
    """Brings the store to so many runs and lessons."""
    chance = random.Random(7)

    def words(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    async def run(number: int) -> None:
        task, passed = Task(f"Task {number}: {words(12)}"), chance.random() < 0.7
        episode = f"e{number}"
        await store.create(Episode(episode, task, episode, started=time.time()))
        lease = await store.acquire(episode, "perf", 60)
        events = (
            Acted(1, Attempt(words(40))),
            Evaluated(1, Feedback(passed, words(10))),
            Stopped(Stop("solved" if passed else "exhausted")),
        )
        for seq, event in enumerate(events):
            await store.append(lease, seq, event)
        await store.release(lease)

    for first in range(0, runs, AT_ONCE):
        await asyncio.gather(*(run(n) for n in range(first, min(first + AT_ONCE, runs))))
    kept = store.memory.lessons
    for first in range(0, lessons, 5 * AT_ONCE):
        made = [
            _addition(n, f"Rule {n}: {words(6)}", words(24)) for n in range(first, min(first + 5 * AT_ONCE, lessons))
        ]
        await kept.add("", made)
        for n in range(first, first + len(made), 100):
            share = {f"lesson{n}": 0.5}
            for turn in range(4):
                given, withheld = (share, {}) if turn % 2 else ({}, share)
                await kept.recalled(Receipt(f"r{n}-{turn}", "", time.time(), "a task", given, 0, (), withheld, share))
                await kept.outcome_of("", f"r{n}-{turn}", turn > 0)


def _addition(number: int, title: str, content: str) -> Addition:
    lesson = Lesson(
        f"lesson{number}",
        title,
        content,
        "success" if number % 3 else "failure",
        query="A task that it was learned from.",
        experience=f"x{number}",
        origin=Origin("extracted", f"e{number % 1000}", 1),
        created=time.time(),
        kind=WORDS[number % len(WORDS)],
    )
    return Addition(lesson, f"print {number}", terms_of(search_text(lesson)))


async def measured(client: httpx2.AsyncClient, path: str, rounds: int) -> None:
    """Prints what this page costs."""
    cpus, walls = list[float](), list[float]()
    size = 0
    for _ in range(rounds + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        answer = await client.get(path)
        cpus.append((time.process_time() - cpu) * 1e3)
        walls.append((time.perf_counter() - wall) * 1e3)
        answer.raise_for_status()
        size = len(answer.content)
    first, *rest = cpus
    print(
        f"{path:58} CPU {statistics.median(rest):7.1f} ms (first {first:8.1f})"
        f"  wall {statistics.median(walls[1:]):7.1f} ms  {size / 1e3:6.1f} kB"
    )


def paths(runs: int, lessons: int) -> Sequence[str]:
    """One of each page that grows with the store, and some far into its lists."""
    return (
        "/",
        "/runs",
        f"/runs?after=e{runs // 2}",
        "/runs?q=currency+page&state=solved",
        "/runs?q=nothing+is+like+that",
        f"/runs/e{runs // 2}",
        "/benchmarks",
        "/bank",
        f"/bank?after=lesson{lessons // 2}",
        "/bank?state=all&kind=currency",
        "/bank?sort=worth",
        "/bank?by=words&q=nothing+is+like+that",
        "/bank?q=the+currency+of+a+page",
        f"/bank/lessons/lesson{lessons // 200 * 100}",
        "/bank/notebook",
        "/agents",
        "/hooks",
        "/queue",
        "/doctor",
    )


async def main(runs: int, lessons: int, rounds: int, folder: Path) -> None:
    file = folder / "mulligan.db"
    os.environ["MULLIGAN_HOME"] = str(folder)
    if not file.exists():
        begun = time.perf_counter()
        async with open_store(file) as store:
            await filled(store, runs, lessons)
        print(f"{runs} runs and {lessons} lessons stored in {time.perf_counter() - begun:.0f} s")
    print(f"the file has {file.stat().st_size / 1e6:.0f} MB")
    bound = bind("127.0.0.1", 0, guarded=False)
    with closing(bound.listening):
        app = application(HostPolicy(bound, ()), service=Service())
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:8642") as client,
        ):
            for path in paths(runs, lessons):
                await measured(client, path, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--lessons", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        asyncio.run(main(given.runs, given.lessons, given.rounds, given.folder or Path(scratch)))
