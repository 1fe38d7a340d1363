"""Reads the patterns of a query: its nodes and relationships, with their labels, types and keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mulligan.graphs._guard import Token


@dataclass(frozen=True)
class Named:
    """A name at its place in the query. at: the number of its token."""

    text: str
    at: int


@dataclass
class Node:
    """A node of a pattern. end: the number of the token after it. negated: its labels are no plain list."""

    end: int
    variable: str = ""
    labels: tuple[Named, ...] = ()
    keys: tuple[Named, ...] = ()
    negated: bool = False


@dataclass
class Edge:
    """A relationship of a pattern, from the token `start` to before `end`.

    arrow: where it points, as written from left to right. far: whether it may have more than one step.
    """

    start: int
    end: int
    arrow: Literal["right", "left", "none"]
    variable: str = ""
    types: tuple[Named, ...] = ()
    keys: tuple[Named, ...] = ()
    far: bool = False


@dataclass
class Pattern:
    """Nodes and the relationships between them: one node more than relationships."""

    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])


class Reader:
    """Reads the patterns of a query. What looks like a node and is none, such as `count(g)`, has no labels."""

    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = found

    def patterns(self) -> Iterator[Pattern]:
        here = 0
        while here < len(self._tokens):
            node = self._node(here)
            if node is None:
                here += 1
                continue
            pattern = Pattern([node])
            while (edge := self._edge(pattern.nodes[-1].end)) and (after := self._node(edge.end)):
                pattern.edges.append(edge)
                pattern.nodes.append(after)
            here = pattern.nodes[-1].end
            yield pattern

    def sign(self, n: int) -> str:
        return self._tokens[n].text if 0 <= n < len(self._tokens) and self._tokens[n].kind == "sign" else ""

    def is_name(self, n: int) -> bool:
        return 0 <= n < len(self._tokens) and self._tokens[n].kind in ("word", "quoted")

    def _node(self, n: int) -> Node | None:
        if self.sign(n) != "(":
            return None
        n, variable = self._variable(n + 1)
        n, labels, plain = self._names(n)
        n, keys = self._keys(n)
        if self.sign(n) != ")":
            return None
        return Node(n + 1, variable, labels if plain else (), keys, not plain)

    def _variable(self, n: int) -> tuple[int, str]:
        return (n + 1, self._tokens[n].text) if self.is_name(n) else (n, "")

    def _names(self, n: int) -> tuple[int, tuple[Named, ...], bool]:
        """The names after a colon, and whether they are a plain list, without "not" and brackets."""
        names: list[Named] = []
        plain = True
        if self.sign(n) != ":":
            return n, (), True
        while self.sign(n) in (":", "|", "&", "!", "(", "%"):
            plain = plain and self.sign(n) in (":", "|", "&")
            n += 1
            if self.is_name(n):
                names.append(Named(self._tokens[n].text, n))
                n += 1
            while not plain and self.sign(n) == ")" and self.sign(n + 1) in (")", "]", "|", "&", "{", "*"):
                n += 1
        return n, tuple(names), plain

    def _keys(self, n: int) -> tuple[int, tuple[Named, ...]]:
        """The keys of a map in braces; nested maps are passed over."""
        if self.sign(n) != "{":
            return n, ()
        keys: list[Named] = []
        depth = 0
        while n < len(self._tokens):
            sign = self.sign(n)
            depth += (sign in ("{", "[", "(")) - (sign in ("}", "]", ")"))
            if depth == 1 and self.is_name(n) and self.sign(n + 1) == ":" and self.sign(n - 1) in ("{", ","):
                keys.append(Named(self._tokens[n].text, n))
            n += 1
            if not depth:
                break
        return n, tuple(keys)

    def _edge(self, start: int) -> Edge | None:
        n = start
        left = self.sign(n) == "<"
        n += left
        if self.sign(n) != "-":
            return None
        n += 1
        edge = Edge(start, n, "left" if left else "none")
        if self.sign(n) == "[":
            n, edge.variable = self._variable(n + 1)
            n, edge.types, plain = self._names(n)
            edge.far = not plain
            if self.sign(n) == "*":
                edge.far = True
                while self.sign(n) in ("*", "..") or (n < len(self._tokens) and self._tokens[n].kind == "number"):
                    n += 1
            n, edge.keys = self._keys(n)
            if self.sign(n) != "]":
                return None
            n += 1
        if self.sign(n) != "-":
            return None
        n += 1
        if self.sign(n) == ">":
            edge.arrow = "none" if left else "right"
            n += 1
        edge.end = n
        return edge
