"""Milliseconds of a query to a graph: through Mulligan's query process, and with the engine in this process.

    python perf/graphs.py            with ArcadeDB over Bolt as well, where arcadedb-embedded is installed

One hop in the sample graph, 500 times each; the first question, which starts the process and opens the database; and
the one after a query that had to be stopped.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import ladybug

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from bolt_server import BoltServer, fill, package

from mulligan.core.errors import QueryError
from mulligan.graphs._guard import read_only
from mulligan.graphs.opening import load_graph, open_graph, read_tables
from mulligan.graphs.protocol import Graph
from mulligan.graphs.sample import write_sample

ONE_HOP = "MATCH (:Gene {name: $name})-[r:REGULATES]->(g:Gene) RETURN g.name AS name, r.effect AS effect"
ENDLESS = "UNWIND range(1, 3000) AS i UNWIND range(1, 3000) AS j UNWIND range(1, 3000) AS k RETURN sum(i + j + k)"
GIVEN = {"name": "EOMES"}
TIMES = 500


def line(what: str, times: list[float]) -> None:
    ordered = sorted(times)
    p50, p95 = statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]
    print(f"{what:<44} p50 {1000 * p50:8.2f} ms   p95 {1000 * p95:8.2f} ms   n {len(times)}")


async def timed(do: Callable[[], Awaitable[Any]], times: int) -> list[float]:
    found: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await do()
        found.append(time.perf_counter() - began)
    return found


async def through(name: str, make: Callable[[], Graph]) -> None:
    first: list[float] = []
    for _ in range(5):
        graph = make()
        first += await timed(lambda graph=graph: graph.run(ONE_HOP, GIVEN), 1)
        await graph.close()
    line(f"{name}: the first question", first)
    graph = make()
    line(f"{name}: one hop", (await timed(lambda: graph.run(ONE_HOP, GIVEN), TIMES + 1))[1:])
    after: list[float] = []
    for _ in range(3):
        try:
            await graph.run(ENDLESS, seconds=0.2)
        except QueryError:
            after += await timed(lambda: graph.run(ONE_HOP, GIVEN), 1)
    line(f"{name}: after one that was stopped", after)
    await graph.close()


def in_process(path: Path) -> None:
    times: list[float] = []
    with ladybug.Database(str(path), read_only=True) as database, ladybug.Connection(database) as connection:
        for _ in range(TIMES + 1):
            began = time.perf_counter()
            found: Any = connection.execute(ONE_HOP, GIVEN)
            assert len(found.get_all()) == 5
            times.append(time.perf_counter() - began)
    line("Ladybug in this process: one hop", times[1:])


def guard() -> None:
    times: list[float] = []
    for _ in range(TIMES):
        began = time.perf_counter()
        read_only(ONE_HOP, GIVEN)
        times.append(time.perf_counter() - began)
    line("the guard alone", times)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_sample(folder / "files")
        began = time.perf_counter()
        load_graph(folder / "files", folder / "kg")
        print(f"the sample loaded in {time.perf_counter() - began:.2f} s")
        guard()
        in_process(folder / "kg")
        asyncio.run(through("Ladybug", lambda: open_graph(folder / "kg")))
        if package() is None:
            print("no arcadedb-embedded here: Bolt was not timed")
            return
        server = BoltServer(folder / "server")
        server.start()
        fill(server, read_tables(folder / "files"))
        asyncio.run(through("Bolt (ArcadeDB)", lambda: open_graph(server.access)))
        server.stop()


if __name__ == "__main__":
    main()
