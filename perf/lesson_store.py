"""What the store of lessons costs, by the size of the bank: CPU and wall per call, and the file.

No model takes part: texts, terms (100 of 12 bytes) and vectors (384 float32, of the lesson and of its task) are made
up. One agent's bank grows in one file; with --agents, a bank of many agents in a file of its own. Aim: an add at 100k
lessons within 1.5 times that at 100.

    python perf/lesson_store.py [--sizes 100,1000,10000,100000] [--agents 0 --of 1000] [--rounds 200] [--folder DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import secrets
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from mulligan.core.lesson_history import Addition, Receipt
from mulligan.core.lesson_store import Memory
from mulligan.core.records import Lesson, Origin
from mulligan.store import open_store

EMBEDDER = "perf-384"
CONTENT = (
    "Before you change a price, read the page that lists it, and compare the currency with the one asked for. " * 3
)
Call: TypeAlias = Callable[[], Awaitable[object]]
_numbers = itertools.count(1)


def entry(agent: str, experience: str) -> Addition:
    id, chance = secrets.token_hex(8), random.Random(next(_numbers))
    lesson = Lesson(
        id,
        f"Check the currency of order {chance.getrandbits(32):x} first",
        CONTENT,
        "success" if chance.random() < 0.7 else "failure",
        "When a price is to be changed in a shop with several currencies.",
        agent_id=agent,
        query="Change the price of all blue shirts to 20 euros, and tell me how many there were.",
        experience=experience,
        origin=Origin("extracted", "episode-1", 2, (3, 4), by="perf"),
        created=time.time(),
        tags=("prices",),
        embedder=EMBEDDER,
    )
    vector, query = chance.randbytes(1536), chance.randbytes(1536)
    return Addition(lesson, secrets.token_hex(32), chance.randbytes(1200), {"lesson": vector, "query": query})


def batch(agent: str) -> list[Addition]:
    experience = secrets.token_hex(8)
    return [entry(agent, experience) for _ in range(3)]


async def grown(memory: Memory, agent: str, lessons: int) -> None:
    while lessons > 0:
        many = [entry(agent, "e") for _ in range(min(300, lessons))]
        await memory.lessons.add(agent, many)
        lessons -= len(many)


async def measured(what: str, calls: list[Call], before: list[Call] | None = None) -> None:
    cpus, walls = list[float](), list[float]()
    for number, call in enumerate(calls):
        if before:
            await before[number]()
        cpu, wall = time.process_time(), time.perf_counter()
        await call()
        cpus.append((time.process_time() - cpu) * 1e3)
        walls.append((time.perf_counter() - wall) * 1e3)
    cpus.sort()
    print(
        f"  {what:34} CPU median {statistics.median(cpus):8.3f} ms  p90 {cpus[len(cpus) * 9 // 10]:8.3f}"
        f"  wall median {statistics.median(walls):8.3f} ms  ({len(calls)} calls)"
    )


async def bank(memory: Memory, agents: list[str], rounds: int) -> None:
    """Each kind of call, on agents drawn at random."""
    chance, lessons, queue = random.Random(1), memory.lessons, memory.queue
    drawn = [chance.choice(agents) for _ in range(rounds)]
    batches = [batch(agent) for agent in drawn]
    adds = [_later(lessons.add, agent, three) for agent, three in zip(drawn, batches, strict=True)]
    await measured("add (3 lessons, 6 vectors)", adds)
    await measured("add that folds (3 of 3)", adds)
    tips = {agent: (await lessons.delta(agent, EMBEDDER, 1 << 60)).tip for agent in set(drawn)}

    async def delta_after_one(agent: str) -> None:
        tips[agent] = (await lessons.delta(agent, EMBEDDER, tips[agent])).tip

    await measured(
        "delta (after one add)",
        [_later(delta_after_one, agent) for agent in drawn],
        before=[_later(lessons.add, agent, batch(agent)) for agent in drawn],
    )
    await measured("delta (nothing new)", [_later(delta_after_one, agent) for agent in drawn])
    known = {agent: [row.id for row in (await lessons.delta(agent, None)).rows] for agent in set(drawn)}
    receipts = [
        Receipt(secrets.token_hex(6), agent, time.time(), "q" * 80, dict.fromkeys(chance.sample(known[agent], 3), 0.9))
        for agent in drawn
    ]
    await measured("recalled (3 lessons)", [_later(lessons.recalled, receipt) for receipt in receipts])
    await measured("get (3 lessons)", [_later(lessons.get, r.agent_id, list(r.lessons)) for r in receipts])
    await measured("list (newest 50)", [_later(lessons.list, agent) for agent in drawn[:20]])
    payload = {"episodes": ["x" * 20_000]}
    await measured("enqueue (20 kB)", [_later(queue.enqueue, "extract", agent, payload) for agent in drawn])

    async def claim_and_finish() -> None:
        claimed = await queue.claim("perf", 60, ["extract"])
        assert claimed is not None
        await queue.finish(claimed[1], {"lessons": []})

    await measured("claim and finish", [claim_and_finish for _ in drawn])
    first = time.process_time()
    rows = len((await lessons.delta(drawn[0], EMBEDDER, queries=True)).rows)
    took = (time.process_time() - first) * 1e3
    print(f"  {'delta from nothing':34} CPU {took:.0f} ms for {rows:,} lessons of one agent")


def _later(call: Callable[..., Awaitable[object]], *given: object) -> Call:
    return lambda: call(*given)


def size(path: Path) -> float:
    return sum(file.stat().st_size for file in path.parent.glob(path.name + "*")) / 1e6


async def one_agent(path: Path, sizes: list[int], rounds: int) -> None:
    memory, here = open_store(path).memory, 0
    for wanted in sizes:
        await grown(memory, "agent", wanted - here)
        few = min(rounds, max(20, wanted // 20))  # what is measured makes a small bank grow
        print(f"{wanted:,} lessons of one agent; {size(path):,.1f} MB")
        await bank(memory, ["agent"], few)
        here = wanted + 6 * few
    await memory.close()
    print(f"closed: {size(path):,.1f} MB for {here:,} lessons, {size(path) * 1e3 / here:.1f} kB each")


async def many_agents(path: Path, lessons: int, agents: int, rounds: int) -> None:
    memory, names = open_store(path).memory, [f"agent-{n}" for n in range(agents)]
    began = time.perf_counter()
    for name in names:
        await grown(memory, name, lessons // agents)
    took = time.perf_counter() - began
    print(f"{lessons:,} lessons of {agents:,} agents, in {took:,.0f} s; {size(path):,.1f} MB")
    await bank(memory, names, rounds)
    await memory.close()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,1000,10000,100000")
    parser.add_argument("--agents", type=int, default=0, help="lessons of many agents; 0 leaves this out")
    parser.add_argument("--of", type=int, default=1000, help="how many agents")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--folder", default=None, help="where the files are made; each is removed afterwards")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        if sizes := [int(n) for n in asked.sizes.split(",") if n]:
            await one_agent(Path(folder) / "one.db", sizes, asked.rounds)
        if asked.agents:
            await many_agents(Path(folder) / "many.db", asked.agents, asked.of, asked.rounds)


if __name__ == "__main__":
    asyncio.run(main())
