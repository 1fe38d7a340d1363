"""What finding costs in a recall, by the size of the bank: CPU and wall per call, memory, and the first call of all.

The store is SQLite, the embedder a stub (384 dimensions), the texts made of words drawn as words are in English. A
recall here is: take in what is new, compare, rank the facts, the rest and the habits with `fused`, top 3; every second
lesson is a fact. The receipt is left out (perf/lesson_store.py).
Aims, CPU: 2 ms at 10,000 lessons of one agent, 20 ms at 100,000.

    python perf/bank_recall.py [--sizes 100,1000,10000,100000] [--agents 100000 --of 1000] [--rounds 100]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mulligan.bank.recall.index import Index, Indexes
from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.bank.recall.terms import terms_of
from mulligan.core.lesson_history import Addition, Part
from mulligan.core.lesson_store import Memory
from mulligan.core.records import Lesson
from mulligan.store import open_store

EMBEDDER, DIM, VOCABULARY, PROJECT = "stub-384", 384, 30_000, "p"
_chance = np.random.default_rng(1)
_odds = np.cumsum(1 / (np.arange(VOCABULARY) + 5.0))
_odds /= _odds[-1]
_numbers = itertools.count(1)


def words(count: int) -> str:
    return " ".join(f"w{n}" for n in np.searchsorted(_odds, _chance.random(count), side="right").tolist())


def vectors(count: int) -> Any:
    made = _chance.standard_normal((count, DIM), np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def entries(agent: str, made: Any, subjects: Iterable[str] = itertools.repeat("")) -> list[Addition]:
    """A lesson for each of these vectors; a word for its subject, if there is one, begins its title."""
    found: list[Addition] = []
    for vector, subject in zip(made, subjects, strict=False):
        number = next(_numbers)
        title, text, query = f"{subject} {words(7)}".strip(), words(60), words(12)
        lesson = Lesson(
            f"{number:012x}",
            title,
            text,
            "success" if number % 3 else "failure",
            agent_id=agent,
            nature="fact" if number % 2 else "strategy",
            project=PROJECT,
            query=query,
            experience=f"x{number // 3}",
            created=1.7e9 + number,
            embedder=EMBEDDER,
        )
        parts: dict[Part, bytes] = {"lesson": vector.tobytes(), "query": vector.tobytes()}
        found.append(Addition(lesson, f"f{number}", terms_of(f"{title} {text} {query}"), parts))
    return found


async def grow(memory: Memory, agent: str, count: int) -> None:
    for first in range(0, count, 1000):
        await memory.lessons.add(agent, entries(agent, vectors(min(1000, count - first))), fold=False)


async def measured(what: str, calls: list[Callable[[], Awaitable[object]]]) -> None:
    cpus, walls = list[float](), list[float]()
    for call in calls:
        cpu, wall = time.process_time(), time.perf_counter()
        await call()
        cpus.append((time.process_time() - cpu) * 1e3)
        walls.append((time.perf_counter() - wall) * 1e3)
    print(
        f"  {what:42} CPU median {statistics.median(cpus):8.2f} ms  best {min(cpus):8.2f}"
        f"  wall median {statistics.median(walls):8.2f} ms"
    )


def recall(indexes: Indexes, agent: str, length: int) -> Callable[[], Awaitable[object]]:
    query, (vector,), fused = words(length), vectors(1), Fused(threshold=0.9)

    async def call() -> object:
        index = await indexes.of(agent)
        facts, others, habits = index.by_nature(query, vector, 1.8e9, PROJECT)
        return fused.rank(facts, 3), fused.rank(others, 3), fused.rank(habits, 1, 0.0)

    return call


async def one_agent(memory: Memory, agent: str, rounds: int) -> None:
    indexes = Indexes(memory.lessons, EMBEDDER)
    await measured("first recall (reads the bank)", [recall(indexes, agent, 20)])
    index: Index = await indexes.of(agent)
    for length in (20, 100, 500):
        await measured(f"recall, query of {length} words", [recall(indexes, agent, length) for _ in range(rounds)])
    again: list[float] = []
    for _ in range(min(rounds, 30)):
        await memory.lessons.add(agent, entries(agent, vectors(3)), fold=False)
        call = recall(indexes, agent, 20)
        cpu = time.process_time()
        await call()
        again.append((time.process_time() - cpu) * 1e3)
    what = "recall right after a learn of 3"
    print(f"  {what:42} CPU median {statistics.median(again):8.2f} ms  best {min(again):8.2f}")
    print(f"  the index holds {index.bytes / 1e6:,.1f} MB for {index.n:,} lessons")


async def many_agents(memory: Memory, agents: list[str], rounds: int) -> None:
    indexes = Indexes(memory.lessons, EMBEDDER)
    drawn = [agents[int(n)] for n in _chance.integers(0, len(agents), rounds)]
    await measured("first recall of an agent", [recall(indexes, agent, 20) for agent in dict.fromkeys(drawn)])
    await measured("recall of an agent seen before", [recall(indexes, agent, 20) for agent in drawn])


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,1000,10000,100000")
    parser.add_argument("--agents", type=int, default=100_000, help="lessons of many agents; 0 leaves this out")
    parser.add_argument("--of", type=int, default=1000, help="how many agents")
    parser.add_argument("--rounds", type=int, default=100)
    asked = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for size in (int(text) for text in asked.sizes.split(",") if text):
            memory = open_store(Path(folder) / f"{size}.db").memory
            await grow(memory, "agent", size)
            print(f"{size:,} lessons of one agent")
            await one_agent(memory, "agent", asked.rounds)
            await memory.close()
        if asked.agents:
            memory, agents = open_store(Path(folder) / "many.db").memory, [f"agent-{n}" for n in range(asked.of)]
            for agent in agents:
                await grow(memory, agent, asked.agents // asked.of)
            print(f"{asked.agents:,} lessons of {asked.of:,} agents")
            await many_agents(memory, agents, asked.rounds)
            await memory.close()
    print(f"most memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    asyncio.run(main())
