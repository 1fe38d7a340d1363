"""`mulligan graph`: builds graph databases from files, shows their schema, and runs queries."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TypeVar

import click

from mulligan.graphs.opening import load_graph, open_graph
from mulligan.graphs.protocol import ROWS, SECONDS, Graph, GraphSchema, Rows
from mulligan.graphs.sample import SEED, write_sample
from mulligan.pages import count, one_line
from mulligan.plugins import InvalidInput, QueryError
from mulligan.terminal import Group, clean, columns, emit, say

T = TypeVar("T")
WIDTH, NARROWEST = 60, 6
"""The most characters of a value in a table, and the fewest of a column that must fit; --json shows all of it."""


@click.group(cls=Group)
def graph() -> None:
    """Query graph databases, load them from files, or write a sample graph.

    None of these commands changes an existing graph.
    """


def server_options(command: Callable[..., None]) -> Callable[..., None]:
    user = "The user name for a server; the password is read from MULLIGAN_GRAPH_PASSWORD."
    database = "The database on a server (default: the server's own default)."
    command = click.option("--database", metavar="NAME", help=database)(command)
    return click.option("--user", metavar="NAME", help=user)(command)


@graph.command()
@click.argument("folder")
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Seed for a different graph of the same kind (default: the examples' graph).",
)
def sample(folder: str, seed: int | None) -> None:
    """Write a small biomedical graph to FOLDER as CSV files. The data is invented; only the gene symbols are real."""
    written = write_sample(Path(folder), SEED if seed is None else seed)
    files = count(len(written), "file")
    say(f"Wrote {count(sum(written.values()), 'row')} in {files}, and schema_info.json, to {folder}")
    say(f"To build a graph from these files: mulligan graph load {folder} --into FILE")


@graph.command()
@click.argument("source")
@click.option("--into", required=True, metavar="FILE", help="The new graph's file, which must not exist yet.")
def load(source: str, into: str) -> None:
    """Build a graph (a Ladybug database) from the files in the folder SOURCE.

    The files are nodes/LABEL.csv and edges/TYPE.csv, or BioCypher's output.
    """
    loaded, notes = load_graph(source, into)
    for note in notes:
        say(f"note: {clean(note)}")
    for label, number in (*sorted(loaded.nodes.items()), *sorted(loaded.edges.items())):
        say(f"{number:>9,}  {clean(label)}")
    emit(into)


@graph.command()
@click.argument("where")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_options
def schema(where: str, as_json: bool, user: str | None, database: str | None) -> None:
    """Show a graph's labels, relationship types and properties.

    WHERE is a graph file or a server address: bolt://host:7687, neo4j+s://host.
    """
    found = _with_graph(where, user, database, lambda opened: opened.schema())
    emit(json.dumps(asdict(found), ensure_ascii=False, indent=2) if as_json else _described(found))


@graph.command()
@click.argument("where")
@click.argument("query")
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A query parameter, whose value is JSON or plain text.",
)
@click.option("--seconds", type=float, metavar="S", help="Stop the query after S seconds (default: 10).")
@click.option("--rows", type=int, metavar="N", help="Return at most N rows (default: 1000).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one row per line.")
@server_options
def query(
    where: str,
    query: str,
    params: tuple[str, ...],
    seconds: float | None,
    rows: int | None,
    as_json: bool,
    user: str | None,
    database: str | None,
) -> None:
    """Run the read-only Cypher QUERY on the graph at WHERE."""
    given = dict(_parameter(text) for text in params)
    limits = {"seconds": SECONDS if seconds is None else seconds, "rows": ROWS if rows is None else rows}

    async def ask(opened: Graph) -> Rows:
        return await opened.run(query, given, **limits)  # pyright: ignore[reportArgumentType]

    try:
        found = _with_graph(where, user, database, ask)
    except QueryError as error:
        if error.kind in ("syntax", "unknown", "refused"):
            raise InvalidInput(str(error)) from None
        raise
    if as_json:
        emit("\n".join(json.dumps(row, ensure_ascii=False) for row in found.rows))
    elif found.rows:
        emit(table(found.columns, found.rows))
    say(f"{count(len(found.rows), 'row')}{', and there are more' if found.truncated else ''}")


def _with_graph(where: str, user: str | None, database: str | None, work: Callable[[Graph], Awaitable[T]]) -> T:
    async def run() -> T:
        opened = open_graph(where, user=user, database=database)
        try:
            return await work(opened)
        finally:
            await opened.close()

    return asyncio.run(run())


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} does not have the form NAME=VALUE.", param_hint="--param")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def _described(found: GraphSchema) -> str:
    nodes = [f"(:{node.label}{_properties(node.properties)})" for node in found.nodes]
    edges = [
        f"(:{source})-[:{edge.label}{_properties(edge.properties)}]->(:{target})"
        for edge in found.edges
        for source, target in edge.ends or (("", ""),)
    ]
    return clean("\n".join((*nodes, *edges)))


def _properties(properties: Mapping[str, str]) -> str:
    typed = (f"{name}: {kind}" if kind else name for name, kind in properties.items())
    return f" {{{', '.join(typed)}}}" if properties else ""


def table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as a table, each value in one line of at most `WIDTH` characters; on a terminal, of as few as make the
    table fit it.
    """
    cells = [[one_line(name, WIDTH) for name in names], *([_cell(row[name]) for name in names] for row in rows)]
    if names and sys.stdout.isatty():
        widths = _fitting([max(map(len, column)) for column in zip(*cells, strict=True)], get_terminal_size().columns)
        cells = [[one_line(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]
    return columns(cells)


def _fitting(widths: Sequence[int], most: int) -> list[int]:
    """Return the widths of columns, with the widest reduced until all fit into a line; none below `NARROWEST`."""
    found, spare = list(widths), most - 2 * (len(widths) - 1)
    while sum(found) > spare and max(found) > NARROWEST:
        widest = max(range(len(found)), key=found.__getitem__)
        found[widest] -= 1
    return found


def _cell(value: Any) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), WIDTH)
