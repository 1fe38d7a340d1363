"""Compares a query with the schema of its graph, before a database is asked.

It compares labels, relationship types, properties, and which labels a relationship connects in which direction. Names
that differ from the schema only in case, spaces or underscores are corrected, and so are a reversed arrow and a
property that is read from the wrong variable. Every other difference is a fault: a sentence that gives the nearest name
of the schema. Text that a database reads in another way than was meant is a fault, too. Errors that a database itself
reports are left to it (design/158). If the schema is not exact, so are properties and the ends of relationships.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mulligan.graphs._guard import Refused, Token, place, tokens
from mulligan.graphs._patterns import Edge, Named, Node, Pattern, Reader
from mulligan.graphs.protocol import EdgeKind, GraphSchema, NodeKind, bare, drawn, spelled

NEAR = 0.6
"""The likeness (`difflib`, 0 to 1) from which on a name of the schema is offered for one that is not there."""
LISTED = 12
"""The names that a fault lists if none is near."""
_SAME_CLAUSE = r"(?:(?!\b(?:MATCH|WITH|RETURN)\b).)*"
_USELESS_NULL_TEST = re.compile(
    rf"\bOPTIONAL MATCH {_SAME_CLAUSE}\bWHERE {_SAME_CLAUSE}(?<!\. )\b(\w+) IS NULL\b", re.IGNORECASE
)
"""A condition inside an OPTIONAL MATCH, which leaves out no row."""


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes:
        query: The query to run, with the corrections.
        changes: The corrections, a sentence each.
        faults: Differences that cannot be corrected safely, a sentence each. A query with faults cannot answer.
    """

    query: str
    changes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def check_query(query: str, schema: GraphSchema) -> Checked:
    """Compare the query with the schema. A query that cannot be read, or an empty schema, gives no faults."""
    if not schema.nodes:
        return Checked(query)
    try:
        query_tokens = tokens(query)
    except Refused:  # the guard says why
        return Checked(query)
    return _Comparison(query, query_tokens, schema).checked()


