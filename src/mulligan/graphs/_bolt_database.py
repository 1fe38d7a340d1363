"""A server that speaks Bolt, inside the worker process: runs queries in read mode through the official Neo4j driver.

It also reads the schema by queries that need no plug-in, and converts the driver's values to JSON.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import neo4j
from neo4j.exceptions import DriverError, Neo4jError
from neo4j.graph import Node, Path, Relationship
from neo4j.spatial import Point
from neo4j.time import Date, DateTime, Duration, Time

from mulligan.graphs._database import Trouble, edge, json_of, node
from mulligan.graphs.protocol import quoted

if TYPE_CHECKING:
    from mulligan.plugins import Json

RowsOf: TypeAlias = Callable[[str], list[dict[str, Any]]]
"""Runs a query and returns all of its rows."""

CONNECTING = 10.0
FETCHED = 1_000
"""The rows that the server sends at a time, at most."""
SAMPLE = 200
"""The nodes or relationships per kind whose properties are read, where no procedure lists them."""
ENDS = 2_000
"""The relationships per type whose ends are read."""
_PLACES = (
    (re.compile(r"line (\d+), column (\d+) \(offset"), 0),  # Neo4j counts columns from 1
    (re.compile(r"at line (\d+), column (\d+)"), 1),  # ArcadeDB from 0
    (re.compile(r"at line (\d+):(\d+)"), 1),
)
_KINDS = (
    ("Neo.ClientError.Security", "gone"),
    ("Neo.ClientError.Database", "gone"),
    ("Neo.ClientError.Transaction.TransactionTimedOut", "slow"),
    ("Neo.ClientError.Transaction.LockClientStopped", "slow"),
    ("Neo.TransientError.General.MemoryPoolOutOfMemoryError", "large"),
    ("Neo.TransientError.General.OutOfMemoryError", "large"),
    ("Neo.ClientError.Statement.AccessMode", "refused"),
    ("Neo.ClientError.Security.Forbidden", "refused"),
)
_UNKNOWN = re.compile(r"[Uu]nknown (function|procedure)|not defined|UndefinedVariable|Expected parameter")


class BoltDatabase:
    """See `Database`."""

    files = True
    reserved = 0

    def __init__(self, setup: Mapping[str, Any]) -> None:
        logging.getLogger("neo4j").setLevel(logging.CRITICAL)
        self._name = setup["name"]
        self._database = setup["database"]
        auth = (setup["user"], setup["password"] or "") if setup["user"] is not None else None
        self._session: Any = None
        try:
            self._driver: Any = cast(Any, neo4j.GraphDatabase).driver(
                setup["address"],
                auth=auth,
                connection_timeout=CONNECTING,
                connection_acquisition_timeout=CONNECTING,
                max_connection_pool_size=2,
                max_transaction_retry_time=0,
                telemetry_disabled=True,
            )
            self._driver.verify_connectivity()
        except Exception as error:
            raise self._unreachable(error) from None

    def rows(
        self, query: str, parameters: Mapping[str, Json], seconds: float, rows: int
    ) -> tuple[Sequence[str], Iterator[Sequence[Json]]]:
        result = self._run(query, parameters, seconds, min(rows + 1, FETCHED))
        return self._call(result.keys), self._values(result)

    def schema(self, seconds: float) -> Json:
        def rows_of(query: str) -> list[dict[str, Any]]:
            result = self._run(query, {}, seconds, FETCHED)
            found = self._call(lambda: [dict(record.items()) for record in result])
            self.settle()
            return found

        return describe(rows_of)

    def settle(self) -> None:
        """Close the session without reading the rest of the answer."""
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()

    def _run(self, query: str, parameters: Mapping[str, Json], seconds: float, fetched: int) -> Any:
        self.settle()
        self._session = self._driver.session(
            database=self._database, default_access_mode=neo4j.READ_ACCESS, fetch_size=fetched
        )
        timed = neo4j.Query(cast(Any, query), timeout=seconds)
        return self._call(lambda: self._session.run(timed, dict(parameters)))

    def _call(self, do: Callable[[], Any]) -> Any:
        try:
            return do()
        except MemoryError:
            raise
        except Exception as error:
            raise self._trouble(error) from None

    def _values(self, result: Any) -> Iterator[Sequence[Json]]:
        end = object()
        records = iter(result)
        while (record := self._call(lambda: next(records, end))) is not end:
            yield [_json(value) for value in record.values()]

    def _trouble(self, error: Exception) -> Trouble:
        code, message = getattr(error, "code", None), getattr(error, "message", None) or str(error)
        if not isinstance(error, Neo4jError) or not code:
            if isinstance(error, DriverError):
                return self._disconnected(error)
            return Trouble(f"{type(error).__name__}: {message}", "failed")
        kind = next((kind for start, kind in reversed(_KINDS) if code.startswith(start)), None)
        if kind == "gone":
            return self._unreachable(error)
        if kind in ("slow", "large"):
            return Trouble("", kind)
        if kind is None:
            kind = "unknown" if _UNKNOWN.search(message) else "syntax" if code.endswith(".SyntaxError") else "failed"
        line, column = _place(message)
        return Trouble.clipped(message, kind, line, column)

    def _disconnected(self, error: Exception) -> Trouble:
        """Return the error for a lost connection: a server that still answers dropped it because of this query."""
        try:
            self._driver.verify_connectivity()
        except Exception:
            return self._unreachable(error)
        return Trouble(
            f"{self._name} closed the connection during this query, which may need too much memory there.", "failed"
        )

    def _unreachable(self, error: Exception) -> Trouble:
        """Return the error as one sentence that shows neither user nor password."""
        code, message = getattr(error, "code", None) or "", getattr(error, "message", None) or str(error)
        first = message.strip().splitlines()[0].rstrip(":") if message.strip() else type(error).__name__
        if code.startswith("Neo.ClientError.Security"):
            return Trouble(f"{self._name} did not accept the user and password: {first}", "gone")
        if code.startswith("Neo.ClientError.Database"):
            return Trouble(f"{self._name} has no such database: {first}", "gone")
        return Trouble(f"{self._name} cannot be reached: {first}", "gone")


def _place(message: str) -> tuple[int, int] | tuple[None, None]:
    for pattern, more in _PLACES:
        if found := pattern.search(message):
            return int(found[1]), int(found[2]) + more
    return None, None


# --- the schema, read by queries that need no plug-in -------------------------------------------------------------


def describe(rows_of: RowsOf) -> Json:
    """Return the schema: from the server's procedures, or from a sample of the graph where it has none.

    Raises `Trouble` if the server cannot even list labels and types.
    """
    labels = sorted(row["label"] for row in rows_of("CALL db.labels()"))
    types = sorted(row["relationshipType"] for row in rows_of("CALL db.relationshipTypes()"))
    ends = {name: _ends(rows_of, name) for name in types}
    rarest = _rarest(rows_of, labels, ends)
    of_nodes = _listed_properties(rows_of, "CALL db.schema.nodeTypeProperties()", lambda row: row["nodeLabels"])
    of_edges = _listed_properties(
        rows_of, "CALL db.schema.relTypeProperties()", lambda row: [row["relType"].removeprefix(":").strip("`")]
    )
    return {
        "nodes": [
            {"label": name, "properties": of_nodes.get(name) or _sampled(rows_of, f"MATCH (n:{quoted(name)})", "n")}
            for name in labels
        ],
        "edges": [
            {
                "label": name,
                "ends": sorted({(rarest(a), rarest(b)) for a, b in ends[name]}),
                "properties": of_edges.get(name) or _sampled(rows_of, f"MATCH ()-[r:{quoted(name)}]->()", "r"),
            }
            for name in types
        ],
    }


def _ends(rows_of: RowsOf, name: str) -> list[tuple[list[str], list[str]]]:
    rows = rows_of(
        f"MATCH (a)-[r:{quoted(name)}]->(b) WITH a, b LIMIT {ENDS} RETURN DISTINCT labels(a) AS a, labels(b) AS b"
    )
    return [(row["a"], row["b"]) for row in rows if row["a"] and row["b"]]


def _rarest(
    rows_of: RowsOf, labels: Iterable[str], ends: Mapping[str, list[tuple[list[str], list[str]]]]
) -> Callable[[list[str]], str]:
    """Return a function that chooses the most specific of a node's labels: the one that the fewest nodes have."""
    several = any(len(side) > 1 for pairs in ends.values() for pair in pairs for side in pair)
    counts: dict[str, int] = {}
    if several:
        counts = {name: rows_of(f"MATCH (n:{quoted(name)}) RETURN count(n) AS n")[0]["n"] for name in labels}
    return lambda side: min(side, key=lambda name: (counts.get(name, 0), name))


