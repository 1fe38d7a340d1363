"""A recall while another process writes, and what folding, merging and archiving do to the bytes. Stub embedder.

python perf/bank_upkeep.py [--lessons 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mulligan.app.memory import open_bank
from mulligan.bank.bank import Bank
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.store import open_store

ROUNDS = 60


def bank(file: Path, **settings: Any) -> Bank:
    return open_bank("a", store=open_store(file).memory, embedder=HashEmbedder(), settings=settings)


def text(n: int) -> str:
    return " ".join(f"word{(n * 7919 + k * 104729) % 20_011}" for k in range(60))


async def recalls(one: Bank) -> float:
    """Median CPU of a recall, receipt included, in ms."""
    took: list[float] = []
    for n in range(ROUNDS):
        began = time.process_time()
        await one.recall(text(n)[:200])
        took.append((time.process_time() - began) * 1000)
    return statistics.median(took)


async def write(file: Path, first: int, count: int) -> None:
    async with bank(file, auto_merge=False) as one:
        for n in range(first, first + count):
            await one.add(f"Note {n}", text(n), query=f"task {n}")


async def beside_a_writer(file: Path, lessons: int) -> None:
    await write(file, 0, lessons)
    async with bank(file, auto_merge=False) as one:
        await one.recall("warm up")
        alone = await recalls(one)
        command = [sys.executable, __file__, "--write", str(file), "--lessons", str(10 * lessons)]
        writer = await asyncio.create_subprocess_exec(*command)
        beside = await recalls(one)
        running = writer.returncode is None
        writer.kill()
        await writer.wait()
        print(f"recall at {lessons:,}: alone {alone:.2f} ms, beside a process that writes {beside:.2f} ms ({running=})")


async def sizes(file: Path, groups: int) -> None:
    settings = {"merging": {"name": "voting", "min_similar_count": 3, "similarity_threshold": 0.8}}
    async with bank(file, **settings) as one:
        for n in range(groups):
            for k in range(3):
                await one.add(f"Note {n}", f"{text(n)} variant{k}")
        report("three alike each", await one.stats(), groups)
        for n in range(groups):
            await one.add(f"Note {n}", f"{text(n)} variant0")
        report("each one's first again, folded", await one.stats(), groups)
        await one.work()
        report("merged, the originals archived", await one.stats(), groups)


def report(what: str, stats: Any, groups: int) -> None:
    of = stats["a"]
    print(f"{groups:,} groups, {what}: {of['lessons']}, bytes {of['bytes']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lessons", type=int, default=10_000)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    if given.write:
        asyncio.run(write(given.write, 10_000_000, given.lessons))
    else:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(beside_a_writer(Path(folder, "a.db"), given.lessons))
            asyncio.run(sizes(Path(folder, "b.db"), given.lessons // 20))
