"""What measuring costs: CPU and bytes of an episode (a recall with draws, and its outcome) as episodes come in.

    python perf/bank_worth.py [--episodes 10000] [--lessons 50]

CPU is that of the process, user and system. "without" is the same with withhold = 0. docs/worth.md has the table.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from mulligan.app.memory import open_bank
from mulligan.store import open_store

BLOCK = 200
"""Episodes over which a figure is a mean; fewer at the beginning."""


def size(file: Path) -> tuple[int, int]:
    """Bytes in use of the whole file, and of what is counted."""
    with closing(sqlite3.connect(file)) as db:
        (pages,), (free,), (page,) = (
            db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count", "page_size")
        )
        (counted,) = db.execute("SELECT coalesce(sum(length(record)), 0) FROM worth").fetchone()
    return (pages - free) * page, counted


async def main(episodes: int, lessons: int, share: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.db"
        memory = open_store(file).memory
        settings = {"withhold": share, "threshold": 0.0, "top_k": 3}
        async with open_bank("", store=memory, embedder="none", settings=settings) as bank:
            for n in range(lessons):
                await bank.add(f"Order {n}", f"Pay the order number {n} by rule {n * 7}.")
            marks = [10**power for power in range(1, 9) if 10**power <= episodes]
            began, at, done = time.process_time(), size(file), 0
            for n in range(1, episodes + 1):
                if any(n == max(mark - BLOCK, mark // 2) + 1 for mark in marks):
                    began, at, done = time.process_time(), size(file), n - 1
                recall = await bank.recall(f"Pay order number {n % lessons}")
                await bank.outcome_of(recall.id, n % 3 > 0)
                if n in marks:
                    spent, now = time.process_time() - began, size(file)
                    cpu, grown = spent / (n - done) * 1000, (now[0] - at[0]) / (n - done)
                    print(f"| {share or 'without'} | {n:,} | {cpu:.2f} | {grown:,.0f} | {now[1]:,} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--lessons", type=int, default=50)
    asked = parser.parse_args()
    print("| withhold | episodes | CPU of one, ms | bytes of one | bytes counted |\n|--:|--:|--:|--:|--:|")
    for share in (0.0, 0.1):
        asyncio.run(main(asked.episodes, asked.lessons, share))
