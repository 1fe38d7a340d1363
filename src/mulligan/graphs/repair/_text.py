"""A query as tokens with their places: brackets, values, clauses; and edits of its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from mulligan.graphs._guard import tokens
from mulligan.graphs._patterns import Edge, Node, Pattern, Reader
from mulligan.graphs.protocol import spelled

OPEN, CLOSED = "([{", ")]}"
_CLAUSES = "MATCH OPTIONAL WHERE RETURN WITH ORDER LIMIT SKIP UNWIND UNION CALL GROUP HAVING SELECT"
CLAUSES = frozenset(_CLAUSES.split())
"""The words that begin a clause, or take the place of one in a query that is half SQL."""
_KEYWORDS = CLAUSES | {"AND", "OR", "XOR", "NOT", "IN", "AS", "BY", "DISTINCT", "CONTAINS", "STARTS", "ENDS", "IS"}
_LITERALS = ("string", "number", "parameter")
COMPARES = ("=", "<", ">")


@dataclass(frozen=True)
class Repair:
    """Edits, each a beginning, an end and the new text between them; and a sentence that says what was done."""

    edits: Sequence[tuple[int, int, str]]
    said: str


@dataclass(frozen=True)
class Part:
    """A node or relationship of a pattern: the number of its opening bracket, its variable ("": it has none), its
    labels or types."""

    open: int
    variable: str
    kinds: tuple[str, ...]
    is_edge: bool


class QueryTokens:
    """A query as tokens. Raises `Refused` for a text that has none."""

    def __init__(self, query: str) -> None:
        self.query, self.tokens = query, tokens(query)
        self._reader = Reader(self.tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def sign(self, n: int) -> str:
        return self._reader.sign(n)

    def is_name(self, n: int) -> bool:
        return self._reader.is_name(n)

    def kind(self, n: int) -> str:
        return self.tokens[n].kind if 0 <= n < len(self) else ""

    def text(self, n: int) -> str:
        return self.tokens[n].text if 0 <= n < len(self) else ""

    def word(self, n: int) -> str:
        """The word at an index in capitals; "" for what is a label, a property or a key, or no word."""
        if self.kind(n) != "word" or self.sign(n - 1) in (".", ":") or self.sign(n + 1) == ":":
            return ""
        return self.text(n).upper()

    def start(self, n: int) -> int:
        return self.tokens[n].at if n < len(self) else len(self.query)

    def end(self, n: int) -> int:
        """The offset after a token."""
        token = self.tokens[n]
        around = {"string": 2, "quoted": 2 + token.text.count("`"), "parameter": 1}.get(token.kind, 0)
        return token.at + len(token.text) + around

    def span(self, first: int, after: int) -> str:
        """The text of the tokens from `first` to before `after`."""
        after = min(after, len(self))
        return self.query[self.start(first) : self.end(after - 1)] if first < after else ""

    def is_tight(self, n: int) -> bool:
        """Whether nothing stands between a token and the next one."""
        return n + 1 < len(self) and self.end(n) == self.start(n + 1)

    def swap(self, first: int, last: int, text: str, said: str) -> Repair:
        """A text in place of the tokens from `first` to `last`."""
        return Repair([(self.start(first), self.end(last), text)], said)

    def put(self, n: int, text: str) -> tuple[int, int, str]:
        """The edit that puts a text before a token."""
        return self.start(n), self.start(n), text

    def ending(self, text: str) -> tuple[int, int, str]:
        """The edit that puts a text behind the query, before its semicolon."""
        end = self.end(len(self) - 1 - (self.sign(len(self) - 1) == ";"))
        return end, end, text

    def has(self, *words: str) -> bool:
        return next(self.words(*words), None) is not None

    def words(self, *words: str) -> Iterator[int]:
        return (n for n in range(len(self)) if self.word(n) in words)

    def signs(self, *signs: str) -> Iterator[int]:
        return (n for n in range(len(self)) if self.sign(n) and self.sign(n) in signs)

    # --- brackets and values ---------------------------------------------------------------------------------------

    @cached_property
    def _pairs(self) -> dict[int, int]:
        """Each bracket with the other one of its pair."""
        found: dict[int, int] = {}
        waiting: list[int] = []
        for n in self.signs(*OPEN, *CLOSED):
            if self.sign(n) in OPEN:
                waiting.append(n)
            elif waiting:
                found[n] = waiting.pop()
                found[found[n]] = n
        return found

    def other(self, n: int) -> int | None:
        """The other bracket of a pair."""
        return self._pairs.get(n)

    @cached_property
    def _around(self) -> list[int | None]:
        found: list[int | None] = []
        inside: list[int] = []
        for n in range(len(self)):
            if inside and self._pairs[inside[-1]] == n:
                inside.pop()
            found.append(inside[-1] if inside else None)
            if self._pairs.get(n, -1) > n:
                inside.append(n)
        return found

    def around(self, n: int) -> int | None:
        """The opening bracket that a token stands in."""
        return self._around[n] if 0 <= n < len(self) else None

    def value_before(self, n: int) -> int | None:
        """Where the value begins that ends before a token: a literal, a property, a call, a list, brackets."""
        at = n - 1
        if self.sign(at) in CLOSED and (opened := self.other(at)) is not None:
            at = opened
            is_call = self.sign(at) == "(" and self.kind(at - 1) == "word" and self.word(at - 1) not in _KEYWORDS
            return at - 1 if is_call else at
        if self.kind(at) in _LITERALS:
            return at
        if not self.is_name(at) or self.word(at) in _KEYWORDS:
            return None
        while self.sign(at - 1) == "." and self.is_name(at - 2):
            at -= 2
        return at

    def value_after(self, n: int) -> int | None:
        """The token after the value that begins at a token."""
        if self.sign(n) == "-" and self.kind(n + 1) == "number":
            return n + 2
        if self.kind(n) in _LITERALS:
            return n + 1
        if self.sign(n) in OPEN and (closed := self.other(n)) is not None:
            return closed + 1
        if not self.is_name(n) or self.word(n) in _KEYWORDS:
            return None
        at = n + 1
        while self.sign(at) == "." and self.is_name(at + 1):
            at += 2
        if self.sign(at) == "(" and (closed := self.other(at)) is not None:
            return closed + 1
        return at

    # --- clauses ---------------------------------------------------------------------------------------------------

    def is_clause(self, n: int) -> bool:
        return self.word(n) in CLAUSES and not (self.word(n) == "WITH" and self.word(n - 1) in ("STARTS", "ENDS"))

    def clause_end(self, n: int) -> int:
        """The token after the clause that a token stands in: the next clause of the same depth, or the end."""
        depth = 0
        for at in range(n + 1, len(self)):
            sign = self.sign(at)
            depth += (sign in OPEN and bool(sign)) - (sign in CLOSED and bool(sign))
            if depth < 0 or (not depth and (self.is_clause(at) or sign == ";")):
                return at
        return len(self)

    def is_in(self, n: int, *words: str) -> bool:
        """Whether a token stands in a clause that begins with one of these words."""
        clause = self.clause_of(n)
        return clause is not None and self.word(clause) in words

    def clause_of(self, n: int) -> int | None:
        """The word that begins the clause that a token stands in, in the same brackets or those around it."""
        depth = 0
        for at in range(n, -1, -1):
            sign = self.sign(at)
            depth += (sign in CLOSED and bool(sign)) - (sign in OPEN and bool(sign))
            if depth <= 0 and self.is_clause(at):
                return at
            depth = max(depth, 0)
        return None

    def condition(self, clause: int, condition: str) -> tuple[int, int, str]:
        """The edit that adds a condition to a MATCH."""
        end = self.clause_end(clause)
        if self.word(end) != "WHERE":
            return self.end(end - 1), self.end(end - 1), f" WHERE {condition}"
        after = self.clause_end(end)
        if any(self.word(n) in ("OR", "XOR") for n in range(end, after)):
            kept = self.span(end + 1, after)
            return self.start(end + 1), self.end(after - 1), f"{condition} AND ({kept})"
        return self.start(end + 1), self.start(end + 1), f"{condition} AND "

    def literal(self, n: int, text: str) -> str:
        """A text in the quotes of the string at a token."""
        quote = self.query[self.start(n)]
        return f"{quote}{text}{quote}"

    # --- patterns --------------------------------------------------------------------------------------------------

    @cached_property
    def patterns(self) -> list[Pattern]:
        return list(self._reader.patterns())

    def opening(self, node: Node) -> int:
        """The opening bracket of a node."""
        found = self.other(node.end - 1)
        assert found is not None, "a node has both brackets"
        return found

    def pattern_at(self, n: int) -> tuple[Pattern, int] | None:
        """The pattern with a relationship that begins at a token, and the token after it."""
        for pattern in self.patterns:
            if pattern.edges and self.opening(pattern.nodes[0]) == n:
                return pattern, pattern.nodes[-1].end
        return None

    @cached_property
    def parts(self) -> list[Part]:
        """The nodes with a label or variable, and the relationships in brackets."""
        found: list[Part] = []
        for pattern in self.patterns:
            nodes = [(self.opening(node), node) for node in pattern.nodes]
            places = [
                (next((n for n in range(edge.start, edge.end) if self.sign(n) == "["), None), edge)
                for edge in pattern.edges
            ]
            for n, part in (*nodes, *((n, edge) for n, edge in places if n is not None)):
                is_edge = isinstance(part, Edge)
                names = part.types if is_edge else part.labels
                found.append(Part(n, part.variable, tuple(name.text for name in names), is_edge))
        return found

    def variables(self, first: int, after: int) -> set[str]:
        """The variables of the patterns between two tokens."""
        return {part.variable for part in self.parts if first <= part.open < after and part.variable}

    def named(self, part: Part) -> tuple[str, list[tuple[int, int, str]]]:
        """The variable of a part, and the edit that gives it one where it has none."""
        if part.variable:
            return spelled(part.variable), []
        taken = {token.text for token in self.tokens}
        letter = "r" if part.is_edge else "x"
        name = next(name for n in range(len(self) + 1) if (name := f"{letter}{n or ''}") not in taken)
        return name, [(self.end(part.open), self.end(part.open), name)]

    def entries(self, part: Part) -> Iterator[tuple[int, int, tuple[int, int, str]]]:
        """Of the map of a part: the first token of each entry, the token after it, and the edit that takes it out."""
        opened = next((n for n in range(part.open, self.other(part.open) or 0) if self.sign(n) == "{"), None)
        end = self.other(opened) if opened is not None else None
        if opened is None or end is None:
            return
        commas = [n for n in range(opened, end) if self.sign(n) == "," and self.around(n) == opened]
        for before, after in zip((opened, *commas), (*commas, end), strict=True):
            if after == end and before == opened:
                cut = self.end(opened - 1), self.end(end)
            elif before == opened:
                cut = self.start(before + 1), self.start(after + 1)
            else:
                cut = self.start(before), self.end(after - 1)
            if after > before + 1:
                yield before + 1, after, (*cut, "")

    def changed(self, edits: Sequence[tuple[int, int, str]]) -> str:
        query = self.query
        for start, end, text in sorted(edits, reverse=True):
            query = query[:start] + text + query[end:]
        return query
