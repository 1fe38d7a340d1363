"""Some 290 queries that want to write, to read files, or to take all there is, against both databases.

Nothing is written, every call is back within its time-out and a second, memory stays bounded, and the next good query
is answered. ArcadeDB minds neither time-outs nor the end of a connection: where it would not answer any more, it is
killed and started again, as its operator would have to.
"""

import hashlib
import os
import re
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bolt_server import BoltServer
from repetition import TIMES
from sample_graphs import GOOD, REGULATED, hostile

from mulligan.core.errors import GraphError, QueryError
from mulligan.graphs.protocol import Graph

pytestmark = pytest.mark.anyio
QUERIES = hostile(Path(__file__).with_name("hostile.txt"))
REFUSED = [query for fate, query in QUERIES if fate == "refused"]
BOUNDED = [query for fate, query in QUERIES if fate == "bounded"]
SECONDS, MEMORY = 0.5, 1024
GIVEN = {"x": 1, "CREATE": 1}


class Peak:
    """The most memory in MB that the processes of `pids` took while it looked."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.worker = self.own = 0

    def __enter__(self) -> "Peak":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.01):
            self.own = max(self.own, resident(os.getpid()))
            self.worker = max(self.worker, resident(self._graph.pid))


def resident(pid: int | None) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) >> 10 if found else 0


def beside(*folders: Path) -> list[tuple[str, int, int]]:
    """What lies in folders, with sizes and times."""
    found = [(entry.path, entry.stat()) for folder in folders for entry in os.scandir(folder)]
    return sorted((path, stat.st_size, stat.st_mtime_ns) for path, stat in found)


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextmanager
def nothing_written(cwd: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Neither where we are nor where the worker is."""
    monkeypatch.chdir(cwd)
    before, root = beside(cwd), sorted(os.listdir("/"))
    yield
    assert beside(cwd) == before
    assert sorted(os.listdir("/")) == root


async def back_in_time(graph: Graph, query: str) -> str:
    """What became of it: "rows", or the kind of its error. Fails when it hung on: far longer than a busy machine needs
    to notice that the time is over. Where the query before was stopped, the file may still be being opened again."""
    for _ in range(60):
        began = time.monotonic()
        try:
            found = await graph.run(query, GIVEN, seconds=SECONDS, rows=100)
            fate = "rows"
            assert len(found.rows) <= 100
        except QueryError as error:
            fate = error.kind
        except GraphError as error:
            if "Try again." not in str(error):
                raise
            continue
        finally:
            assert time.monotonic() - began < SECONDS + 8, query[:200]
        return fate
    raise AssertionError("The file could not be opened again.")


async def answers(graph: Graph) -> bool:
    try:
        return [row["name"] for row in (await graph.run(GOOD, seconds=5)).rows] == REGULATED
    except GraphError:
        return False


def test_there_are_enough_of_them() -> None:
    assert len(set(QUERIES)) == len(QUERIES)
    assert len(REFUSED) >= 200
    assert len(BOUNDED) >= 60


async def test_what_is_not_a_reading_never_gets_to_ladybug(
    kg: Path, ladybug: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(kg)
    assert await answers(ladybug)
    with nothing_written(tmp_path, monkeypatch), Peak(ladybug) as peak:
        for query in REFUSED:
            assert await back_in_time(ladybug, query) in ("refused", "syntax"), query
    assert await answers(ladybug)
    assert digest(kg) == before
    assert peak.worker < 200


QUICK = [
    query
    for query in BOUNDED
    if re.search(r"repeat\(|\(a\), \(b\), \(c\)|10000000\)|\[\*1\.\.30\]|^RETURN .{20000}", query)
]


@pytest.mark.slow
@pytest.mark.parametrize("queries", [QUICK, BOUNDED], ids=["quick", "all"])
async def test_what_is_too_much_for_ladybug_is_bounded(
    queries: list[str], kg: Path, ladybug: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(queries) >= 10
    before = digest(kg)
    own = resident(os.getpid())
    with nothing_written(tmp_path, monkeypatch), Peak(ladybug) as peak:
        fates = {await back_in_time(ladybug, query) for query in queries}
        assert {"slow", "large"} <= fates
        assert await answers(ladybug)
    assert digest(kg) == before
    assert peak.worker < MEMORY + 200
    assert peak.own < own + 200


def everything(server: BoltServer) -> str:
    """All that is in the server's database, as one number."""
    with server.session() as session:
        nodes = session.run("MATCH (n) RETURN labels(n) AS l, properties(n) AS p").data()
        edges = session.run("MATCH (a)-[r]->(b) RETURN type(r) AS t, properties(r) AS p, properties(a) AS a").data()
        kinds = session.run("CALL db.labels()").data() + session.run("CALL db.relationshipTypes()").data()
    rows = sorted(repr(sorted(row.items(), key=repr)) for row in (*nodes, *edges, *kinds))
    assert len(rows) > 9000
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


@pytest.mark.slow
async def test_what_is_not_a_reading_never_gets_to_a_server(
    server: BoltServer, bolt: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, databases = everything(server), sorted(os.listdir(server.folder / "databases"))
    with nothing_written(tmp_path, monkeypatch):
        for query in REFUSED:
            assert await back_in_time(bolt, query) in ("refused", "syntax"), query
    assert await answers(bolt)
    assert everything(server) == before
    assert sorted(os.listdir(server.folder / "databases")) == databases


@pytest.mark.slow
async def test_what_is_too_much_for_a_server_is_bounded_here(
    server: BoltServer, bolt: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, own, restarts = everything(server), resident(os.getpid()), 0
    some = BOUNDED if TIMES > 1 else BOUNDED[::2]
    with nothing_written(tmp_path, monkeypatch), Peak(bolt) as peak:
        for query in some:
            try:
                await back_in_time(bolt, query)
            finally:  # what hangs in it would fail the tests after this one, too
                if not await answers(bolt):
                    server.restart()
                    restarts += 1
            assert await answers(bolt), f"not even after a restart: {query[:200]}"
    assert restarts < len(some) // 3
    assert everything(server) == before
    assert peak.worker < MEMORY + 200
    assert peak.own < own + 200
