"""What the local embedder takes: CPU and wall time per text of 42 words, and for one short query, by thread count.

    python perf/embedding.py [FOLDER]

Its weights must be installed (`mulligan models pull minilm-l6-v2`), or in FOLDER. Aims: 100 texts/s on two cores, and
25 ms of CPU a query. Each row is the best and the median of five; the load of the machine is printed, because wall time
means little on a busy one.
"""

import asyncio
import os
import random
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from mulligan.core.protocols import Embedder
from mulligan.models.embedders.hash import HashEmbedder
from mulligan.models.embedders.local import LocalEmbedder

RUNS, TEXTS, WORDS, QUERIES = 5, 300, 42, 50
LEXICON = """the agent was asked to move a customer account before transfer pending and test failed because list changed
while loop went over it so check each date that bank promised then read function signature again return sorted values
when order matters refund duplicate charge only after ledger confirms that payment settled twice on debit card"""
QUERY = ["Refund a duplicate charge on a debit card."]


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def timed(do: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Seconds of CPU and of wall time."""
    before, started = cpu(), time.perf_counter()
    await do()
    return cpu() - before, time.perf_counter() - started


def row(name: str, times: list[tuple[float, float]], count: int) -> None:
    used, wall = ([1000 * pair[n] / count for pair in times] for n in (0, 1))
    print(
        f"{name:<28} {min(used):8.2f} {statistics.median(used):8.2f}    {min(wall):8.2f} {statistics.median(wall):8.2f}"
        f"    {1000 / min(wall):8.0f}"
    )


async def measure(name: str, embedder: Embedder, texts: list[str]) -> None:
    async def queries() -> None:
        for _ in range(QUERIES):
            await embedder.embed(QUERY)

    row(f"{name}: load, first call", [await timed(lambda: embedder.embed(QUERY))], 1)
    row(f"{name}: a text of {WORDS} words", [await timed(lambda: embedder.embed(texts)) for _ in range(RUNS)], TEXTS)
    row(f"{name}: one query", [await timed(queries) for _ in range(RUNS)], QUERIES)


async def main() -> None:
    if len(sys.argv) > 1:
        os.environ["MULLIGAN_MODELS"] = sys.argv[1]
    chance = random.Random(1)
    texts = [" ".join(chance.choices(LEXICON.split(), k=WORDS)) for _ in range(TEXTS)]
    if not LocalEmbedder().here:
        sys.exit("The weights are not here: mulligan models pull minilm-l6-v2")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs; ms for each, minimum and median")
    print(f"{'':<28} {'CPU':>8} {'':>8}    {'wall':>8} {'':>8}    {'each/s':>8}")
    for threads in (1, 2):
        await measure(f"local, {threads} thr", LocalEmbedder(threads=threads), texts)
        print(f"memory at most so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    await measure("hash:384", HashEmbedder(), texts)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    asyncio.run(main())
