"""The protocol of a graph database: run a query, describe the schema. No implementation writes to its database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from mulligan.plugins import Json

_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_RESERVED = frozenset(
    """
    where with order unwind union group end desc asc in not all any exists on default table column primary case when
    then else and or xor as by is null true false distinct having select
    """.upper().split()
)
"""Words that Ladybug reads as its own where a name stands. In backticks they are names in all engines."""
_NUMBERS = re.compile(r"U?INT\d*|INTEGER|LONG|SHORT|BYTE|SERIAL|DOUBLE|FLOAT|DECIMAL.*")
SECONDS, ROWS = 10.0, 1000
"""The default time limit of a query, and the default number of rows that an answer keeps."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query: rows by column, as JSON. `truncated`: the database had more rows than were requested.

    A node is {"id", "label", "properties"}, an edge {"label", "source", "target", "properties"} with the ids of its
    nodes, and a path is a list of nodes and edges in order. Several labels of a node are joined by colons. Dates and
    times are ISO 8601 strings, bytes are Base64, and special floats are "NaN", "Infinity" and "-Infinity". Ids belong
    to the database and may change when it is loaded again.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...] = ()
    truncated: bool = False

    @property
    def empty(self) -> bool:
        """True when no row holds a value. A `count(*)` of 0 is a value; null is not."""
        return not any(value is not None for row in self.rows for value in row.values())


@dataclass(frozen=True)
class NodeKind:
    """A node label and its properties, name to type as the engine names it ("" if the engine does not know)."""

    label: str
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class EdgeKind:
    """A relationship type; `ends` are the (source, target) labels that it connects."""

    label: str
    ends: tuple[tuple[str, str], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class GraphSchema:
    """The node labels and relationship types of a graph.

    exact: whether the database holds its data to this schema; otherwise properties and ends may be those of a sample.
    """

    nodes: tuple[NodeKind, ...] = ()
    edges: tuple[EdgeKind, ...] = ()
    exact: bool = False

    def to_json(self) -> Json:
        nodes = [{"label": node.label, "properties": dict(node.properties)} for node in self.nodes]
        edges = [
            {"label": edge.label, "ends": [list(pair) for pair in edge.ends], "properties": dict(edge.properties)}
            for edge in self.edges
        ]
        return {"nodes": nodes, "edges": edges, **({"exact": True} if self.exact else {})}

    @classmethod
    def from_json(cls, found: Json) -> GraphSchema:
        nodes = tuple(NodeKind(node["label"], node["properties"]) for node in found["nodes"])
        joined = [(edge, tuple((a, b) for a, b in edge["ends"])) for edge in found["edges"]]
        edges = tuple(EdgeKind(edge["label"], ends, edge["properties"]) for edge, ends in joined)
        return cls(nodes, edges, found.get("exact", False))


@runtime_checkable
class Graph(Protocol):
    """A graph database that is only read.

    name: its path or address, without a password. language: the query language as a prompt names it, such as
    "Cypher (Ladybug dialect)". notes: what a model must know about the dialect, one sentence each.
    """

    name: str
    language: str
    notes: Sequence[str]

    async def run(
        self, query: str, parameters: Mapping[str, Json] | None = None, *, seconds: float = SECONDS, rows: int = ROWS
    ) -> Rows:
        """Run a query for at most about `seconds` and return at most `rows` rows.

        Raises:
            QueryError: The query is wrong, too slow or too large; its author can correct it.
            GraphError: The database cannot be reached, or it has crashed.
        """
        ...

    async def schema(self) -> GraphSchema: ...
    async def close(self) -> None: ...


def check_limits(seconds: float, rows: int) -> None:
    """Raise `InvalidInput` unless a query may take some time and return a row."""
    if seconds <= 0 or rows < 1:
        from mulligan.plugins import InvalidInput  # which the process that queries a database need not load

        raise InvalidInput(
            f"A query must be allowed more than 0 s and at least 1 row, not {seconds:g} s and {rows} rows."
        )


def quoted(name: str) -> str:
    """Write a name in backticks, as Cypher does."""
    return "`" + name.replace("`", "``") + "`"


def spelled(name: str) -> str:
    """Write a name as a query must have it: in backticks if it is a keyword, or not a plain word."""
    return name if _PLAIN.fullmatch(name) and name.upper() not in _RESERVED else quoted(name)


def drawn(source: str, label: str, target: str, directed: bool = True) -> str:
    """Draw which labels a relationship connects, as a query does."""
    return f"(:{spelled(source)})-[:{spelled(label)}]-{'>' * directed}(:{spelled(target)})"


def is_number(kind: str) -> bool:
    """Whether the engine's name of a type means a number."""
    return bool(_NUMBERS.fullmatch(kind.upper()))


def bare(name: str) -> str:
    """Return a name by which spellings are compared that differ only in case, spaces and underscores."""
    return "".join(char for char in name.casefold() if char.isalnum())
