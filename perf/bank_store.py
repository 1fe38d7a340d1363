"""What one call of `BankStore` takes, in CPU (user and system), with a bank of so many lessons in SQLite.

Aims: aget 1 ms, aput 2 ms. Other work on the machine only makes a round slower: read the best of the rounds.

    python perf/bank_store.py [--lessons 1000] [--calls 200] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial

from mulligan import Bank
from mulligan.langgraph import BankStore


async def cpu(calls: int, work: Callable[[int], Awaitable[object]]) -> float:
    """Milliseconds of a call."""
    began = time.process_time()
    for n in range(calls):
        await work(n)
    return (time.process_time() - began) / calls * 1e3


async def measured(lessons: int, calls: int, rounds: int) -> None:
    here = ("perf", "lessons")
    async with Bank.open("perf", embedder="none") as bank:
        store = BankStore(bank)

        def put(key: str, n: int) -> Awaitable[object]:
            content = f"Query number {n} about subject {n * 7} needs index {n % 13} of table {key}."
            return store.aput(here, key, {"title": f"Subject {n}", "content": content})

        def got(store: BankStore, n: int) -> Awaitable[object]:
            return store.aget(here, f"old{n % lessons}")

        for n in range(lessons):
            await put(f"old{n}", n)
        took: dict[str, list[float]] = {}
        for each in range(rounds):
            fresh = BankStore(bank)
            await fresh.aget(here, "old0")
            took.setdefault("aget", []).append(await cpu(calls, partial(got, fresh)))
            took.setdefault("aget of no such key", []).append(await cpu(calls, lambda n: store.aget(here, f"none{n}")))
            new = await cpu(calls, lambda n, each=each: put(f"new{each}.{n}", n))
            took.setdefault("aput of a new key", []).append(new)
            edit = await cpu(calls, lambda n, each=each: put(f"old{n % lessons}", n + (each + 1) * 100_000))
            took.setdefault("aput of a known key", []).append(edit)
            found = await cpu(calls // 4, lambda n: store.asearch(here, query=f"index {n} of a table"))
            took.setdefault("asearch, 10 items", []).append(found)
    print(f"{lessons} lessons, {rounds} rounds of {calls} calls; load {os.getloadavg()[0]:.1f}")
    for name, each in took.items():
        print(f"{name:22} best {min(each):6.2f} ms of CPU, median {sorted(each)[len(each) // 2]:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lessons", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["MULLIGAN_HOME"] = home
        asyncio.run(measured(asked.lessons, asked.calls, asked.rounds))


if __name__ == "__main__":
    main()
