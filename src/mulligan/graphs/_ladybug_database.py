"""A Ladybug database inside the worker process: opens the file read-only, runs queries, reads the schema."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mulligan.graphs._database import Trouble, address_space, edge, json_of, node

if TYPE_CHECKING:
    from mulligan.plugins import Json

THREADS = 2
STATEMENTS = 256
"""The queries after which the connection is replaced: it keeps every statement that it has prepared."""
_WARM = (
    "RETURN cast('2020-01-01 00:00:00+01' AS TIMESTAMP_TZ), cast('1.5' AS DECIMAL(5, 2)), gen_random_uuid(), "
    "date('2020-01-01'), interval('1 day'), cast(1 AS INT128), blob('a')"
)
"""Makes the engine load its code for converting every type to Python while it can still open files."""
_PLACE = re.compile(r"\(line: (\d+), offset: (\d+)\)")
_KINDS = (
    (re.compile(r"Interrupted\.", re.I), "slow"),
    (re.compile(r"bad_alloc|Buffer manager exception|buffer pool is full", re.I), "large"),
    (re.compile(r"read-only|READ ONLY", re.I), "refused"),
    (re.compile(r"^(Parser|Lexer) exception"), "syntax"),
    (re.compile(r"does not exist|not in scope|Cannot find property|^Catalog exception", re.I), "unknown"),
)


class LadybugDatabase:
    """See `Database`."""

    files = False

    def __init__(self, setup: Mapping[str, Any]) -> None:
        import ladybug

        self._ladybug = ladybug
        path, memory = setup["path"], setup["memory"]
        region = 1 << max(26, (4 * _size(path)).bit_length())  # address space for the database's pages
        before = address_space() or 0
        try:
            self._database = ladybug.Database(
                path, read_only=True, buffer_pool_size=memory // 4, max_num_threads=THREADS, max_db_size=region
            )
            self._connection = ladybug.Connection(self._database)
            warm: Any = self._connection.execute(_WARM)
            warm.get_all()
        except Exception as error:
            raise Trouble(_unopened(path, str(error)), "gone") from None
        taken = (address_space() or 0) - before - region
        self.reserved = max(0, min(taken, memory // 2))
        self._asked = 0
        self._result: Any = None
        self._names: list[str] | None = None

    def rows(
        self, query: str, parameters: Mapping[str, Json], seconds: float, rows: int
    ) -> tuple[Sequence[str], Iterator[Sequence[Json]]]:
        result = self._run(query, parameters, seconds)
        return result.get_column_names(), self._values(result)

    def schema(self, seconds: float) -> Json:
        nodes: list[Json] = []
        edges: list[Json] = []
        for name, kind in self._listed("CALL show_tables() RETURN name, type", seconds):
            quoted = name.replace("\\", "\\\\").replace("'", "\\'")
            typed = self._listed(f"CALL table_info('{quoted}') RETURN name, type", seconds)
            table: dict[str, Json] = {"label": name, "properties": dict(typed)}
            if kind == "NODE":
                nodes.append(table)
            elif kind == "REL":
                ends = self._listed(f"CALL show_connection('{quoted}') RETURN *", seconds)
                edges.append({**table, "ends": [list(row[:2]) for row in ends]})
        return {"nodes": sorted(nodes, key=_by_label), "edges": sorted(edges, key=_by_label), "exact": True}

    def settle(self) -> None:
        if self._result is not None:
            self._result.close()
            self._result = None
        self._asked += 1
        if self._asked >= STATEMENTS:
            self._connection.close()
            self._connection = self._ladybug.Connection(self._database)
            self._asked = 0

    def _run(self, query: str, parameters: Mapping[str, Json], seconds: float) -> Any:
        self._connection.set_query_timeout(max(1, int(seconds * 1000)))
        try:
            self._result = self._connection.execute(query, dict(parameters))
        except Exception as error:
            raise self._trouble(str(error)) from None
        if isinstance(self._result, list):
            raise Trouble("Only one statement is allowed.", "refused")
        return self._result

    def _values(self, result: Any) -> Iterator[Sequence[Json]]:
        try:
            while result.has_next():
                yield [_json(value) for value in result.get_next()]
        except RuntimeError as error:
            raise self._trouble(str(error)) from None

    def _listed(self, query: str, seconds: float) -> list[list[Any]]:
        return [list(row) for row in self._values(self._run(query, {}, seconds))]

    def _trouble(self, message: str) -> Trouble:
        """Return an error with the engine's message, the place that it names, and a suggestion for unknown names."""
        kind = next((kind for pattern, kind in _KINDS if pattern.search(message)), "failed")
        if kind in ("slow", "large"):
            return Trouble("", kind)
        found = _PLACE.search(message)
        line, column = (int(found[1]), int(found[2]) + 1) if found else (None, None)
        return Trouble.clipped(message + (self._suggestion(message) if kind == "unknown" else ""), kind, line, column)

    def _suggestion(self, message: str) -> str:
        wrong = re.search(r"Table (\S+) does not exist|Cannot find property (\S+) for", message)
        if not wrong:
            return ""
        try:
            tables = self.schema(5)
        except Trouble:
            return ""
        every = [*tables["nodes"], *tables["edges"]]
        if owners := [table["label"] for table in every if wrong[2] in table["properties"]]:
            return f" {wrong[2]} is a property of {', '.join(owners)}."
        known = {table["label"] for table in every} if wrong[1] else {p for table in every for p in table["properties"]}
        near = difflib.get_close_matches(wrong[1] or wrong[2], sorted(known), n=1)
        return f" Did you mean {near[0]}?" if near else ""


def _size(path: str) -> int:
    """The bytes of the database file and of its write-ahead log."""
    return sum(os.path.getsize(file) for file in (path, f"{path}.wal") if os.path.exists(file))


def _by_label(table: Json) -> str:
    return table["label"]


def _unopened(path: str, reason: str) -> str:
    if "not a valid" in reason:
        return f"{path} is not a Ladybug database."
    if "cannot be a directory" in reason:
        return f"{path} is a folder; a Ladybug database is a file."
    if "version" in reason.lower():
        return f"{path} was written by another version of Ladybug: {reason}"
    return f"{path} could not be opened as a Ladybug database: {reason}"


def _json(value: Any) -> Json:
    """Convert a value. Nodes, edges and paths are dicts with keys that no property can have."""
    if not isinstance(value, dict):
        return json_of(value, _json)
    fields: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
    if "_NODES" in fields and "_RELS" in fields:
        return _path(fields)
    if "_LABEL" in fields and "_ID" in fields:
        properties = {name: _json(item) for name, item in fields.items() if name not in _MARKS}
        if "_SRC" in fields:
            return edge(fields["_LABEL"], _id(fields["_SRC"]), _id(fields["_DST"]), properties)
        return node(_id(fields["_ID"]), fields["_LABEL"], properties)
    if fields.keys() == {"offset", "table"}:
        return _id(fields)
    return json_of(fields, _json)


_MARKS = ("_ID", "_LABEL", "_SRC", "_DST")


def _id(value: Any) -> str:
    return f"{value['table']}:{value['offset']}"


def _path(fields: Mapping[str, Any]) -> list[Json]:
    """Node, edge, node, ...; a path without its end nodes begins with an edge."""
    nodes, edges = [_json(n) for n in fields["_NODES"]], [_json(e) for e in fields["_RELS"]]
    first, second = (edges, nodes) if len(nodes) < len(edges) else (nodes, edges)
    return [part for pair in zip(first, [*second, None], strict=False) for part in pair if part is not None]