def _listed_properties(
    rows_of: RowsOf, procedure: str, labels: Callable[[Mapping[str, Any]], list[str]]
) -> dict[str, dict[str, str]]:
    """Return the properties and their types by label, from a procedure; empty if the server does not have it."""
    found: dict[str, dict[str, str]] = {}
    with suppress(Trouble):
        for row in rows_of(procedure):
            for label in labels(row):
                properties = found.setdefault(label, {})
                if row["propertyName"] is not None:
                    properties[row["propertyName"]] = " | ".join(map(str, row["propertyTypes"] or [])).upper()
    return found


def _sampled(rows_of: RowsOf, match: str, name: str) -> dict[str, str]:
    """Return the properties of a sample, each with the types that its values have there."""
    found: dict[str, set[str]] = {}
    for row in rows_of(f"{match} WITH {name} LIMIT {SAMPLE} RETURN {name} AS it"):
        for key, value in row["it"].items():
            found.setdefault(key, set()).update({_type_of(value)} - {""})
    return {key: " | ".join(sorted(kinds)) for key, kinds in sorted(found.items())}


# --- values of the driver as JSON ---------------------------------------------------------------------------------


def _json(value: Any) -> Json:
    if isinstance(value, Node):
        return node(value.element_id, ":".join(sorted(value.labels)), _properties(value))
    if isinstance(value, Path):
        return _path(value)
    if isinstance(value, Relationship):
        ends = [end.element_id if end is not None else "" for end in (value.start_node, value.end_node)]
        return edge(value.type, ends[0], ends[1], _properties(value))
    if isinstance(value, Point):  # a tuple of numbers otherwise
        return {"srid": value.srid, "coordinates": [_json(float(number)) for number in value]}
    if isinstance(value, Date | DateTime | Time | Duration):
        return value.iso_format()
    return json_of(value, _json)


def _type_of(value: Any) -> str:
    """Return Cypher's name for the type of a value; "" for null."""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    if isinstance(value, list):
        inner = {_type_of(item) for item in value} - {""}  # pyright: ignore[reportUnknownVariableType]
        return f"LIST<{inner.pop()}>" if len(inner) == 1 else "LIST<ANY>"
    return "" if value is None else type(value).__name__.upper()


_TYPES: tuple[tuple[type[Any], str], ...] = (
    (bool, "BOOLEAN"),
    (int, "INTEGER"),
    (float, "FLOAT"),
    (str, "STRING"),
    (DateTime, "DATETIME"),
    (Date, "DATE"),
    (Time, "TIME"),
    (Duration, "DURATION"),
    (Point, "POINT"),
    (bytes, "BYTES"),
)


def _properties(value: Node | Relationship) -> dict[str, Json]:
    return {name: _json(item) for name, item in value.items()}


def _path(path: Path) -> list[Json]:
    parts = [_json(path.start_node)]
    for relationship, end in zip(path.relationships, path.nodes[1:], strict=True):
        parts += [_json(relationship), _json(end)]
    return parts
