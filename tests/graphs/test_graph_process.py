"""The process that asks: that it dies, hangs, is changed under, belongs to no loop, and leaves nothing behind."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ladybug as engine
import pytest
from sample_graphs import GOOD, REGULATED, a_row, opened

from mulligan.core.errors import GraphError, InvalidInput, QueryError
from mulligan.graphs.ladybug import LadybugGraph
from mulligan.graphs.loading import load
from mulligan.graphs.protocol import Graph
from mulligan.graphs.tables import Column, NodeTable, Tables

pytestmark = pytest.mark.anyio
ENDLESS = "UNWIND range(1, 100000) AS i UNWIND range(1, 100000) AS j WITH i + j AS k WHERE k < 0 RETURN k"


def small(path: Path, *names: str) -> Path:
    """A database with nodes of the label Thing."""
    load(Tables((NodeTable("Thing", (Column("name"),), lambda: iter([a_row(name) for name in names])),)), path)
    return path


async def names(graph: Graph) -> list[Any]:
    found = await graph.run("MATCH (t:Thing) RETURN t.name AS name ORDER BY name")
    return [row["name"] for row in found.rows]


def gone(pid: int) -> bool:
    """Whether the process ends within some seconds, with all of its threads."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            dead = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if dead and len(list(Path(f"/proc/{pid}/task").iterdir())) == 1:
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
def test_a_graph_belongs_to_no_loop(kg: Path) -> None:
    with opened(kg) as graph:
        first, second = (asyncio.run(graph.run(GOOD)) for _ in range(2))
        assert first == second


async def test_nothing_is_started_before_the_first_question_and_nothing_is_left_after_the_last(kg: Path) -> None:
    graph = LadybugGraph(kg)
    assert graph.pid is None
    await graph.run(GOOD)
    pid = graph.pid
    assert pid is not None
    await graph.close()
    await graph.close()
    assert gone(pid)
    with pytest.raises(GraphError, match=r"is closed\. Open it again"):
        await graph.run(GOOD)


async def test_a_graph_that_nobody_holds_any_more_is_let_go_of(kg: Path) -> None:
    graph = LadybugGraph(kg)
    await graph.run(GOOD)
    pid = graph.pid
    assert pid is not None
    del graph
    assert gone(pid)


async def test_closing_ends_what_is_running(kg: Path) -> None:
    graph = LadybugGraph(kg)
    await graph.run(GOOD)
    running = asyncio.create_task(graph.run(ENDLESS, seconds=30))
    await asyncio.sleep(0)
    began = time.monotonic()
    await graph.close()
    with pytest.raises((GraphError, asyncio.CancelledError)):
        await running
    assert time.monotonic() - began < 5


@pytest.mark.slow
async def test_a_killed_process_is_an_error_once_and_then_a_new_one(kg: Path) -> None:
    graph = LadybugGraph(kg)
    await graph.run(GOOD)
    assert graph.pid is not None
    running = asyncio.create_task(graph.run(ENDLESS, seconds=0.5))
    await asyncio.sleep(0.1)
    os.kill(graph.pid, signal.SIGSTOP)  # it can neither answer nor be woken by its alarm
    with pytest.raises(QueryError, match=r"was stopped after 0\.5 s"):
        await running
    assert [row["name"] for row in (await graph.run(GOOD)).rows] == REGULATED
    os.kill(graph.pid, signal.SIGKILL)
    assert gone(graph.pid)
    assert [row["name"] for row in (await graph.run(GOOD)).rows] == REGULATED
    await graph.close()


@pytest.mark.slow
async def test_a_process_that_dies_over_a_query_says_so(kg: Path) -> None:
    graph = LadybugGraph(kg)
    await graph.run(GOOD)
    running = asyncio.create_task(graph.run(ENDLESS, seconds=20))
    await asyncio.sleep(0.1)
    assert graph.pid is not None
    os.kill(graph.pid, signal.SIGSEGV)
    with pytest.raises(QueryError, match=r"ended \(SIGSEGV\) during this query, which may be too deep or too large"):
        await running
    assert len((await graph.run(GOOD)).rows) == 5
    await graph.close()


