"""Graph databases that are only read: embedded files, servers that speak Bolt, and loading files into a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mulligan.graphs.protocol import EdgeKind, Graph, GraphSchema, NodeKind, Rows

if TYPE_CHECKING:
    from mulligan.graphs.opening import load_graph, open_graph, read_tables

__all__ = ["EdgeKind", "Graph", "GraphSchema", "NodeKind", "Rows", "load_graph", "open_graph", "read_tables"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'mulligan.graphs' has no attribute {name!r}")
    from mulligan.graphs import opening

    return getattr(opening, name)
