"""Graph databases that are only read: embedded files, servers that speak Bolt, and loading files into a database."""

from mulligan.graphs.protocol import EdgeKind, Graph, GraphSchema, NodeKind, Rows

__all__ = ["EdgeKind", "Graph", "GraphSchema", "NodeKind", "Rows"]