@pytest.mark.slow
async def test_too_much_memory_is_reported_with_what_there_is(kg: Path) -> None:
    graph = LadybugGraph(kg, memory=300)
    with pytest.raises(QueryError, match="needs more than the 300 MB that it may use") as caught:
        await graph.run("RETURN size(repeat('abcdefgh', 60000000)) AS n", seconds=20)
    assert caught.value.kind == "large"
    assert len((await graph.run(GOOD)).rows) == 5
    await graph.close()


async def test_rows_beyond_what_an_answer_may_take_are_left_out(ladybug: Graph) -> None:
    found = await ladybug.run("UNWIND range(1, 200) AS i RETURN repeat('x', 100000) AS x", rows=1000)
    assert found.truncated
    assert 10 < len(found.rows) < 100
    with pytest.raises(QueryError, match="One row of the result is larger than 4,000,000 bytes") as caught:
        await ladybug.run("RETURN repeat('x', 4000001) AS x")
    assert caught.value.kind == "large"


@pytest.mark.slow
async def test_a_worker_without_its_parent_ends(kg: Path, tmp_path: Path) -> None:
    code = (
        "import asyncio, os, sys\n"
        "from mulligan.graphs.ladybug import LadybugGraph\n"
        "graph = LadybugGraph(sys.argv[1])\n"
        "asyncio.run(graph.run('RETURN 1 AS x'))\n"
        "print(graph.pid, flush=True)\n"
        "os._exit(1)\n"
    )
    ran = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", code, str(kg)], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert gone(int(ran.stdout))


async def test_the_worker_can_open_no_file_and_write_none(kg: Path) -> None:
    """What the guard lets through could still not: asked here past the guard, as a hole in it would be."""
    from mulligan.graphs._guarded import Worker

    worker = Worker(str(kg), {"engine": "ladybug", "path": str(kg)}, 512)
    try:
        for query in (
            "COPY (MATCH (g:Gene) RETURN g.name) TO 'out.csv'",
            "EXPORT DATABASE 'dump'",
            "LOAD FROM '/etc/passwd' (header=false, file_format='csv') RETURN *",
            "CREATE (g:Gene {name: 'x'})",
            "ATTACH 'other' AS other (dbtype lbug)",
        ):
            request: dict[str, Any] = {"do": "rows", "query": query, "parameters": {}, "rows": 5}
            with pytest.raises(QueryError):
                await asyncio.to_thread(worker.ask, request, 5.0, threading.Event())
        assert not {"out.csv", "dump"} & set(os.listdir("/"))
    finally:
        worker.stop()


@pytest.mark.slow
async def test_a_database_is_opened_twice(kg: Path) -> None:
    one, two = LadybugGraph(kg), LadybugGraph(kg)
    found = await asyncio.gather(one.run(GOOD), two.run(GOOD))
    assert found[0] == found[1]
    await one.close()
    await two.close()


@pytest.mark.slow
async def test_what_somebody_writes_is_seen_by_the_next_question(tmp_path: Path) -> None:
    path = small(tmp_path / "kg", "a")
    graph = LadybugGraph(path)
    assert await names(graph) == ["a"]
    with engine.Database(str(path)) as database, engine.Connection(database) as connection:
        connection.execute("CREATE (:Thing {name: 'b'})")
        assert await names(graph) == ["a", "b"]  # while the writer has it open
    assert await names(graph) == ["a", "b"]
    await graph.close()


async def test_what_is_not_a_database_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"There is no graph at .*nowhere. To create one from CSV files, run: mulligan graph load"
    ):
        LadybugGraph(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"is a folder, not a graph file"):
        LadybugGraph(tmp_path)
    (tmp_path / "text").write_text("no database\n" * 100)
    graph = LadybugGraph(tmp_path / "text")
    with pytest.raises(GraphError, match=r"text is not a Ladybug database\.$") as caught:
        await graph.run("RETURN 1")
    assert not isinstance(caught.value, QueryError)
    await graph.close()


async def test_an_empty_file_has_an_empty_graph_or_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    graph = LadybugGraph(tmp_path / "empty")
    assert (await graph.schema()).nodes == ()
    assert (tmp_path / "empty").stat().st_size == 0
    await graph.close()
