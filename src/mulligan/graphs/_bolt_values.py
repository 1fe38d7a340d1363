"""Values of the Bolt driver as JSON."""

from __future__ import annotations

from typing import Any

from neo4j.graph import Node, Path, Relationship
from neo4j.spatial import Point
from neo4j.time import Date, DateTime, Duration, Time

from mulligan.core.records import Json
from mulligan.graphs._values import edge, key, node, plain


def json_of(value: Any) -> Json:
    if isinstance(value, Node):
        return node(value.element_id, ":".join(sorted(value.labels)), _properties(value))
    if isinstance(value, Path):
        return _path(value)
    if isinstance(value, Relationship):
        ends = [end.element_id if end is not None else "" for end in (value.start_node, value.end_node)]
        return edge(value.type, ends[0], ends[1], _properties(value))
    if isinstance(value, Point):  # a tuple of numbers otherwise
        return {"srid": value.srid, "coordinates": [plain(float(number)) for number in value]}
    if isinstance(value, Date | DateTime | Time | Duration):
        return value.iso_format()
    if isinstance(value, list | tuple):
        return [json_of(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {key(name): json_of(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return plain(value)


def type_of(value: Any) -> str:
    """What Cypher calls the type of a value; "" where it is null."""
    for kind, name in _TYPES:
        if isinstance(value, kind):
            return name
    if isinstance(value, list):
        inner = {type_of(item) for item in value} - {""}  # pyright: ignore[reportUnknownVariableType]
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
    return {name: json_of(item) for name, item in value.items()}


def _path(path: Path) -> list[Json]:
    parts = [json_of(path.start_node)]
    for relationship, end in zip(path.relationships, path.nodes[1:], strict=True):
        parts += [json_of(relationship), json_of(end)]
    return parts
