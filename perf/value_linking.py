"""Time and memory of looking up what a question names, in a graph of a million nodes in a Ladybug file.

    python perf/value_linking.py            1,000,000 nodes
    python perf/value_linking.py 100000

Names that an index finds (the primary key), names that no property has, and the nearest values of a text that is not
there: of nodes with a name alone, and of nodes with a note, too, which has no index and is read through within the time
limit of the look-up (2 s).
"""

import asyncio
import csv
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from mulligan.graphs.opening import load_graph, open_graph
from mulligan.graphs.protocol import Graph, GraphSchema
from mulligan.graphs.values import SECONDS, Links, link_values, probe_values

NODES = 1_000_000
ASKED = {
    "an indexed value": "Which things does ITEM500000 hold?",
    "three of them": "Which things do ITEM17, ITEM4711 and ITEM999 hold?",
    "a name that is not there": "Which things does ABC-12345 hold?",
}
PROBED = "MATCH (t:Thing {name: 'ITEM50000X'}) RETURN t.name"
TIMES = 5


def written(folder: Path, nodes: int, *, notes: bool) -> Path:
    """The files of a graph of things with a name, which is the key, and perhaps a note, which has no index."""
    (folder / "nodes").mkdir(parents=True)
    with (folder / "nodes" / "Thing.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["name:string", "note:string"] if notes else ["name:string"])
        rows.writerows((f"ITEM{n}", f"note {n} of {nodes}") if notes else (f"ITEM{n}",) for n in range(nodes))
    return folder


async def timed(graph: Graph, schema: GraphSchema, what: str, question: str) -> None:
    times: list[float] = []
    links = Links()
    for _ in range(TIMES):
        began = time.perf_counter()
        links = await link_values(graph, schema, question)
        times.append(time.perf_counter() - began)
    ordered = sorted(times)
    print(
        f"{what:<28} p50 {1000 * statistics.median(ordered):8.1f} ms   max {1000 * ordered[-1]:8.1f} ms   "
        f"found {len(links.found)}, left out {len(links.left_out)}"
    )


async def measured(nodes: int, *, notes: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        load_graph(written(Path(folder) / "files", nodes, notes=notes), Path(folder) / "graph.kg")
        graph = open_graph(Path(folder) / "graph.kg")
        schema = await graph.schema()
        print(f"{nodes:,} nodes with a name{' and a note' if notes else ''}; a look-up may take {SECONDS:g} s")
        for what, question in ASKED.items():
            await timed(graph, schema, what, question)
        began = time.perf_counter()
        missing = await probe_values(graph, schema, PROBED)
        print(f"{'probing a missing text':<28} {1000 * (time.perf_counter() - began):12.1f} ms   {missing[0]}")
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        await graph.close()
        its = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"memory at most: {own:.0f} MB here, {its:.0f} MB in the process of the database")


if __name__ == "__main__":
    for notes in (False, True):
        asyncio.run(measured(int(sys.argv[1]) if len(sys.argv) > 1 else NODES, notes=notes))
