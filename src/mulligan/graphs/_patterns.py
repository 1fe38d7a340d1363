"""Reads the patterns of a query: its nodes and relationships, with their labels, types and keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mulligan.graphs._guard import Token


@dataclass(frozen=True)
class Named:
    """A name in a query. token: the number of its token."""

    text: str
    token: int


@dataclass
class Node:
    """A node of a pattern. end: the number of the token after it.

    negated: its labels are more than a plain list, such as `!A` or `(A|B)`; they are left out then.
    """

    end: int
    variable: str = ""
    labels: tuple[Named, ...] = ()
    keys: tuple[Named, ...] = ()
    negated: bool = False


@dataclass
class Edge:
    """A relationship of a pattern, from the token `start` to before the token `end`.

    arrow: where it points, as written from left to right. exact: it is one step of exactly these types; not so `[:!A]`
    and `[:A*]`.
    """

    start: int
    end: int
    arrow: Literal["right", "left", "none"]
    variable: str = ""
    types: tuple[Named, ...] = ()
    keys: tuple[Named, ...] = ()
    exact: bool = True


@dataclass
class Pattern:
    """Nodes and the relationships between them: one node more than relationships."""

    nodes: list[Node] = field(default_factory=list[Node])
    edges: list[Edge] = field(default_factory=list[Edge])


class Reader:
    """Reads the patterns of a query. Anything in brackets, such as `count(g)`, counts as a node, without labels."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        """The number of the token to read next."""

    def patterns(self) -> Iterator[Pattern]:
        start = 0
        while start < len(self._tokens):
            node = self._node(start)
            if node is None:
                start += 1
                continue
            pattern = Pattern([node])
            while (edge := self._edge(pattern.nodes[-1].end)) and (target := self._node(edge.end)):
                pattern.edges.append(edge)
                pattern.nodes.append(target)
            start = pattern.nodes[-1].end
            yield pattern

    def sign(self, number: int) -> str:
        """Return the sign at a token's number; "" for any other token or none."""
        in_query = 0 <= number < len(self._tokens)
        return self._tokens[number].text if in_query and self._tokens[number].kind == "sign" else ""

    def is_name(self, number: int) -> bool:
        return 0 <= number < len(self._tokens) and self._tokens[number].kind in ("word", "quoted")

    def _take(self, *signs: str) -> bool:
        """Pass over the next token if it is one of these signs, and return whether it was."""
        taken = self.sign(self._next) in signs
        self._next += taken
        return taken

    def _node(self, start: int) -> Node | None:
        self._next = start
        if not self._take("("):
            return None
        node = Node(start, self._variable())
        labels, plain = self._labels()
        node.labels, node.negated = labels if plain else (), not plain
        node.keys = self._keys()
        if not self._take(")"):
            return None
        node.end = self._next
        return node

    def _variable(self) -> str:
        if not self.is_name(self._next):
            return ""
        self._next += 1
        return self._tokens[self._next - 1].text

    def _labels(self) -> tuple[tuple[Named, ...], bool]:
        """Return the names after a colon, and whether they are a plain list, without "!", "%" and brackets."""
        names: list[Named] = []
        plain, depth = True, 0
        if self.sign(self._next) != ":":
            return (), True
        while (sign := self.sign(self._next)) in (":", "|", "&", "!", "(", "%"):
            self._next += 1
            plain = plain and sign in (":", "|", "&")
            depth += sign == "("
            if self.is_name(self._next):
                names.append(Named(self._tokens[self._next].text, self._next))
                self._next += 1
            while depth and self._take(")"):
                depth -= 1
        return tuple(names), plain

    def _keys(self) -> tuple[Named, ...]:
        """Return the keys of a map in braces, without those of maps inside it."""
        keys: list[Named] = []
        if self.sign(self._next) != "{":
            return ()
        depth = 0
        while self._next < len(self._tokens):
            token, sign = self._next, self.sign(self._next)
            depth += (sign in ("{", "[", "(")) - (sign in ("}", "]", ")"))
            if (
                depth == 1
                and self.is_name(token)
                and self.sign(token + 1) == ":"
                and self.sign(token - 1) in ("{", ",")
            ):
                keys.append(Named(self._tokens[token].text, token))
            self._next += 1
            if not depth:
                break
        return tuple(keys)

    def _edge(self, start: int) -> Edge | None:
        self._next = start
        left = self._take("<")
        if not self._take("-"):
            return None
        edge = Edge(start, start, "left" if left else "none")
        if self._take("["):
            edge.variable = self._variable()
            edge.types, edge.exact = self._labels()
            if self._take("*"):
                edge.exact = False
                while self._take("*", "..") or self._take_number():
                    pass
            edge.keys = self._keys()
            if not self._take("]"):
                return None
        if not self._take("-"):
            return None
        if self._take(">"):
            edge.arrow = "none" if left else "right"
        edge.end = self._next
        return edge

    def _take_number(self) -> bool:
        taken = self._next < len(self._tokens) and self._tokens[self._next].kind == "number"
        self._next += taken
        return taken
