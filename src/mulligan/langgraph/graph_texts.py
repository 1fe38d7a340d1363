"""How a graph database is shown to a model: its schema in words, and the rows of an answer cut to what fits.

A schema comes from a live database or from BioCypher's two forms: `schema_config` tells how each kind is represented;
`schema_info` (`is_schema_info: true`) tells what is in the graph. Names become labels with a capital for each word
("protein to disease association": ProteinToDiseaseAssociation).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import BaseMessage, ToolMessage

from mulligan.graphs.protocol import GraphSchema, bare, drawn
from mulligan.plugins import InvalidInput, Json, estimate, read_text

SHOWN = 4000
"""The approximate tokens of a result that a model is shown."""
TEXT, ITEMS = 400, 20
"""The characters of a string, and the items of a list or an object, that are shown of a row that is too large."""


def has_values(rows: Any) -> bool:
    """Return whether any row holds a value. 0 is one; null, the strings "None" and "null", and empty lists and objects
    are not."""
    listed = cast(list[Any], rows) if isinstance(rows, list) else [rows]
    values = [v for row in listed for v in (cast(dict[str, Any], row).values() if isinstance(row, dict) else [row])]
    return any(_is_value(value) for value in values)


def _is_value(value: Any) -> bool:
    if isinstance(value, list | dict):
        parts = cast(Any, value.values() if isinstance(value, dict) else value)
        return any(_is_value(part) for part in parts)
    return value not in (None, "None", "null")


def tool_message(found: Mapping[str, Json], call: Mapping[str, Any]) -> ToolMessage:
    """Return what came of a query, {"query", "result", …}, as the answer to a tool call. `artifact` holds all of it,
    the text as much as the model is shown."""
    return ToolMessage(
        content=shown(found),
        artifact=dict(found),
        tool_call_id=call.get("id") or "",
        name=call.get("name"),
        status="error" if "error" in found else "success",
    )


def shown(found: Mapping[str, Json], tokens: int = SHOWN) -> str:
    """Return it as JSON with the first rows that fit into the tokens, and a note if there are more."""
    rows: list[Json] = found["result"]
    whole = _json(found)
    if len(whole) <= tokens or estimate(whole) <= tokens:
        return whole
    rest = {name: value for name, value in found.items() if name != "result"}
    left = tokens - estimate(_json(rest)) - 60
    kept: list[Json] = []
    for row in rows:
        left -= estimate(_json(row)) + 1
        if left < 0:
            break
        kept.append(row)
    if not kept and rows:
        kept = [_clipped(rows[0])]
        note = f"the first of {len(rows)} rows, itself cut short: return less of it"
        if estimate(_json(kept)) > tokens:
            kept, note = [], f"no row is shown: each of the {len(rows)} is too large. Return single properties"
    else:
        note = f"the first {len(kept)} of {len(rows)} rows: return fewer or shorter values to see more"
    return _json({**rest, "result": kept, "shown": note})


def result_in(message: ToolMessage) -> Any:
    """Return the "result" of a tool message, or its whole text if it is not such JSON."""
    return record_in(message).get("result")


def record_in(message: ToolMessage) -> dict[str, Any]:
    """Return {"query", "result", …} of a tool message; {"result": its text} if it is something else."""
    whole: Any = message.artifact
    if isinstance(whole, dict) and "result" in whole:
        return cast(dict[str, Any], whole)
    try:
        read = json.loads(message.text)
    except ValueError:
        read = None
    return cast(dict[str, Any], read) if isinstance(read, dict) and "result" in read else {"result": message.text}


def queries_run(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the queries whose results stand in the conversation."""
    return [str(record_in(each).get("query")) for each in messages if isinstance(each, ToolMessage)]


def _clipped(value: Json) -> Json:
    """Return the value with long strings, lists and objects cut short, and a note of how much was cut."""
    if isinstance(value, str):
        return value if len(value) <= TEXT else f"{value[:TEXT]}… ({len(value) - TEXT:,} characters more)"
    if isinstance(value, list):
        items = cast(list[Json], value)
        more = [f"… ({len(items) - ITEMS:,} more)"] if len(items) > ITEMS else []
        return [*(_clipped(item) for item in items[:ITEMS]), *more]
    if isinstance(value, dict):
        pairs = list(cast(dict[str, Json], value).items())
        more = {"…": f"{len(pairs) - ITEMS:,} more"} if len(pairs) > ITEMS else {}
        return {**{name[:TEXT]: _clipped(item) for name, item in pairs[:ITEMS]}, **more}
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


_RELATIONS = ("interaction", "association")
"""A node with one of these words in its name, a source and a target stands for a relationship."""


