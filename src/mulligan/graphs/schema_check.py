"""Compares a query with the schema of its graph, before a database is asked.

Labels, relationship types, properties, and which labels a relationship connects, in which direction. Names that differ
from the schema only in case, spaces or underscores are corrected, and so are a reversed arrow and a property that is
read from the wrong variable; everything else is said in a sentence that names the nearest one. So is what a database
reads otherwise than it was meant. What a database itself reports is left to it (design/158); where the schema is not
exact, so are properties and what a relationship connects.
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
"""The names that a fault lists where none is near."""
_REST = r"(?:(?!\b(?:MATCH|WITH|RETURN)\b).)*"
_NEVER = re.compile(rf"\bOPTIONAL MATCH {_REST}\bWHERE {_REST}(?<!\. )\b(\w+) IS NULL\b", re.IGNORECASE)
"""A condition inside of OPTIONAL MATCH that leaves out no row."""


@dataclass(frozen=True)
class Checked:
    """What came of a check.

    Attributes:
        query: the query to run, with the corrections.
        changes: what was corrected, a sentence each.
        faults: what no correction is safe for, a sentence each. A query with faults cannot answer anything.
    """

    query: str
    changes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def check_query(query: str, schema: GraphSchema) -> Checked:
    """Compare the query with the schema. A query that cannot be read, or an empty schema, gives no faults."""
    if not schema.nodes:
        return Checked(query)
    try:
        found = tokens(query)
    except Refused:  # the guard says why
        return Checked(query)
    return _Comparison(query, found, schema).checked()


class _Comparison:
    """Compares one query with one schema, and collects corrections by the token that they are about."""

    def __init__(self, query: str, found: Sequence[Token], schema: GraphSchema) -> None:
        self._query, self._tokens, self._schema = query, found, schema
        self._reader = Reader(found)
        self._nodes = {node.label: node for node in schema.nodes}
        self._edges = {edge.label: edge for edge in schema.edges}
        self._right: dict[int, str] = {}
        self._turned: list[Edge] = []
        self._named: dict[int, str] = {}
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
            known = [self._known(name, self._nodes, "label") for name in node.labels]
            if node.variable:
                self._labels[node.variable].update(known)
        for edge in pattern.edges:
            known = [self._known(name, self._edges, "relationship type") for name in edge.types]
            if edge.variable:
                self._types[edge.variable].update(known)

    def _compare_meaning(self) -> None:
        """What gives rows that were not meant: a label as a variable, and a test for null that keeps everything."""
        for variable in sorted(self._labels.keys() & self._nodes.keys()):
            if not self._labels[variable]:
                self._faults.append(f"{variable} stands for any node there: write its label as (:{variable}).")
        for variable in sorted(self._types.keys() & self._edges.keys()):
            if not self._types[variable]:
                self._faults.append(f"{variable} stands for any relationship there: write its type as [:{variable}].")
        text = " ".join(token.text for token in self._tokens if token.kind != "string")
        if never := _NEVER.search(text):
            self._faults.append(
                f"{never[1]} IS NULL in OPTIONAL MATCH leaves out nothing. To find nodes that lack a relationship, use "
                "WHERE NOT EXISTS { MATCH (a)-[:TYPE]->(:Label) }."
            )

    def _known(self, name: Named, among: Mapping[str, object], what: str, of: str = "") -> str:
        """The name as the schema has it; where it has none, the name as it is, and a fault."""
        if name.text in among:
            return name.text
        same = [each for each in among if bare(each) == bare(name.text)]
        if len(same) == 1:
            self._right[name.at] = same[0]
            self._changes.append(f"{what} {name.text} was written {same[0]}")
            return same[0]
        every = (*self._schema.nodes, *self._schema.edges)
        owners = [kind.label for kind in every if what == "property" and name.text in kind.properties]
        where = f"{name.text} is a property of {', '.join(owners)}. " if owners else ""
        line, column = place(self._query, self._tokens[name.at].at)
        said = f"There is no {what} {name.text}{of} (line {line}, column {column})."
        self._faults.append(f"{said} {where}{_nearest(name.text, among)}")
        return name.text

    def _ends_of(self, node: Node) -> set[str]:
        labels = {self._right.get(name.at, name.text) for name in node.labels}
        return labels or (set[str]() if node.negated else self._labels.get(node.variable, set[str]()))

    def _compare_ends(self, left: Node, edge: Edge, right: Node) -> None:
        kinds = [self._edges.get(self._right.get(name.at, name.text)) for name in edge.types]
        if edge.far or not kinds or None in kinds:
            return
        pairs = {pair for kind in kinds if kind for pair in kind.ends}
        first, second = self._ends_of(left), self._ends_of(right)
        if not pairs or (first | second) - self._nodes.keys():
            return
        forth, back = _fits(pairs, first, second), _fits(pairs, second, first)
        written = {"right": forth, "left": back, "none": forth or back}[edge.arrow]
        if written:
            return
        if forth or back:
            self._turned.append(edge)
            self._changes.append(f"the arrow of {_types(edge)} was turned: {_drawn(kinds)}")
        else:
            self._faults.append(
                f"{_types(edge)} does not connect {_spelt(first)} and {_spelt(second)}: {_drawn(kinds)}."
            )

    def _compare_keys(self, pattern: Pattern) -> None:
        for node in pattern.nodes:
            for key in node.keys:
                self._property(key, self._ends_of(node), self._nodes)
        for edge in pattern.edges:
            types = {self._right.get(name.at, name.text) for name in edge.types}
            for key in edge.keys:
                self._property(key, types or self._types.get(edge.variable, set[str]()), self._edges)

    def _compare_properties(self) -> None:
        """Those that are read from a variable, as in g.name, where the query says what the variable is."""
        named_anew = {
            self._tokens[n + 1].text
            for n, token in enumerate(self._tokens[:-1])
            if token.kind == "word" and token.text.lower() == "as" and self._reader.is_name(n + 1)
        }
        for n in range(2, len(self._tokens)):
            owner = self._tokens[n - 2].text
            read = self._reader.is_name(n) and self._reader.sign(n - 1) == "." and self._reader.is_name(n - 2)
            if not read or owner in named_anew or self._reader.sign(n - 3) == "." or self._reader.sign(n + 1) == "(":
                continue
            key = Named(self._tokens[n].text, n)
            if self._is_elsewhere(key, owner):
                continue
            if owner in self._labels:
                self._property(key, self._labels[owner], self._nodes)
            elif owner in self._types:
                self._property(key, self._types[owner], self._edges)

    def _is_elsewhere(self, key: Named, owner: str) -> bool:
        """Whether exactly one other part of the query has a property that its variable lacks. It is read there then."""
        own = self._labels.get(owner, set[str]()) | self._types.get(owner, set[str]())
        kinds: Mapping[str, NodeKind | EdgeKind] = {**self._nodes, **self._edges}
        if not own or any(name not in kinds or key.text in kinds[name].properties for name in own):
            return False
        having: dict[str | int, Edge | None] = {}
        for pattern in self._patterns:
            parts = [(node.variable, self._ends_of(node), None) for node in pattern.nodes if node.variable]
            parts += [
                (edge.variable, {self._right.get(name.at, name.text) for name in edge.types}, edge)
                for edge in pattern.edges
            ]
            for variable, names, edge in parts:
                if any(name in kinds and key.text in kinds[name].properties for name in names):
                    having[variable or (edge.start if edge else 0)] = edge
        if len(having) != 1:
            return False
        ((variable, edge),) = having.items()
        if edge is not None and not edge.variable:
            opened = edge.start + (edge.arrow == "left") + 1
            taken = {token.text for token in self._tokens}
            variable = next(name for n in range(len(taken) + 1) if (name := f"r{n or ''}") not in taken)
            self._named[opened] = variable
            edge.variable = variable
            self._types[variable] = {self._right.get(name.at, name.text) for name in edge.types}
        self._right[key.at - 2] = str(variable)
        self._changes.append(f"{owner}.{key.text} was written {variable}.{key.text}, whose property it is")
        return True

    def _property(self, key: Named, owners: Iterable[str], kinds: Mapping[str, NodeKind | EdgeKind]) -> None:
        """Compare a property with those of its owners; nothing is said where an owner is unknown or has none."""
        named = sorted(owners)
        if not named or any(owner not in kinds for owner in named):
            return
        there = dict.fromkeys(name for owner in named for name in kinds[owner].properties)
        if there:
            self._known(key, there, "property", f" of {_spelt(named)}")

    def _corrected(self) -> str:
        """The query with all corrections, made from its end so that places before stay as they are."""
        edits: list[tuple[int, int, str]] = []
        for n, name in self._right.items():
            token = self._tokens[n]
            length = len(token.text) + token.text.count("`") + 2 if token.kind == "quoted" else len(token.text)
            edits.append((token.at, length, spelled(name)))
        edits += [(self._tokens[n].at + 1, 0, variable) for n, variable in self._named.items()]
        for edge in self._turned:
            first, last = self._tokens[edge.start], self._tokens[edge.end - 1]
            edits += (
                [(first.at, 1, ""), (last.at, 1, "->")]
                if edge.arrow == "left"
                else [(first.at, 1, "<-"), (last.at, 1, "")]
            )
        query = self._query
        for at, length, text in sorted(edits, reverse=True):
            query = query[:at] + text + query[at + length :]
        return query


def _fits(pairs: Iterable[tuple[str, str]], source: set[str], target: set[str]) -> bool:
    """Whether one of the pairs connects these labels; an unknown end fits any."""
    return any((not source or a in source) and (not target or b in target) for a, b in pairs)


def _types(edge: Edge) -> str:
    return "|".join(name.text for name in edge.types)


def _drawn(kinds: Iterable[EdgeKind | None]) -> str:
    return ", ".join(dict.fromkeys(drawn(a, kind.label, b) for kind in kinds if kind for a, b in kind.ends))


def _spelt(labels: Iterable[str]) -> str:
    return " or ".join(sorted(labels)) or "any node"


def _nearest(name: str, among: Iterable[str]) -> str:
    bybare = {bare(each): each for each in among}
    near = difflib.get_close_matches(bare(name), bybare, n=3, cutoff=NEAR)
    if near:
        return f"Nearest: {', '.join(bybare[each] for each in near)}."
    listed = sorted(bybare.values())
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return f"Available: {', '.join(listed[:LISTED])}{more}."
