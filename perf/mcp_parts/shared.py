"""Several servers on one PostgreSQL store, asked by turns, beside one server on a SQLite file.

The CPU is that of the servers and of the client, without that of PostgreSQL.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bank_recall import words

from mcp_parts import work
from mcp_parts.client import Client
from mcp_parts.processes import Command, Running, running
from mcp_parts.wires import Posts

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

REVISION = "2026-07-28"
WARMING = 5.0
"""Seconds before the clock starts: each client's bank is met once."""
HEAD = (
    "    clients  calls/s  errors   wall ms p50    p99    max   recall p50    p99   step p50    p99   learn p50    p99"
    "   CPU ms/call  of it client"
)
TOOLS = ("retrieve_memory", "reflexion-thinking", "extract_memory")


def shared(servers: int, clients: Sequence[int], seconds: float, folder: Path) -> None:
    """Prints a row for each number of clients, of one server on SQLite and of so many on PostgreSQL."""
    from postgres_server import ROLE, PostgresServer

    from mulligan.store.postgresql.schema import setup

    _measure("1 server, SQLite", 1, f"sqlite:///{folder}/one.db", clients, seconds)
    database = PostgresServer(folder)
    try:
        setup(database.owner, ROLE)
        address = database.address("postgres")
        for count in dict.fromkeys((1, servers)):
            _measure(f"{count} {'server' if count == 1 else 'servers'}, PostgreSQL", count, address, clients, seconds)
    finally:
        database.stop()


def _measure(name: str, servers: int, address: str, clients: Sequence[int], seconds: float) -> None:
    print(f"\n{name}, {seconds:g} s for each row\n{HEAD}", flush=True)
    options = ("--transport", "http", "--port", "{port}", "--rate", "0", "--concurrency", "1024", "--embedder", "hash")
    command = Command(
        name, (sys.executable, "-m", "mulligan", "serve", *options), {"MULLIGAN_STORE": address}, http=True
    )
    with ExitStack() as stack:
        started = [stack.enter_context(running(command, REVISION)) for _ in range(servers)]
        for count in clients:
            client = Client(Posts([one.port for one in started], "/mcp", REVISION), REVISION)
            try:
                print(_row(client, started, count, seconds), flush=True)
            finally:
                client.wire.close()


def _row(client: Client, servers: Sequence[Running], count: int, seconds: float) -> str:
    agents = [f"agent {number}" for number in range(count)]
    client.visit([work.visits(words, agent) for agent in agents], WARMING)
    cpu, own = sum(one.cpu() for one in servers), time.process_time()
    visited = client.visit([work.visits(words, agent) for agent in agents], seconds)
    cpu, own = sum(one.cpu() for one in servers) - cpu, time.process_time() - own
    walls = [wall for some in visited.walls.values() for wall in some]
    for error, times in visited.errors.items():
        print(f"    {times} times: {error}")
    shown = "".join(
        f"{_at(visited.walls.get(tool, []), 0.5):11.1f}{_at(visited.walls.get(tool, []), 0.99):7.1f}" for tool in TOOLS
    )
    return (
        f"    {count:7}{len(walls) / visited.seconds:9.0f}{visited.errors.total():8}{_at(walls, 0.5):14.1f}"
        f"{_at(walls, 0.99):7.1f}{_at(walls, 1.0):7.0f}  {shown}{(cpu + own) / max(len(walls), 1) * 1e3:14.2f}"
        f"{own / (cpu + own):13.0%}"
    )


def _at(walls: Sequence[float], share: float) -> float:
    """Milliseconds that so great a share of the calls took at most."""
    ordered = sorted(walls)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1e3 if ordered else 0.0
