"""Composes the query that a question's words ask for, if only one query fits them. No model is asked.

Each word of the question is read as a value, a kind of node, a relationship, a property, a number to compare with, or
one of the small words between these. Then patterns of nodes and relationships are tried. A pattern fits if it holds
everything that was read. If exactly one fits, it becomes the query; otherwise there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal

from mulligan.graphs.protocol import spelled
from mulligan.graphs.question_checks import NOBODY, GraphQuestion, literal, shown_property
from mulligan.graphs.question_words import DAY, QuestionWords
from mulligan.graphs.values import Link, is_common, stem

MAX_RELATIONSHIPS = 3
"""The most relationships of a sketch."""
MAX_PATTERNS = 5000
"""The most patterns that are tried. A graph with more kinds than that allows gets no sketch."""
MAX_UNREAD = 2
"""The most words that the sketch does not use. A sketch that leaves out a word is a hint and is not run."""


@dataclass(frozen=True)
class Sketch:
    """A query for a question. unread: the words of the question that it does not use."""

    query: str
    unread: tuple[str, ...] = ()


def sketch_of(about: GraphQuestion) -> Sketch | None:
    """Return the one query that fits the words of the question; None if they leave a choice or say much more."""
    words = QuestionWords(about)
    unread = words.unread()
    if unread is None or len(unread) > MAX_UNREAD or any(is_common(word) for word in unread):
        return None
    query = _Patterns(words).query()
    return Sketch(query, tuple(unread)) if query else None


@dataclass(frozen=True)
class _Node:
    """A node of a pattern and the relationship that joins it to an earlier node.

    Attributes:
        parent: The index of the earlier node; -1 for the first one.
        type: The type of the relationship.
        outwards: Whether the earlier node is the relationship's source.
    """

    label: str
    parent: int = -1
    type: str = ""
    outwards: bool = True
    values: tuple[Link, ...] = ()
    edge_values: tuple[Link, ...] = ()


_Tree = tuple[_Node, ...]
"""A pattern. The first node, `x`, is the one that the question asks for."""


class _Patterns:
    """Finds the patterns that hold everything that the words name, and writes their queries."""

    def __init__(self, words: QuestionWords) -> None:
        self._words, self._about, self._schema = words, words.about, words.about.schema
        self._ends = {edge.label: edge.ends for edge in self._schema.edges}
        self._patterns_left = MAX_PATTERNS

    def query(self) -> str:
        """Return the query of the only pattern that fits, with as few relationships as possible; "" without one."""
        types = self._named_types()
        for implied in range(MAX_RELATIONSHIPS + 1 - len(types)):
            trees: dict[object, _Tree] = {}
            for tree in self._fitting(types, implied):
                trees.setdefault(_identity(tree, 0), tree)
            if self._patterns_left < 0:
                return ""
            if queries := [query for query in map(self._written, trees.values()) if query]:
                return queries[0] if len(queries) == 1 else ""
        return ""

    def _named_types(self) -> list[str]:
        """Return the relationship types that the question names, itself or by a property that nothing else has."""
        owners = self._about.owners_of(self._words.amount)
        by_property = owners if len(owners) == 1 and self._about.is_type(owners[0]) else []
        said = [name for index, name in self._about.verbs if index not in self._words.value_places]
        more = (*self._about.relations, *by_property)
        said += dict.fromkeys(name for name in more if name not in said)
        for label, number in self._words.joined.items():
            ends = [name for name in said if any(label in pair for pair in self._ends[name])]
            said += ends * (number - 1) if len(ends) == 1 else []
        return said

    def _fitting(self, types: Sequence[str], implied: int) -> Iterator[_Tree]:
        """Yield the patterns that fit. implied: the number of relationships that the question does not name."""
        for root in self._roots():
            for tree in self._grown((_Node(root),), types, implied):
                yield from filter(self._fits, self._with_values(tree))

    @cached_property
    def _sole_types(self) -> list[str]:
        """The types that are the only one between two kinds, so that a question need not name them."""
        between: dict[frozenset[str], set[str]] = {}
        for edge in self._schema.edges:
            for pair in edge.ends:
                between.setdefault(frozenset(pair), set()).add(edge.label)
        return sorted(name for ends, names in between.items() if len(ends) == 2 and len(names) == 1 for name in names)

    def _roots(self) -> list[str]:
        """Return the kinds that the question may ask for."""
        about, value = self._about, self._words.value_asked_for
        if about.kind or value:
            return [about.kind or value.label if value else about.kind]
        labels = [node.label for node in self._schema.nodes]
        if about.property:
            return [label for label in labels if about.property in about.properties_of(label)]
        return [label for label in labels if label not in self._words.other_kinds]

    def _grown(self, tree: _Tree, types: Sequence[str], implied: int) -> Iterator[_Tree]:
        """Yield the pattern with further relationships of these types, and with this number of implied ones."""
        self._patterns_left -= 1
        if not types and not implied and self._patterns_left >= 0:
            yield tree
        if self._patterns_left < 0:
            return
        for name in dict.fromkeys(types):
            others = list(types)
            others.remove(name)
            for larger in self._extended(tree, name):
                yield from self._grown(larger, others, implied)
        for name in self._sole_types if implied else ():
            for larger in self._extended(tree, name):
                yield from self._grown(larger, types, implied - 1)

    def _extended(self, tree: _Tree, name: str) -> Iterator[_Tree]:
        """Yield the pattern with one more relationship of this type, at each node that may have it."""
        is_mutual = self._about.is_mutual(name)
        for source, target in self._ends[name]:
            for index, node in enumerate(tree):
                if source == node.label:
                    yield (*tree, _Node(target, index, name))
                if target == node.label and not is_mutual:
                    yield (*tree, _Node(source, index, name, outwards=False))

    def _with_values(self, tree: _Tree) -> Iterator[_Tree]:
        """Yield the pattern with its values, each at a node or relationship that may have it, in all ways."""
        for links in product(*self._words.texts.values()):
            places = [[index for index, node in enumerate(tree) if self._may_have(node, index, link)] for link in links]
            for chosen in product(*places):
                placed = list(tree)
                for link, index in zip(links, chosen, strict=True):
                    node = placed[index]
                    if link.label == node.type:
                        placed[index] = replace(node, edge_values=(*node.edge_values, link))
                    else:
                        placed[index] = replace(node, values=(*node.values, link))
                if not any(map(_is_double, placed)):
                    yield tuple(placed)

    def _may_have(self, node: _Node, index: int, link: Link) -> bool:
        if index or link.label != node.label:
            return link.label in (node.label, node.type)
        if self._about.property:
            return True
        return bool(self._about.kind or self._words.value_asked_for) and not self._words.is_name(link)

    def _fits(self, tree: _Tree) -> bool:
        """Whether the pattern has all named kinds, the question speaks of each end, and each arrow fits its words."""
        words, inner = self._words, {node.parent for node in tree}
        left = list(words.other_kinds)
        if words.value_asked_for and words.value_asked_for not in tree[0].values:
            return False
        if words.amount and len(self._places_of_amount(tree)) != 1:
            return False
        nobody = words.negation is not None and words.words[words.negation] in NOBODY
        repeated = [node.label for node in tree if not node.values]
        for index, node in enumerate(tree[1:], 1):
            if node.label in left:
                left.remove(node.label)
            elif index in inner and repeated.count(node.label) == 1:
                continue
            elif not (node.values or self._is_mentioned(node) or nobody):
                return False
        mentioned = [label for label in left if label not in (node.label for node in tree)]
        first = words.first_type
        if mentioned or (first and not any(node.parent == 0 and node.type == first for node in tree)):
            return False
        for label in words.joined:  # nodes joined by "and" belong to the same node
            parents = {node.parent for node in tree if node.label == label and any(map(words.is_name, node.values))}
            if len(parents) != 1:
                return False
        return all(self._direction_fits(tree, node) for node in tree[1:])

    def _is_mentioned(self, node: _Node) -> bool:
        """Whether the question mentions the node by a property of its relationship, or by a word for who does it."""
        return bool(node.edge_values) or self._has_amount(node.type) or node.type in self._about.doers.values()

    def _direction_fits(self, tree: _Tree, node: _Node) -> bool:
        direction, nobody, parent = self._about.direction, self._about.nobody, tree[node.parent]
        source, target = (parent, node) if node.outwards else (node, parent)
        if node.label != parent.label:
            return True
        if direction is not None and direction.type == node.type:
            end = source if direction.role == "source" else target
            return any(link.value in (direction.value, *direction.others) for link in end.values)
        return not nobody or nobody[0] != node.type or (source if nobody[1] == "source" else target) is node

    def _has_amount(self, label: str) -> bool:
        return label in self._about.owners_of(self._words.amount)

    def _places_of_amount(self, tree: _Tree) -> list[str]:
        """Return the variables that have the amount: `x` alone if it has it, else all others."""
        if self._has_amount(tree[0].label):
            return ["x"]
        nodes = [_name(index) for index, node in enumerate(tree) if index and self._has_amount(node.label)]
        return nodes + [f"r{index}" for index, node in enumerate(tree) if index and self._has_amount(node.type)]

    # --- writing -------------------------------------------------------------------------------------------------

    def _written(self, tree: _Tree) -> str:
        """Return the query of a pattern; "" if it is unclear what is negated or counted."""
        words, branches = self._words, [index for index, node in enumerate(tree) if node.parent == 0]
        what = "" if words.negation is None else self._negated(tree)
        excluded = self._excluded(tree, branches) if what == "branch" else None
        listed = [(_name(index), link) for index, node in enumerate(tree) for link in node.values if link.is_listed]
        places = self._places_of_amount(tree) if words.amount else []
        counted = [index for index in branches if tree[index].label == words.counted and not tree[index].values]
        if words.counted and (len(counted) != 1 or what):
            return ""
        if what is None or (what and listed) or (what == "branch" and (excluded is None or places not in ([], ["x"]))):
            return ""
        conditions = [f"{literal(link.value)} IN {name}.{spelled(link.property)}" for name, link in listed]
        if what == "value":
            if len(tree[0].values) != 1 or words.truths:
                return ""
            (link,) = tree[0].values
            conditions.append(f"x.{spelled(link.property)} <> {literal(link.value)}")
            tree = tuple(node if index else replace(node, values=()) for index, node in enumerate(tree))
        for name in words.truths:
            conditions.append(f"{'NOT ' if what == 'truth' else ''}x.{spelled(name)}")
            if name not in self._about.properties_of(tree[0].label):
                return ""
        if words.numbers and not words.counted:
            (place,) = places
            conditions.append(self._compared(f"{place}.{spelled(words.amount)}"))
        used = {*map(_name, counted), *places, *(name for name, _ in listed)}
        if excluded is not None:
            below = _below(tree, excluded)
            pattern = self._lines(_part(tree, below), set(), bare_root=True)
            conditions.append(f"NOT EXISTS {{ MATCH {', '.join(pattern)} }}")
            tree = _part(tree, {*range(len(tree))} - below)
        match = ", ".join(self._lines(tree, used))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"MATCH {match}{where} {self._returned(tree, [_name(index) for index in counted])}"

    def _excluded(self, tree: _Tree, branches: Sequence[int]) -> int | None:
        """Return the index of the negated branch; None if the words leave a choice.

        It is the only branch that is mentioned after the negating word, or the only branch if all of it is mentioned
        before that word.
        """
        start = self._words.negation or 0
        whole = {index: self._mentions(tree, _below(tree, index)) for index in branches}
        own = {index: self._mentions(tree, {index}) or whole[index] for index in branches}
        found = [index for index in branches if max(own[index], default=-1) > start]
        if not found and len(branches) == 1 and max(whole[branches[0]], default=0) < start:
            return branches[0]
        return found[0] if len(found) == 1 and all(own.values()) else None

    def _mentions(self, tree: _Tree, places: set[int]) -> set[int]:
        """Return the places of the words that mention these nodes, by value, relationship or kind."""
        nodes = [tree[index] for index in places]
        links = [link for node in nodes for link in (*node.values, *node.edge_values)]
        found = {index for link in links for index in self._about.places_of(link.words)}
        found |= {index for index, name in self._about.verbs if name in (node.type for node in nodes)}
        kinds = {node.label for node in nodes} - {tree[0].label}
        return found | {index for index, label in self._words.kinds.items() if label in kinds}

    def _named_by(self, tree: _Tree) -> str:
        """Return the id by which the question names another node of the kind that it asks for; "" without one."""
        others = (node for node in tree[1:] if node.label == tree[0].label)
        names = [link.property for node in others for link in node.values if link.property.lower().endswith("id")]
        return names[0] if names else ""

    def _compared(self, what: str) -> str:
        numbers = self._words.numbers
        tests = [(sign or "=", amount) for sign, amount in numbers]
        if len(numbers) == 2:
            tests = [(">=", numbers[0][1]), ("<=", numbers[1][1])]
        if self._words.is_date(self._words.amount):
            tests = [test for sign, when in tests for test in _days(sign, when)]
        return " AND ".join(f"{what} {sign} {amount}" for sign, amount in tests)

    def _negated(self, tree: _Tree) -> Literal["branch", "value", "truth"] | None:
        """Return what the negating word is about: what the question mentions next, or else the only thing possible."""
        words, start, root = self._words, self._words.negation, tree[0]
        assert start is not None, "called only for a question with a negation"
        own = {index for link in root.values for index in self._about.places_of(link.words)}
        truths = {index for index, (_, said) in enumerate(self._about.words) if said in map(stem, words.truths)}
        for index in range(start + 1, len(words.words)):
            if index in own:
                return "value"
            if index in truths:
                return "truth"
            if index in words.value_places or index in words.verbs or words.kinds.get(index, root.label) != root.label:
                return "branch"
        if len(tree) > 1:
            return "branch"
        return "value" if len(root.values) == 1 else None

    def _lines(self, tree: _Tree, used: set[str], *, bare_root: bool = False) -> list[str]:
        """Return the pattern as the parts of a MATCH: a path from the first node, then the branches off it."""
        lines: list[str] = []

        def path_from(index: int) -> str:
            below, name = [n for n, node in enumerate(tree) if node.parent == index], _name(index)
            is_named = not index or name in used or len(below) > 1
            node_text = "(x)" if bare_root and not index else self._node(tree[index], name if is_named else "")
            lines.extend(f"({name}){step_to(n)}" for n in below[1:])
            return node_text + (step_to(below[0]) if below else "")

        def step_to(index: int) -> str:
            node, variable = tree[index], f"r{index}" if f"r{index}" in used else ""
            left, right = ("-", "->") if node.outwards else ("<-", "-")
            if self._about.is_mutual(node.type):
                left, right = "-", "-"
            return f"{left}[{variable}:{spelled(node.type)}{_braces(node.edge_values)}]{right}{path_from(index)}"

        first = path_from(0)
        return [first, *sorted(lines)]

    def _node(self, node: _Node, name: str) -> str:
        return f"({name}:{spelled(node.label)}{_braces(node.values)})"

    def _returned(self, tree: _Tree, counted: Sequence[str]) -> str:
        words, names = self._words, self._about.properties_of(tree[0].label)
        asked = self._about.property
        shows = f"x.{spelled(asked or self._named_by(tree) or shown_property(names))}" if names else "x"
        kept, amount = "", "n"
        if counted:
            kept = f"WITH x, count(DISTINCT {counted[0]}) AS n "
            kept += f"WHERE {self._compared('n')} " if words.numbers else ""
        elif words.amount:
            place = self._places_of_amount(tree)[0]
            amount = f"{place}.{spelled(words.amount)}"
            if place == "x" and len(tree) > 1 and not words.numbers:  # several matches of one node count once
                kept = "WITH DISTINCT x "
            elif place != "x" and words.order is not None:
                kept, amount = f"WITH x, {'max' if words.order else 'min'}({amount}) AS n ", "n"
        if words.computed:
            return f"{kept}RETURN {words.computed}({amount})"
        if words.order is not None:
            return f"{kept}RETURN {shows} ORDER BY {amount}{words.order} LIMIT {words.limit}"
        if self._about.counts:
            return f"{kept}RETURN count(DISTINCT x)"
        is_one = asked and len(tree) == 1 and any(map(words.is_name, tree[0].values))
        return f"{kept}RETURN {shows}" if is_one else f"{kept}RETURN DISTINCT {shows}"


def _days(sign: str, when: str) -> Iterator[tuple[str, str]]:
    """Yield a comparison of a date with a year or a day as comparisons with days."""
    if DAY.fullmatch(when):
        yield sign, f"date('{when}')"
        return
    if sign in ("=", ">=", "<"):
        yield (">=" if sign == "=" else sign), f"date('{when}-01-01')"
    if sign in ("=", "<=", ">"):
        yield ("<=" if sign == "=" else sign), f"date('{when}-12-31')"


def _is_double(node: _Node) -> bool:
    """Whether a property of the node or its relationship has two values."""
    return any(len({link.property for link in links}) < len(links) for links in (node.values, node.edge_values))


def _below(tree: _Tree, branch: int) -> set[int]:
    """Return the indexes of a node and of all nodes below it."""
    below = {branch}
    for index, node in enumerate(tree):
        if node.parent in below:
            below.add(index)
    return below


def _part(tree: _Tree, places: set[int]) -> _Tree:
    """Return the pattern with only the first node and the nodes at these indexes."""
    kept = sorted({0, *places})
    return tuple(replace(tree[index], parent=kept.index(tree[index].parent) if index else -1) for index in kept)


def _identity(tree: _Tree, index: int) -> tuple[object, ...]:
    """Return a value that is equal for patterns that differ only in the order of their nodes."""
    node = tree[index]
    below = sorted(repr(_identity(tree, n)) for n, other in enumerate(tree) if other.parent == index)
    return node.label, node.type, node.outwards, *_texts_of(node.values), "-", *_texts_of(node.edge_values), "-", *below


def _name(index: int) -> str:
    return f"y{index}" if index else "x"


def _texts_of(links: Sequence[Link]) -> list[str]:
    return sorted(f"{spelled(link.property)}: {literal(link.value)}" for link in links)


def _braces(links: Sequence[Link]) -> str:
    said = _texts_of([link for link in links if not link.is_listed])
    return f" {{{', '.join(said)}}}" if said else ""
