"""Graphs for tests: the sample and some odd values, as tables, in a Ladybug file, in a Bolt server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bolt_server import BoltServer, fill, package

from mulligan.graphs.loading import load
from mulligan.graphs.opening import open_graph, read_tables
from mulligan.graphs.protocol import Graph
from mulligan.graphs.sample import write_sample
from mulligan.graphs.tables import Column, EdgeRow, EdgeTable, NodeTable, Row, Tables

NEEDS_BOLT = 'needs arcadedb-embedded: pip install -c constraints.txt -e ".[bolt]"'
GOOD = "MATCH (g:Gene {name: 'EOMES'})-[:REGULATES]->(t:Gene) RETURN t.name AS name ORDER BY name"
REGULATED = ["CREBBP", "IL1R1", "LRP6", "NOTCH3", "VHL"]

ODD = (
    Column("id"),
    Column("whole", "int"),
    Column("share", "float"),
    Column("sure", "boolean"),
    Column("day", "date"),
    Column("moment", "datetime"),
    Column("words", many=True),
    Column("numbers", "int", many=True),
)
ODD_VALUES: tuple[tuple[Any, ...], ...] = (
    ("all", 2**63 - 1, 0.5, True, "2020-02-29", "2020-02-29T12:30:00", ["a,b", 'say "hi"', "it's", "é日😀"], [1, -2]),
    ("none", None, None, None, None, None, None, None),
    ("least", -(2**63), -1e300, False, "0999-01-01", "1969-12-31T23:59:59", ["x\ny", "\\"], [2**40]),
)


def a_row(*values: Any) -> Row:
    return Row(values, "test")


def an_edge(source: tuple[str, Any], target: tuple[str, Any], *values: Any) -> EdgeRow:
    return EdgeRow(values, "test", source, target)


def node_table(label: str, columns: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> NodeTable:
    return NodeTable(label, tuple(columns), lambda: iter([a_row(*row) for row in rows]))


def edge_table(
    label: str, columns: Sequence[Column], source: str, target: str, rows: Sequence[tuple[Any, ...]]
) -> EdgeTable:
    """rows: the two ids, and the values of the columns."""
    made = [an_edge((source, a), (target, b), *rest) for a, b, *rest in rows]
    return EdgeTable(label, tuple(columns), lambda: iter(made))


def tables(folder: Path) -> Tables:
    """The sample, written into the folder, and nodes of the label Odd with values of every kind."""
    write_sample(folder)
    sample = read_tables(folder)
    odd = NodeTable("Odd", ODD, lambda: iter([a_row(*values) for values in ODD_VALUES]))
    ends = (("Odd", "all"), ("Odd", "none"))
    follows = EdgeTable("FOLLOWS", (Column("since", "date"),), lambda: iter([an_edge(*ends, "2021-03-04")]))
    return Tables((*sample.nodes, odd), (*sample.edges, follows))


def a_ladybug(folder: Path) -> Path:
    """A database with all of `tables`."""
    load(tables(folder / "files"), folder / "kg")
    return folder / "kg"


@contextmanager
def a_server(folder: Path) -> Generator[BoltServer]:
    """A Bolt server with all of `tables`; the test is skipped where there is none."""
    if package() is None:
        pytest.skip(NEEDS_BOLT)
    server = BoltServer(folder / "server")
    server.start()
    try:
        fill(server, tables(folder / "files"))
        yield server
    finally:
        server.stop()


@contextmanager
def opened(where: Any) -> Generator[Graph]:
    """For tests and fixtures that are no coroutines themselves; graphs belong to no loop."""
    graph = open_graph(where)
    try:
        yield graph
    finally:
        asyncio.run(graph.close())


@contextmanager
def loaded(given: Tables, folder: Path) -> Generator[Graph]:
    """A database with these tables alone, open."""
    load(given, folder / "kg")
    with opened(folder / "kg") as graph:
        yield graph


def hostile(file: Path) -> list[tuple[str, str]]:
    """What is to become of each query, and the query."""
    found: list[tuple[str, str]] = []
    for line in file.read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            fate, _, rest = line.partition(" ")
            found.append((fate, _text(json.loads(rest))))
    return found


def _text(parts: str | Sequence[Any]) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)