@dataclass(frozen=True)
class Relationship:
    """A relationship. label: its type in a query. ends: the (source, target) labels that it connects, if known.
    directed: whether a query gives it a direction."""

    label: str
    ends: tuple[tuple[str, str], ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    directed: bool = True


@dataclass(frozen=True)
class Known:
    """The entities of a graph, by label with their properties (name to type, "" if unknown), and its relationships by
    name."""

    entities: Mapping[str, Mapping[str, str]]
    relationships: Mapping[str, Relationship]


def pascal_case(name: str) -> str:
    """Return the label that BioCypher writes: each word, and each part between dots, begins with a capital."""
    return ".".join("".join(word[0].upper() + word[1:] for word in part.split()) for part in name.split("."))


def from_database(schema: GraphSchema) -> Known:
    """Read a database's schema. Raises `InvalidInput` for an empty graph."""
    entities = {node.label: node.properties for node in schema.nodes}
    relationships = {
        f"{edge.label} relationship" if edge.label in entities else edge.label: Relationship(
            edge.label, edge.ends, edge.properties
        )
        for edge in schema.edges
    }
    return _checked(Known(entities, relationships), "The graph")


def from_file(path: str | Path) -> Known:
    """Read a YAML or JSON file. Raises `InvalidInput`."""
    import yaml

    text = read_text(Path(path).expanduser(), f"The schema {path}")
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise InvalidInput(f"The schema {path} is not valid YAML: {said}.") from None
    return from_table(found, str(path))


def from_table(schema: Any, where: str = "The schema") -> Known:
    """Read either of BioCypher's forms from a dict. Raises `InvalidInput` that names the entry."""
    if not isinstance(schema, Mapping):
        raise InvalidInput(f"{where} must be a mapping from names to kinds, not {type(schema).__name__}.")
    table = cast(Mapping[Any, Any], schema)
    is_info = bool(table.get("is_schema_info"))
    entries = {str(name): cast(Mapping[str, Any], each) for name, each in table.items() if isinstance(each, Mapping)}
    kinds = [_Kind(name, entry, where) for name, entry in entries.items()]
    nodes: dict[str, _Kind] = {}
    edges: dict[str, _Kind] = {}
    for kind in kinds:
        if is_info and kind.entry.get("present_in_knowledge_graph") is False:
            continue
        relates = kind.relates(by_flag=is_info)
        if relates is None:
            continue
        if kind.label in nodes or kind.label in edges:
            raise InvalidInput(f"{where}, {kind.name}: another entry has the same label {kind.label}.")
        (edges if relates else nodes)[kind.label] = kind
    parents, ends = _Names(kinds), _Names(nodes.values(), others=True)
    entities = {label: kind.properties(parents) for label, kind in nodes.items()}
    relationships = {label: kind.relationship(parents, ends) for label, kind in edges.items()}
    return _checked(Known(entities, relationships), where)


@dataclass(frozen=True)
class _Kind:
    """One entry of a schema."""

    name: str
    entry: Mapping[str, Any]
    where: str

    @property
    def label(self) -> str:
        return pascal_case(self.name)

    def relates(self, *, by_flag: bool) -> bool | None:
        """Whether it is a relationship; None if it is not part of the graph. by_flag: `is_relationship` counts."""
        flag = self.entry.get("is_relationship")
        if by_flag and isinstance(flag, bool):
            return flag
        said = _first(self.entry.get("represented_as"))
        if said is None:
            return None
        if said not in ("node", "edge"):
            raise self._wrong("represented_as", f"must be node or edge, not {said!r}")
        has_ends = bool(self.entry.get("source") and self.entry.get("target"))
        return said == "edge" or (has_ends and any(word in self.name.lower() for word in _RELATIONS))

    def relationship(self, parents: _Names, nodes: _Names) -> Relationship:
        label = self.entry.get("label_as_edge")
        if label is not None and not (isinstance(label, str) and label.strip()):
            raise self._wrong("label_as_edge", f"must be a name, not {label!r}")
        ends = tuple(dict.fromkeys(product(self._ends("source", nodes), self._ends("target", nodes))))
        directed = not self._is_set("undirected") and self.entry.get("directed") is not False
        return Relationship(pascal_case(label or self.name), ends, self.properties(parents), directed)

    def _ends(self, key: str, nodes: _Names) -> list[str]:
        given = self.entry.get(key)
        names = cast(list[Any], given) if isinstance(given, list) else [] if given is None else [given]
        for name in names:
            if not isinstance(name, str) or not name.strip():
                raise self._wrong(key, f"must be a name or a list of names, not {name!r}")
        found = {name: nodes.find(name) for name in names}
        return [kind.label if kind else pascal_case(name) for name, kind in found.items()]

    def properties(self, parents: _Names) -> Mapping[str, str]:
        """Return its properties and those that it inherits, by BioCypher's rules: a parent's type of a property
        replaces its own, and what a parent excludes is excluded here too."""
        lineage: list[_Kind] = [self]
        while lineage[-1]._is_set("inherit_properties"):
            found = (parents.find(str(name)) for name in _listed(lineage[-1].entry.get("is_a")))
            parent = next((kind for kind in found if kind), None)
            if parent is None or parent in lineage:
                break
            lineage.append(parent)
        properties = {name: type for kind in lineage for name, type in kind._own_properties().items()}
        excluded = {str(name) for kind in lineage for name in _listed(kind.entry.get("exclude_properties"))}
        return {name: type for name, type in properties.items() if name not in excluded}

    def _own_properties(self) -> dict[str, str]:
        given = self.entry.get("properties")
        if given is None:
            return {}
        if isinstance(given, Mapping):
            return {str(name): _type(kind) for name, kind in cast(Mapping[Any, Any], given).items()}
        if isinstance(given, list):
            return {str(name): "" for name in cast(list[Any], given)}
        raise self._wrong("properties", f"must be a table of names and types, or a list of names, not {given!r}")

    def _is_set(self, key: str) -> bool:
        return str(self.entry.get(key)).lower() == "true"

    def _wrong(self, key: str, what: str) -> InvalidInput:
        return InvalidInput(f"{self.where}, {self.name}: {key} {what}.")


class _Names:
    """Finds kinds by name, as other entries write it: as a label, in another case, with underscores or spaces.

    others: also by the names of a kind in the input and in the ontology, as ends often have them.
    """

    def __init__(self, kinds: Iterable[_Kind], *, others: bool = False) -> None:
        self._kinds: tuple[dict[str, list[_Kind]], ...] = ({}, {}, {})
        for kind in kinds:
            keys = ("input_label", "label_in_input", "synonym_for") if others else ()
            synonyms = {bare(str(name)) for key in keys for name in _listed(kind.entry.get(key))}
            for table, names in zip(self._kinds, ({kind.label}, {bare(kind.name)}, synonyms), strict=True):
                for name in names:
                    table.setdefault(name, []).append(kind)

    def find(self, name: str) -> _Kind | None:
        """Return the only kind of this name; None if there is none. A name with a prefix, such as
        `known.sequence variant`, is also a kind that BioCypher splits by the prefixes of its ids."""
        for table, wanted in zip(self._kinds, (pascal_case(name), bare(name), bare(name)), strict=True):
            if len(found := table.get(wanted, [])) == 1:
                return found[0]
        _, dot, rest = name.partition(".")
        return self.find(rest) if dot else None


def _listed(value: Any) -> list[Any]:
    """Return the items of a list or the names of a table; a single value as a list of one."""
    if isinstance(value, list | Mapping):
        return list(cast(Iterable[Any], value))
    return [] if value is None else [value]


def _type(kind: Any) -> str:
    """Return the type of a property, which some schemas write in a table of its own; "" if there is none."""
    if isinstance(kind, Mapping):
        return _type(cast(Mapping[Any, Any], kind).get("type"))
    return "" if kind is None else str(kind)


def _first(value: Any) -> Any:
    """Return the first item of a list, as kinds with several sources have it; any other value unchanged."""
    listed = cast(list[Any], value) if isinstance(value, list) else []
    return listed[0] if listed else cast(Any, value)


def _checked(known: Known, where: str) -> Known:
    if not known.entities:
        raise InvalidInput(f"{where} has no entities: it describes no nodes.")
    return known


def schema_text(schema: GraphSchema) -> str:
    """Return the schema in words for a prompt: nodes and relationships with their properties; "" for an empty graph."""
    nodes = {node.label: typed(node.properties) for node in schema.nodes}
    edges = {drawn(a, edge.label, b): typed(edge.properties) for edge in schema.edges for a, b in edge.ends}
    parts = (("Nodes:", nodes), ("Relationships:", edges))
    return "\n".join(f"{head}\n{lines(described)}" for head, described in parts if described)


def lines(described: Mapping[str, str]) -> str:
    """Return a line for each name, with what is said of it."""
    return "\n".join(f"- {name}: {text}" if text else f"- {name}" for name, text in described.items())


def typed(properties: Mapping[str, str]) -> str:
    """Return properties with their types, such as "name (str), score (float)"."""
    return ", ".join(f"{name} ({kind})" if kind else name for name, kind in properties.items())
