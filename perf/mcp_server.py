"""What the MCP server costs, beside the npm sequential-thinking server and a bare server of the same SDK.

One run, one light client (`mcp_parts/client.py`; the official ones would dominate the figures), the servers in turns.
Parts: `start` (from start to the first tools/list), `calls` (reflexion-thinking, and the nearest that the others have),
`recall` (retrieve_memory in a bank of many lessons), and, only when it is asked for, `shared` (several servers on one
PostgreSQL store, asked by turns, beside one server on SQLite; needs the extra postgres-server). The load of the machine
is printed: with more than about 0.5 of anything else running, read the minima and the CPU time only.

    python perf/mcp_server.py [--parts start,calls,recall] [--starts 10] [--calls 2000] [--lessons 10000]
                               [--no-http] [--no-npm] [--only TEXT]
    python perf/mcp_server.py --parts shared [--servers 3] [--clients 1,10,25,50,100] [--seconds 20]

sequential-thinking is fetched by npm into a temporary folder. The file is not called mcp.py, which every script of this
folder would import in the place of the SDK.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from mcp_parts import work
from mcp_parts.client import Revision
from mcp_parts.processes import Command, running

NPM = "@modelcontextprotocol/server-sequential-thinking@2026.8.31"
OLD: Revision = "2025-06-18"
NEW: Revision = "2026-07-28"
WARMING = 48
"""Calls before the clock starts."""


@dataclass(frozen=True)
class Case:
    """A server, how it is spoken to, and what it is asked for."""

    name: str
    command: Command
    revision: Revision
    tool: str = ""
    work: work.Work = work.echoes


def ours(home: Path, *options: str, http: bool = False) -> Command:
    transport = ("--transport", "http", "--port", "{port}", "--rate", "0") if http else ()
    words = (sys.executable, "-m", "mulligan", "serve", *transport, *options)
    return Command("mulligan serve", words, {"MULLIGAN_HOME": str(home)}, http)


def bare() -> Command:
    return Command("bare SDK", (sys.executable, str(Path(__file__).parent / "mcp_parts" / "bare_server.py")), {})


def sequential_thinking(folder: Path) -> Command | None:
    """None: there is no npm, or it could not fetch the package."""
    if not shutil.which("npm"):
        return None
    fetch = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), NPM]
    if subprocess.run(fetch, stdout=subprocess.DEVNULL, timeout=300).returncode:
        return None
    script = folder / "node_modules" / NPM.rpartition("@")[0] / "dist" / "index.js"
    return Command("sequential-thinking", ("node", str(script)), {"DISABLE_THOUGHT_LOGGING": "true"})


def start(cases: Sequence[Case], rounds: int) -> None:
    """Seconds of CPU and of wall from start to the answer of tools/list, a process each time, in turns."""
    print(f"\nstart to the first tools/list, {rounds} starts each" + STARTED)
    seen = {case.name: list[tuple[float, float, float]]() for case in cases}
    for turn in range(rounds + 1):
        for case in cases:
            with running(case.command, case.revision) as one:
                wall, held = time.perf_counter() - one.started, one.held()
                cpu = one.end()
            if turn:  # the first one writes the bytecode
                seen[case.name].append((cpu * 1e3, wall * 1e3, held))
    for name, figures in seen.items():
        cpus, walls, helds = zip(*figures, strict=True)
        print(
            f"  {name:52} {min(cpus):8.0f} {statistics.median(cpus):7.0f}   {min(walls):11.0f}"
            f" {statistics.median(walls):7.0f}   {statistics.median(helds):11.0f}"
        )


def calls(cases: Sequence[Case], count: int, callers: int, rounds: int) -> None:
    """Calls in a row, one process each that lives for all rounds, in turns. A caller has one call under way."""
    print(f"\n{count} calls, {callers} at once: best of {rounds} rounds" + HEAD)
    with ExitStack() as stack:
        servers = {case.name: stack.enter_context(running(case.command, case.revision)) for case in cases}
        first = {name: one.held() for name, one in servers.items()}
        seen = {case.name: list[tuple[float, float, list[float]]]() for case in cases}
        for _ in range(rounds):
            for case in cases:
                one = servers[case.name]
                one.client.drive(case.tool, [case.work() for _ in range(callers)], WARMING)
                cpu, since = one.cpu(), time.perf_counter()
                walls = one.client.drive(case.tool, [case.work() for _ in range(callers)], count)
                wall = time.perf_counter() - since
                seen[case.name].append((count / wall, (one.cpu() - cpu) / count * 1e3, sorted(walls)))
        for name, figures in seen.items():
            walls = max(figures)[2]
            print(
                f"  {name:52} {max(rate for rate, _, _ in figures):8.0f} {min(cpu for _, cpu, _ in figures):8.2f}"
                f" {walls[len(walls) // 2] * 1e3:9.2f} {walls[len(walls) * 95 // 100] * 1e3:7.2f}"
                f" {first[name]:11.0f} {servers[name].held():6.0f}"
            )


STARTED = "       CPU ms min  median   wall ms min  median   resident MB"
HEAD = "              calls/s  CPU ms/call  wall ms p50    p95   resident MB  after"


def reflexion_cases(home: Path, node: Command | None) -> list[Case]:
    tool, stdio, http = "reflexion-thinking", ours(home), ours(home, http=True)
    return [
        *([Case("sequential-thinking", node, OLD, "sequentialthinking", work.thoughts)] if node else []),
        Case("bare SDK, echo", bare(), OLD, "echo", work.echoes),
        Case("bare SDK, echo, 2026-07-28", bare(), NEW, "echo", work.echoes),
        Case("ours, no episodeId", stdio, OLD, tool, work.reflexion),
        Case("ours, episodeId", stdio, OLD, tool, work.reflexion_strict),
        Case("ours, episodeId, 2026-07-28", stdio, NEW, tool, work.reflexion_strict),
        Case("ours, HTTP, no episodeId", http, OLD, tool, work.reflexion),
        Case("ours, HTTP, episodeId", http, OLD, tool, work.reflexion_strict),
        Case("ours, HTTP, episodeId, 2026-07-28", http, NEW, tool, work.reflexion_strict),
    ]


def start_cases(home: Path, node: Command | None) -> list[Case]:
    return [
        *([Case("sequential-thinking", node, OLD)] if node else []),
        Case("bare SDK", bare(), OLD),
        Case("bare SDK, 2026-07-28", bare(), NEW),
        Case("ours, --tools reflexion", ours(home, "--tools", "reflexion"), OLD),
        Case("ours", ours(home), OLD),
        Case("ours, 2026-07-28", ours(home), NEW),
        Case("ours, HTTP", ours(home, http=True), OLD),
    ]


def recall_cases(home: Path) -> list[Case]:
    from bank_recall import words
    from mcp_parts.lessons import AGENT

    made = work.recalls(words, AGENT)
    return [
        Case(f"{by}{', HTTP' if http else ''}", ours(home, "--embedder", name, http=http), OLD, "retrieve_memory", made)
        for http in (False, True)
        for by, name in (("by words alone", "none"), ("hash embedder", "hash"))
    ]


def load() -> str:
    return f"load of the machine: {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default="start,calls,recall")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3, help="of calls, for each server, in turns")
    parser.add_argument("--recalls", type=int, default=400)
    parser.add_argument("--lessons", type=int, default=10_000)
    parser.add_argument("--servers", type=int, default=3, help="of the part shared")
    parser.add_argument("--clients", default="1,10,25,50,100", help="of the part shared: a row for each number")
    parser.add_argument("--seconds", type=float, default=20, help="for each row of the part shared")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--no-http", action="store_true", help="leave our HTTP transport out")
    parser.add_argument("--no-npm", action="store_true", help="leave sequential-thinking out")
    asked = parser.parse_args()
    parts = asked.parts.split(",")

    def chosen(cases: list[Case]) -> list[Case]:
        return [case for case in cases if asked.only in case.name and not (asked.no_http and case.command.http)]

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        node = (
            None if asked.no_npm or not {"start", "calls"} & set(parts) else sequential_thinking(Path(folder) / "npm")
        )
        print(load() + ("" if node or parts == ["shared"] else "; without sequential-thinking"))
        if "start" in parts:
            start(chosen(start_cases(home, node)), asked.starts)
        if "calls" in parts:
            for callers in (1, 8):
                calls(chosen(reflexion_cases(home, node)), asked.calls, callers, asked.rounds)
        if "recall" in parts:
            from mcp_parts.lessons import write

            full = Path(folder) / "full"
            asyncio.run(write(full / "mulligan.db", asked.lessons))
            print(f"\nretrieve_memory, {asked.lessons:,} lessons of one agent")
            for callers in (1, 8):
                calls(chosen(recall_cases(full)), asked.recalls, callers, asked.rounds)
        if "shared" in parts:
            from mcp_parts.shared import shared

            shared(asked.servers, [int(count) for count in asked.clients.split(",")], asked.seconds, Path(folder))
        print("\n" + load())


if __name__ == "__main__":
    main()
