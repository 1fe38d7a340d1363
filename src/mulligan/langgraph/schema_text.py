"""A graph's schema in words, for a prompt."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.graphs import GraphSchema


def schema_text(schema: GraphSchema) -> str:
    """Nodes and relationships, each with its properties and their types; nothing for an empty graph."""
    nodes = [f"- {node.label}{_properties(node.properties)}" for node in schema.nodes]
    edges = [
        f"- (:{source})-[:{edge.label}]->(:{target}){_properties(edge.properties)}"
        for edge in schema.edges
        for source, target in edge.ends
    ]
    parts = (["Nodes:", *nodes] if nodes else []) + (["Relationships:", *edges] if edges else [])
    return "\n".join(parts)


def _properties(properties: Mapping[str, str]) -> str:
    said = ", ".join(f"{name} ({kind})" if kind else name for name, kind in properties.items())
    return f": {said}" if said else ""
