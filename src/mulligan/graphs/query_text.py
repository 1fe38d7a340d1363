"""Reads what a query says, from its text alone: its patterns, texts, amounts, and what it returns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mulligan.graphs._guard import Token, tokens
from mulligan.graphs._patterns import Edge, Pattern, Reader

_AGGREGATES = ("count", "sum", "avg", "min", "max", "collect")
_NEGATIONS = frozenset(("NOT", "EXCEPT", "NONE", "FALSE", "NULL"))


@dataclass(frozen=True)
class Returned:
    """What a query returns. variable, property: of `g.name`; aggregate: of `count(g)`."""

    variable: str = ""
    property: str = ""
    aggregate: str = ""


class QueryText:
    """What a query says, read from its tokens. Raises `Refused` for one that cannot be read."""

    def __init__(self, query: str) -> None:
        self._query, self._tokens = query, tokens(query)
        self._reader = Reader(self._tokens)
        self._patterns = list(self._reader.patterns())
        self.words = {token.text.upper() for token in self._tokens if token.kind == "word"}
        self.texts = [_unescaped(token.text) for token in self._tokens if token.kind == "string"]
        self.told = {token.text for token in self._tokens}
        self.types = {name.text for pattern in self._patterns for edge in pattern.edges for name in edge.types}
        self._labels: dict[str, set[str]] = defaultdict(set)
        for node in (node for pattern in self._patterns for node in pattern.nodes):
            self._labels[node.variable].update(name.text for name in node.labels)

    def labels_of(self, variable: str) -> set[str]:
        return self._labels.get(variable, set()) if variable else set()

    @cached_property
    def amounts(self) -> list[str]:
        """The numbers that something is compared with."""
        found: list[str] = []
        for n, token in enumerate(self._tokens):
            before = self._tokens[n - 1].text if n else ""
            if token.kind == "number" and before in ("=", "<", ">", ":") and re.fullmatch(r"\d+(\.\d+)?", token.text):
                found.append(token.text)
        return found

    @cached_property
    def negates(self) -> bool:
        unequal = any(self._reader.sign(n) == "<" and self._reader.sign(n + 1) == ">" for n in range(len(self._tokens)))
        zero = any(
            self._reader.sign(n) == "=" and self._tokens[n + 1].text == "0" for n in range(len(self._tokens) - 1)
        )
        return (
            unequal
            or zero
            or bool(self.words & _NEGATIONS)
            or any(text.lower() in ("no", "not", "none") for text in self.texts)
        )

    @cached_property
    def limit(self) -> int | None:
        at = next((n for n, t in enumerate(self._tokens) if t.kind == "word" and t.text.upper() == "LIMIT"), None)
        given = self._tokens[at + 1].text if at is not None and at + 1 < len(self._tokens) else ""
        return int(given) if given.isdigit() else None

    @cached_property
    def _return_tokens(self) -> list[Token]:
        places = [n for n, t in enumerate(self._tokens) if t.kind == "word" and t.text.upper() == "RETURN"]
        if not places:
            return []
        rest = self._tokens[places[-1] + 1 :]
        ends = (
            n for n, t in enumerate(rest) if t.kind == "word" and t.text.upper() in ("ORDER", "LIMIT", "SKIP", "UNION")
        )
        return rest[: next(ends, len(rest))]

    @cached_property
    def returns(self) -> str:
        """The text after RETURN."""
        some = self._return_tokens
        if not some:
            return "nothing"
        end = next((t.at for t in self._tokens if t.at > some[-1].at), len(self._query))
        return " ".join(self._query[some[0].at : end].split()).rstrip(";")

    @cached_property
    def returned(self) -> list[Returned]:
        items: list[list[Token]] = [[]]
        depth = 0
        for token in self._return_tokens:
            sign = token.text if token.kind == "sign" else ""
            depth += (sign in ("(", "[", "{")) - (sign in (")", "]", "}"))
            if sign == "," and not depth:
                items.append([])
            elif sign != ";":
                items[-1].append(token)
        return [self._item(item) for item in items if item]

    def _item(self, item: Sequence[Token]) -> Returned:
        first = item[0].text.lower() if item[0].kind == "word" else ""
        called = first if first in _AGGREGATES and len(item) > 1 and item[1].text == "(" else ""
        for n, token in enumerate(item):
            if token.kind in ("word", "quoted") and token.text in self._labels and token.text:
                dotted = n + 2 < len(item) and item[n + 1].text == "."
                return Returned(token.text, item[n + 2].text if dotted else "", called)
        return Returned(aggregate=called)

    def texts_at(self, *variables: str) -> list[str]:
        """The texts that nodes with these variables are compared with, in their braces or after a dot."""
        return [text for variable in variables for text in self._texts_by_variable.get(variable, ())]

    @cached_property
    def _texts_by_variable(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for pattern in self._patterns:
            for node in pattern.nodes:
                found[node.variable] += [t for key in node.keys for t in self._texts_near(key.at + 1)]
        for n in range(2, len(self._tokens)):
            if self._reader.sign(n - 1) == "." and self._tokens[n - 2].text in self._labels:
                found[self._tokens[n - 2].text] += self._texts_near(n + 1)
        return found

    def _texts_near(self, n: int) -> list[str]:
        """The texts in the few tokens from here on, before the next comparison."""
        found: list[str] = []
        for token in self._tokens[n : n + 12]:
            if token.kind == "string":
                found.append(_unescaped(token.text))
            elif token.text in ("}", ";", "{") or token.text.upper() in ("AND", "OR", "RETURN", "MATCH", "WITH"):
                break
        return found

    def role_of(self, type: str, value: str) -> Literal["source", "target", "either", ""]:
        """At which end of the relationship the node with this value stands; "" if that cannot be told."""
        for pattern in self._patterns:
            for n, edge in enumerate(pattern.edges):
                if edge.far or type not in {name.text for name in edge.types}:
                    continue
                sides = [self._has(pattern, place, value) for place in (n, n + 1)]
                if sides[0] != sides[1]:
                    return _role(edge, left=sides[0])
        return ""

    def _has(self, pattern: Pattern, place: int, value: str) -> bool:
        node = pattern.nodes[place]
        texts = [text for key in node.keys for text in self._texts_near(key.at + 1)]
        if node.variable:
            texts += self.texts_at(node.variable)
        return any(value.lower() == text.lower() for text in texts)


def _role(edge: Edge, *, left: bool) -> Literal["source", "target", "either"]:
    if edge.arrow == "none":
        return "either"
    return "source" if left == (edge.arrow == "right") else "target"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