class _Comparison:
    """Compares one query with one schema, and collects the corrections.

    Attributes:
        _names: The corrected names, by the number of the token that each replaces.
        _turned: The relationships whose arrow is reversed.
        _new_variables: The variables to add, each by the number of the token that it follows.
        _labels, _types: The labels or types of each variable.
    """

    def __init__(self, query: str, query_tokens: Sequence[Token], schema: GraphSchema) -> None:
        self._query, self._tokens, self._schema = query, query_tokens, schema
        self._reader = Reader(query_tokens)
        self._nodes = {node.label: node for node in schema.nodes}
        self._edges = {edge.label: edge for edge in schema.edges}
        self._names: dict[int, str] = {}
        self._turned: list[Edge] = []
        self._new_variables: dict[int, str] = {}
        self._changes: list[str] = []
        self._faults: list[str] = []
        self._labels: dict[str, set[str]] = defaultdict(set)
        self._types: dict[str, set[str]] = defaultdict(set)

    def checked(self) -> Checked:
        self._patterns = patterns = list(self._reader.patterns())
        for pattern in patterns:
            self._read(pattern)
        self._compare_meaning()
        for pattern in patterns if self._schema.exact else ():
            for n, edge in enumerate(pattern.edges):
                self._compare_ends(pattern.nodes[n], edge, pattern.nodes[n + 1])
            self._compare_keys(pattern)
        if self._schema.exact:
            self._compare_properties()
        faults = tuple(dict.fromkeys(self._faults))
        return Checked(self._query if faults else self._corrected(), tuple(dict.fromkeys(self._changes)), faults)

    def _read(self, pattern: Pattern) -> None:
        """Note which labels and types each variable has, and compare them with the schema."""
        for node in pattern.nodes:
            labels = [self._name_in(self._nodes, name, "label") for name in node.labels]
            if node.variable:
                self._labels[node.variable].update(labels)
        for edge in pattern.edges:
            types = [self._name_in(self._edges, name, "relationship type") for name in edge.types]
            if edge.variable:
                self._types[edge.variable].update(types)

    def _compare_meaning(self) -> None:
        """Find what gives unintended rows: a label written as a variable, and a test for null that keeps every row."""
        for variable in sorted(self._labels.keys() & self._nodes.keys()):
            if not self._labels[variable]:
                self._faults.append(f"{variable} stands for any node there: write its label as (:{variable}).")
        for variable in sorted(self._types.keys() & self._edges.keys()):
            if not self._types[variable]:
                self._faults.append(f"{variable} stands for any relationship there: write its type as [:{variable}].")
        text = " ".join(token.text for token in self._tokens if token.kind != "string")
        if useless := _USELESS_NULL_TEST.search(text):
            self._faults.append(
                f"{useless[1]} IS NULL in OPTIONAL MATCH leaves out nothing. To find nodes that lack a relationship, "
                "use WHERE NOT EXISTS { MATCH (a)-[:TYPE]->(:Label) }."
            )

    def _name_in(self, names: Mapping[str, object], name: Named, what: str, of: str = "") -> str:
        """Return the name as the schema writes it. If it has no such name, note a fault and return the name itself."""
        if name.text in names:
            return name.text
        same = [known for known in names if bare(known) == bare(name.text)]
        if len(same) == 1:
            self._names[name.token] = same[0]
            self._changes.append(f"{what} {name.text} was written {same[0]}")
            return same[0]
        kinds = (*self._schema.nodes, *self._schema.edges)
        owners = [kind.label for kind in kinds if what == "property" and name.text in kind.properties]
        where = f"{name.text} is a property of {', '.join(owners)}. " if owners else ""
        line, column = place(self._query, self._tokens[name.token].at)
        missing = f"There is no {what} {name.text}{of} (line {line}, column {column})."
        self._faults.append(f"{missing} {where}{_nearest(name.text, names)}")
        return name.text

    def _labels_of(self, node: Node) -> set[str]:
        labels = {self._names.get(name.token, name.text) for name in node.labels}
        return labels or (set[str]() if node.negated else self._labels.get(node.variable, set[str]()))

    def _compare_ends(self, left: Node, edge: Edge, right: Node) -> None:
        kinds = [self._edges.get(self._names.get(name.token, name.text)) for name in edge.types]
        if not edge.exact or not kinds or None in kinds:
            return
        pairs = {pair for kind in kinds if kind for pair in kind.ends}
        first, second = self._labels_of(left), self._labels_of(right)
        if not pairs or (first | second) - self._nodes.keys():
            return
        forth, back = _connects(pairs, first, second), _connects(pairs, second, first)
        if {"right": forth, "left": back, "none": forth or back}[edge.arrow]:
            return
        types = "|".join(name.text for name in edge.types)
        if forth or back:
            self._turned.append(edge)
            self._changes.append(f"the arrow of {types} was turned: {_drawn(kinds)}")
        else:
            self._faults.append(f"{types} does not connect {_listed(first)} and {_listed(second)}: {_drawn(kinds)}.")

    def _compare_keys(self, pattern: Pattern) -> None:
        for node in pattern.nodes:
            for key in node.keys:
                self._compare_property(key, self._labels_of(node), self._nodes)
        for edge in pattern.edges:
            types = {self._names.get(name.token, name.text) for name in edge.types}
            for key in edge.keys:
                self._compare_property(key, types or self._types.get(edge.variable, set[str]()), self._edges)

    def _compare_properties(self) -> None:
        """Compare the properties that are read from a variable with known labels or types, as in g.name."""
        aliases = {
            self._tokens[n + 1].text
            for n, token in enumerate(self._tokens[:-1])
            if token.kind == "word" and token.text.lower() == "as" and self._reader.is_name(n + 1)
        }
        for n in range(2, len(self._tokens)):
            owner = self._tokens[n - 2].text
            is_read = self._reader.is_name(n) and self._reader.sign(n - 1) == "." and self._reader.is_name(n - 2)
            if not is_read or owner in aliases or self._reader.sign(n - 3) == "." or self._reader.sign(n + 1) == "(":
                continue
            key = Named(self._tokens[n].text, n)
            if self._moved(key, owner):
                continue
            if owner in self._labels:
                self._compare_property(key, self._labels[owner], self._nodes)
            elif owner in self._types:
                self._compare_property(key, self._types[owner], self._edges)

    def _moved(self, key: Named, owner: str) -> bool:
        """Read the property from another part of the query, if its variable lacks it and only that part has it.

        Returns whether it was moved.
        """
        own_kinds = self._labels.get(owner, set[str]()) | self._types.get(owner, set[str]())
        kinds: Mapping[str, NodeKind | EdgeKind] = {**self._nodes, **self._edges}
        if not own_kinds or any(name not in kinds or key.text in kinds[name].properties for name in own_kinds):
            return False
        having: dict[str | int, Edge | None] = {}
        for pattern in self._patterns:
            parts = [(node.variable, self._labels_of(node), None) for node in pattern.nodes if node.variable]
            parts += [
                (edge.variable, {self._names.get(name.token, name.text) for name in edge.types}, edge)
                for edge in pattern.edges
            ]
            for variable, names, edge in parts:
                if any(name in kinds and key.text in kinds[name].properties for name in names):
                    having[variable or (edge.start if edge else 0)] = edge
        if len(having) != 1:
            return False
        ((variable, edge),) = having.items()
        if edge is not None and not edge.variable:
            bracket = edge.start + (edge.arrow == "left") + 1
            taken = {token.text for token in self._tokens}
            variable = next(name for n in range(len(taken) + 1) if (name := f"r{n or ''}") not in taken)
            self._new_variables[bracket] = variable
            edge.variable = variable
            self._types[variable] = {self._names.get(name.token, name.text) for name in edge.types}
        self._names[key.token - 2] = str(variable)
        self._changes.append(f"{owner}.{key.text} was written {variable}.{key.text}, whose property it is")
        return True

    def _compare_property(self, key: Named, owners: Iterable[str], kinds: Mapping[str, NodeKind | EdgeKind]) -> None:
        """Compare a property with those of its owners, unless an owner is unknown or none has properties."""
        labels = sorted(owners)
        if not labels or any(owner not in kinds for owner in labels):
            return
        properties = dict.fromkeys(name for owner in labels for name in kinds[owner].properties)
        if properties:
            self._name_in(properties, key, "property", f" of {_listed(labels)}")

    def _corrected(self) -> str:
        """Return the query with all corrections, made from its end so that earlier offsets stay valid."""
        edits: list[tuple[int, int, str]] = []
        for n, name in self._names.items():
            token = self._tokens[n]
            length = len(token.text) + token.text.count("`") + 2 if token.kind == "quoted" else len(token.text)
            edits.append((token.at, length, spelled(name)))
        edits += [(self._tokens[n].at + 1, 0, variable) for n, variable in self._new_variables.items()]
        for edge in self._turned:
            first, last = self._tokens[edge.start], self._tokens[edge.end - 1]
            if edge.arrow == "left":
                edits += [(first.at, 1, ""), (last.at, 1, "->")]
            else:
                edits += [(first.at, 1, "<-"), (last.at, 1, "")]
        query = self._query
        for at, length, text in sorted(edits, reverse=True):
            query = query[:at] + text + query[at + length :]
        return query


def _connects(pairs: Iterable[tuple[str, str]], source: set[str], target: set[str]) -> bool:
    """Whether one of the pairs connects these labels; an unknown end fits any."""
    return any((not source or a in source) and (not target or b in target) for a, b in pairs)


def _drawn(kinds: Iterable[EdgeKind | None]) -> str:
    return ", ".join(dict.fromkeys(drawn(a, kind.label, b) for kind in kinds if kind for a, b in kind.ends))


def _listed(labels: Iterable[str]) -> str:
    return " or ".join(sorted(labels)) or "any node"


def _nearest(name: str, names: Iterable[str]) -> str:
    """Return a sentence with the nearest names, or with the first ones if none is near."""
    by_bare = {bare(known): known for known in names}
    near = difflib.get_close_matches(bare(name), by_bare, n=3, cutoff=NEAR)
    if near:
        return f"Nearest: {', '.join(by_bare[known] for known in near)}."
    available = sorted(by_bare.values())
    more = f" and {len(available) - LISTED} more" if len(available) > LISTED else ""
    return f"Available: {', '.join(available[:LISTED])}{more}."
