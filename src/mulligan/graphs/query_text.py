"""Reads a query's patterns, texts, numbers and returned items from its text alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from mulligan.graphs._guard import Token, tokens
from mulligan.graphs._patterns import Node, Reader

_AGGREGATES = ("count", "sum", "avg", "min", "max", "collect")
_NEGATIONS = frozenset(("NOT", "EXCEPT", "NONE", "FALSE", "NULL"))
_NUMBER = re.compile(r"\d+(\.\d+)?")


@dataclass(frozen=True)
class Returned:
    """An item after RETURN: the variable and property in `g.name`, the variable and aggregate in `count(g)`."""

    variable: str = ""
    property: str = ""
    aggregate: str = ""


class QueryText:
    """A query, read from its tokens. Raises `Refused` for one that cannot be read.

    Attributes:
        words: The words in capitals, such as MATCH.
        texts: The strings.
        token_texts: The texts of all tokens.
        types: The relationship types of its patterns.
    """

    def __init__(self, query: str) -> None:
        self._query, self._tokens = query, tokens(query)
        self._reader = Reader(self._tokens)
        self._patterns = list(self._reader.patterns())
        self.words = {token.text.upper() for token in self._tokens if token.kind == "word"}
        self.texts = [_unescaped(token.text) for token in self._tokens if token.kind == "string"]
        self.token_texts = {token.text for token in self._tokens}
        self.types = {name.text for pattern in self._patterns for edge in pattern.edges for name in edge.types}
        self._labels: dict[str, set[str]] = defaultdict(set)
        for node in (node for pattern in self._patterns for node in pattern.nodes):
            self._labels[node.variable].update(name.text for name in node.labels)

    def labels_of(self, variable: str) -> set[str]:
        return self._labels.get(variable, set()) if variable else set()

    @cached_property
    def amounts(self) -> list[str]:
        """The numbers that something is compared with."""
        return [
            token.text
            for before, token in pairwise(self._tokens)
            if token.kind == "number" and before.text in ("=", "<", ">", ":") and _NUMBER.fullmatch(token.text)
        ]

    @cached_property
    def negates(self) -> bool:
        """Whether the query excludes something: by a negation, by <>, by = 0, or by a text such as "no"."""
        signs = [(self._reader.sign(n), n + 1) for n in range(len(self._tokens) - 1)]
        unequal = any(sign == "<" and self._reader.sign(after) == ">" for sign, after in signs)
        zero = any(sign == "=" and self._tokens[after].text == "0" for sign, after in signs)
        if unequal or zero or self.words & _NEGATIONS:
            return True
        return any(text.lower() in ("no", "not", "none") for text in self.texts)

    @cached_property
    def limit(self) -> int | None:
        """The number after the first LIMIT; None without one."""
        after = (other.text for one, other in pairwise(self._tokens) if _is_word(one, "LIMIT"))
        number = next(after, "")
        return int(number) if number.isdigit() else None

    @cached_property
    def _return_tokens(self) -> list[Token]:
        """The tokens between the last RETURN and the end of its items."""
        returns = [n for n, token in enumerate(self._tokens) if _is_word(token, "RETURN")]
        if not returns:
            return []
        rest = self._tokens[returns[-1] + 1 :]
        ends = (n for n, token in enumerate(rest) if _is_word(token, "ORDER", "LIMIT", "SKIP", "UNION"))
        return rest[: next(ends, len(rest))]

    @cached_property
    def returns(self) -> str:
        """The text of the returned items; "nothing" without any."""
        items = self._return_tokens
        if not items:
            return "nothing"
        end = next((token.at for token in self._tokens if token.at > items[-1].at), len(self._query))
        return " ".join(self._query[items[0].at : end].split()).rstrip(";")

    @cached_property
    def returned(self) -> list[Returned]:
        """The returned items."""
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
        aggregate = first if first in _AGGREGATES and len(item) > 1 and item[1].text == "(" else ""
        for n, token in enumerate(item):
            if token.kind in ("word", "quoted") and token.text in self._labels and token.text:
                has_property = n + 2 < len(item) and item[n + 1].text == "."
                return Returned(token.text, item[n + 2].text if has_property else "", aggregate)
        return Returned(aggregate=aggregate)

    @cached_property
    def _texts_by_variable(self) -> Mapping[str, list[str]]:
        """The texts that each node is compared with, in its braces or after a dot, by its variable."""
        texts: dict[str, list[str]] = defaultdict(list)
        for pattern in self._patterns:
            for node in pattern.nodes:
                texts[node.variable] += [text for key in node.keys for text in self._texts_from(key.token + 1)]
        for n in range(2, len(self._tokens)):
            if self._reader.sign(n - 1) == "." and self._tokens[n - 2].text in self._labels:
                texts[self._tokens[n - 2].text] += self._texts_from(n + 1)
        return texts

    def _texts_from(self, n: int) -> list[str]:
        """Return the texts in the next twelve tokens, up to the next comparison or clause."""
        texts: list[str] = []
        for token in self._tokens[n : n + 12]:
            if token.kind == "string":
                texts.append(_unescaped(token.text))
            elif token.text in ("}", ";", "{") or token.text.upper() in ("AND", "OR", "RETURN", "MATCH", "WITH"):
                break
        return texts

    def role_of(self, type: str, value: str) -> Literal["source", "target", "either", ""]:
        """Return at which end of a relationship of this type the node with this value is; "" if unknown."""
        for pattern in self._patterns:
            for n, edge in enumerate(pattern.edges):
                if not edge.exact or type not in {name.text for name in edge.types}:
                    continue
                left, right = (self._has(node, value) for node in pattern.nodes[n : n + 2])
                if left == right:
                    continue
                if edge.arrow == "none":
                    return "either"
                return "source" if left == (edge.arrow == "right") else "target"
        return ""

    def _has(self, node: Node, value: str) -> bool:
        texts = [text for key in node.keys for text in self._texts_from(key.token + 1)]
        if node.variable:
            texts += self._texts_by_variable.get(node.variable, ())
        return any(value.lower() == text.lower() for text in texts)


def _is_word(token: Token, *words: str) -> bool:
    return token.kind == "word" and token.text.upper() in words


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
