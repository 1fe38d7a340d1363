"""Graph databases, to be asked: one small protocol over embedded engines and servers. Nothing here ever writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from mulligan.core.records import Json

SECONDS, ROWS = 10.0, 1000
"""What one query may take, and how many rows of its answer are kept, where nobody says otherwise."""


@dataclass(frozen=True)
class Rows:
    """The answer to a query: rows by column, as JSON. `truncated`: there were more than were asked for.

    A node is {"id", "label", "properties"}, an edge {"label", "source", "target", "properties"} with the ids of its
    nodes, a path the list of them in their order. Several labels of a node are joined by colons. Dates and times are
    ISO 8601 texts, bytes Base64, and floats that are no numbers "NaN", "Infinity", "-Infinity". Ids are the database's
    own, and may be others after the next load.
    """

    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Json], ...] = ()
    truncated: bool = False

    @property
    def empty(self) -> bool:
        """True when no row holds a value: `count(*)` of 0 is a value, a null is none."""
        return not any(value is not None for row in self.rows for value in row.values())


@dataclass(frozen=True)
class NodeKind:
    """A label of nodes, and its properties with their types as the engine names them ("" where it knows none)."""

    label: str
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class EdgeKind:
    """A type of relationships; `ends` are the (source, target) labels that it joins."""

    label: str
    ends: tuple[tuple[str, str], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class GraphSchema:
    nodes: tuple[NodeKind, ...] = ()
    edges: tuple[EdgeKind, ...] = ()


@runtime_checkable
class Graph(Protocol):
    """A graph database that is only read.

    name: where it is, without a password. language: what its queries are written in, as a prompt says it, such as
    "Cypher (Ladybug dialect)". notes: what a model has to know of the dialect, each a sentence.
    """

    name: str
    language: str
    notes: Sequence[str]

    async def run(
        self,
        query: str,
        parameters: Mapping[str, Json] | None = None,
        *,
        seconds: float = SECONDS,
        rows: int = ROWS,
    ) -> Rows:
        """The answer, within about so many seconds, at most so many rows of it.

        Raises `QueryError` for what the one who wrote the query can mend (it says where, and how much it would be),
        `GraphError` when the database cannot be reached or has died.
        """
        ...

    async def schema(self) -> GraphSchema: ...
    async def close(self) -> None: ...
