"""What a Bolt server's graph is made of, by queries that need no plug-in: its procedures, else a look at some of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mulligan.core.records import Json
from mulligan.graphs._bolt_values import type_of
from mulligan.graphs._database import Trouble

LOOKED_AT = 200
"""Nodes or relationships of a kind whose properties are looked at, where no procedure knows them."""
ENDS = 2_000
"""Relationships of a type whose ends are looked at."""

Listed = Callable[[str], list[dict[str, Any]]]


def described(listed: Listed) -> Json:
    """Raises `Trouble` where not even labels and types can be asked for."""
    labels = sorted(row["label"] for row in listed("CALL db.labels()"))
    types = sorted(row["relationshipType"] for row in listed("CALL db.relationshipTypes()"))
    ends = {name: _ends(listed, name) for name in types}
    rarest = _rarest(listed, labels, ends)
    of_nodes, of_edges = _known_of_nodes(listed), _known_of_edges(listed)
    return {
        "nodes": [
            {"label": name, "properties": of_nodes.get(name) or _seen(listed, f"MATCH (n:{_quoted(name)})", "n")}
            for name in labels
        ],
        "edges": [
            {
                "label": name,
                "ends": sorted({(rarest(a), rarest(b)) for a, b in ends[name]}),
                "properties": of_edges.get(name) or _seen(listed, f"MATCH ()-[r:{_quoted(name)}]->()", "r"),
            }
            for name in types
        ],
    }


def _ends(listed: Listed, name: str) -> list[tuple[list[str], list[str]]]:
    rows = listed(
        f"MATCH (a)-[r:{_quoted(name)}]->(b) WITH a, b LIMIT {ENDS} RETURN DISTINCT labels(a) AS a, labels(b) AS b"
    )
    return [(row["a"], row["b"]) for row in rows if row["a"] and row["b"]]


def _rarest(
    listed: Listed, labels: Iterable[str], ends: Mapping[str, list[tuple[list[str], list[str]]]]
) -> Callable[[list[str]], str]:
    """Of several labels of a node, the one that says most: that which the fewest nodes have."""
    several = any(len(side) > 1 for pairs in ends.values() for pair in pairs for side in pair)
    counts: dict[str, int] = {}
    if several:
        counts = {name: listed(f"MATCH (n:{_quoted(name)}) RETURN count(n) AS n")[0]["n"] for name in labels}
    return lambda side: min(side, key=lambda name: (counts.get(name, 0), name))


def _known_of_nodes(listed: Listed) -> dict[str, dict[str, str]]:
    try:
        rows = listed("CALL db.schema.nodeTypeProperties()")
    except Trouble:
        return {}
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        for label in row["nodeLabels"]:
            _put(found.setdefault(label, {}), row)
    return found


def _known_of_edges(listed: Listed) -> dict[str, dict[str, str]]:
    try:
        rows = listed("CALL db.schema.relTypeProperties()")
    except Trouble:
        return {}
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        _put(found.setdefault(row["relType"].removeprefix(":").strip("`"), {}), row)
    return found


def _put(properties: dict[str, str], row: Mapping[str, Any]) -> None:
    if row["propertyName"] is not None:
        properties[row["propertyName"]] = " | ".join(map(str, row["propertyTypes"] or [])).upper()


def _seen(listed: Listed, match: str, name: str) -> dict[str, str]:
    """The properties of some, each with the types that its values have there."""
    found: dict[str, set[str]] = {}
    for row in listed(f"{match} WITH {name} LIMIT {LOOKED_AT} RETURN {name} AS it"):
        for key, value in row["it"].items():
            found.setdefault(key, set()).update({type_of(value)} - {""})
    return {key: " | ".join(sorted(kinds)) for key, kinds in sorted(found.items())}


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
