"""Composes the query that a question's words ask for, where they leave no choice. No model is asked.

Each word of the question is read as a value, a kind of node, a relationship, a property, a number to compare with, or
one of the small words between these. Then patterns of nodes and relationships are tried. A pattern fits if it holds
everything that was read. If exactly one fits, it becomes the query; if none or several do, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Literal

from mulligan.graphs.protocol import bare, is_number, spelled
from mulligan.graphs.question_checks import ASKS, NOBODY, NUMBERS, Asked, literal, parts_of, shown_property
from mulligan.graphs.values import Link, is_common, is_of_date, stem

FAR = 3
"""The most relationships of a sketch."""
PATTERNS = 5000
"""The most patterns that are tried; a graph of so many kinds gets no sketch."""
UNREAD = 2
"""The most words without a place. Such a sketch is a hint, and no query to be run."""

_SMALL = """
    altogether anyone anybody belong belongs called come comes contain contains different ever exist exists include
    includes involve involves lie lies located named part please single someone somebody still take takes there whom
"""
"""Words that say nothing more than that there is something, beside the common ones."""
_TELLING = """
    both each either every last less more most neither nor only or other out over same than
"""
"""Common words that say something, so that each must have its place."""
_SIGNS = {
    **dict.fromkeys(("at least", "since"), ">="),
    **dict.fromkeys(("at most", "until"), "<="),
    **dict.fromkeys(("more than", "greater than", "higher than", "over", "above", "after"), ">"),
    **dict.fromkeys(("less than", "fewer than", "lower than", "under", "below", "before"), "<"),
    "exactly": "=",
}
"""Words before a number, and the sign that they say."""
_BEHIND = {
    **dict.fromkeys(("or more", "or later", "or higher", "or over"), ">="),
    **dict.fromkeys(("or less", "or fewer", "or earlier", "or lower"), "<="),
}
"""Words behind a number, and the sign that they say."""
_FIRST = {
    **dict.fromkeys(("highest", "largest", "biggest", "greatest", "most", "maximum", "latest"), " DESC"),
    **dict.fromkeys(("lowest", "smallest", "fewest", "least", "minimum", "earliest"), ""),
}
"""Words for the first of an order, with its direction."""
_HELPS = frozenset(("do", "does", "did", "has", "have", "had", "by"))
"""Words before the one that does something, when something else is asked for."""
_COMPUTED = {"average": "avg", "mean": "avg", "total": "sum"}
"""Words for what is computed of a property, with its function."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_PLACES = frozenset(("first", "second", "third", "last"))
"""Words for a place in an order, beside those that end in "est"."""
_ASKS_MORE = re.compile(r"\band (of |in |by |for )?(what|when|where|which|who|whom|whose|how)\b", re.IGNORECASE)
_YEAR, _DAY = re.compile(r"[12]\d{3}"), re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class Sketch:
    """A query for a question. unread: the words of the question that have no place in it."""

    query: str
    unread: tuple[str, ...] = ()


def sketch_of(about: Asked) -> Sketch | None:
    """Return the query that the words of the question ask for; None where they leave a choice, or say much more."""
    words = _Words(about)
    unread = words.unread()
    if unread is None or len(unread) > UNREAD or any(is_common(word) for word in unread):
        return None
    query = _Patterns(words).query()
    return Sketch(query, tuple(unread)) if query else None


class _Words:
    """What the words of a question say.

    Attributes:
        texts: What the question names, each with the values that it may be.
        joined: The kinds of which several nodes are named with "and" between, with their number.
        kinds: The places of kinds, with their labels.
        numbers: The numbers that something is compared with, each with its sign.
        counted: The kind whose nodes are counted for each of what is asked for.
        order: The direction of an order of which the first `limit` are asked for; None without one.
        computed: What is computed of a property.
        negation: The place of the word that negates.
    """

    def __init__(self, about: Asked) -> None:
        self.about, self.words = about, [word for word, _ in about.words]
        self.texts: dict[str, list[Link]] = {}
        for link in about.links.found:
            self.texts.setdefault(link.words, []).append(link)
        self.value_places = {at for text in self.texts for at in about.places_of(text)}
        self.verbs = dict(about.verbs)
        self._read = {*self.value_places, *self.verbs}
        self.joined = self._joined_values()
        self.kinds = dict(self._kinds())
        self.counted = ""
        self.numbers = list(self._numbers())
        self.order, self.limit = self._order()
        self.computed = _COMPUTED.get(self._one_of(_COMPUTED), "")
        negations = [at for at, word in enumerate(self.words) if about.says_no(word) and at not in self._read]
        self.negation = negations[0] if negations else None
        self._read.update(negations[:1])

    def unread(self) -> list[str] | None:
        """The words that have no place; None where more than the pattern would be left to choose."""
        about = self.about
        uses = [bool(self.numbers), self.order is not None, bool(self.computed)]
        if (
            sum(uses) > 1
            or about.strangers
            or about.links.left_out
            or self._is_half_negated
            or _ASKS_MORE.search(about.question)
            or (any(uses) and not (self.counted or self.amount))
        ):
            return None
        if len(self.numbers) > 1 and not (len(self.numbers) == 2 and "between" in self.words):
            return None  # which number is compared with what would be a choice
        if not about.kind and self.asked_place + 1 in about.doers:  # at which end they are would be a choice
            return None
        properties = [about.property, self.amount, *self.truths, *(link.property for link in about.links.found)]
        if set(about.properties_said) - set(properties):
            return None
        known = {bare(stem(part)) for name in (*properties, *about.relations) if name for part in parts_of(name)}
        if about.superlative and self.order is None:
            return None
        unread = [
            at
            for at, (word, said) in enumerate(about.words)
            if not (at in self._read or bare(said) in known or word in ASKS or _is_small(word))
        ]
        asks = self.words[self.asked_place] if self.asked_place >= 0 else ""
        is_told = (
            about.kind or about.property or self.value_asked_for or (asks in ("who", "whom", "what") and not unread)
        )
        if not is_told or any(map(self._narrows, unread)) or any(is_of_date(self.words[at]) for at in unread):
            return None
        return [self.words[at] for at in unread]

    def _narrows(self, at: int) -> bool:
        """Whether a word without a place is likely to leave something out, as in "old lines", "the fastest" or "the
        line seven"."""
        before = self.words[max(at - 2, 0) : at]
        if before[:1] == ["the"] and at - 1 in self.kinds and not before[-1].endswith("s"):
            return True
        asked = self.about.places_of(self.value_asked_for.words) if self.value_asked_for else set[int]()
        word = self.words[at]
        return word.endswith("est") or word in _PLACES or at + 1 in self.kinds or at + 1 in asked

    @cached_property
    def _is_half_negated(self) -> bool:
        """Whether a relationship is named before the word that negates and one of its values behind it, as in "does it
        regulate without activating": it is there, and has another value."""
        behind = {
            link.label
            for link in self.about.links.found
            for at in self.about.places_of(link.words)
            if self.negation is not None and at > self.negation
        }
        return any(name in behind and at < (self.negation or 0) for at, name in self.verbs.items())

    @cached_property
    def asked_place(self) -> int:
        """The place of the word that asks."""
        return next((at for at, word in enumerate(self.words) if word in ASKS or word == "whom"), -1)

    @cached_property
    def first_type(self) -> str:
        """The relationship type that the question says first of what it asks for, as in "who directed"; ""."""
        for at in range(self.asked_place + 1, len(self.words)):
            if at in self.verbs:
                return self.verbs[at]
            if self.kinds.get(at, "") != self.about.kind or at in self.value_places or self.words[at] in _HELPS:
                return ""
        return ""

    @cached_property
    def other_kinds(self) -> list[str]:
        """The kinds that the question names beside the one that it asks for."""
        named = list(self.kinds.values())
        if self.about.kind in named:
            named.remove(self.about.kind)
        return named

    @cached_property
    def amount(self) -> str:
        """The property that is compared, ordered by or computed of: the one number that the question speaks of, or the
        one date, which is compared with years or days."""
        if self.counted or not (self.numbers or self.order is not None or self.computed):
            return ""
        said = dict.fromkeys(filter(None, (*self.about.properties_said, self.about.property)))
        with_days = any(_DAY.fullmatch(amount) for _, amount in self.numbers)
        numeric = (name for name in said if any(is_number(kind) for kind in self.about.types_of(name)))
        found = [] if with_days else list(numeric)
        if not self.computed and all(_YEAR.fullmatch(amount) or _DAY.fullmatch(amount) for _, amount in self.numbers):
            found += filter(self.is_date, said)
        return found[0] if len(found) == 1 else ""

    def is_date(self, name: str) -> bool:
        return any(kind.upper() == "DATE" for kind in self.about.types_of(name))

    @cached_property
    def truths(self) -> list[str]:
        """The properties that the question speaks of, and that are true or false."""
        said, types_of = self.about.properties_said, self.about.types_of
        return [name for name in said if any(kind.lower().startswith("bool") for kind in types_of(name))]

    @cached_property
    def value_asked_for(self) -> Link | None:
        """The value that stands for what is asked for, as in "which novels"."""
        if self.about.kind or self.about.property:
            return None
        passed = ("all", "the", "many", *_COMPUTED)
        after = (at for at in range(self.asked_place + 1, len(self.words)) if self.words[at] not in passed)
        first = next(after, -1)
        found = [link for text, some in self.texts.items() for link in some if first in self.about.places_of(text)]
        return found[0] if len(found) == 1 and not self.is_name(found[0]) else None

    def is_name(self, link: Link) -> bool:
        names = self.about.properties_of(link.label)
        return bool(names) and link.property == shown_property(names)

    def _joined_values(self) -> dict[str, int]:
        """The kinds of which several values are named with "and" between, and the number of these."""
        found: dict[str, int] = {}
        places = ((min(self.about.places_of(text), default=0), text, links[0]) for text, links in self.texts.items())
        for (_, _, one), (_, _, other) in pairwise(sorted(places, key=lambda place: place[:2])):
            if self.is_name(one) and self.about.are_joined(one, other):
                found[one.label] = found.get(one.label, 1) + 1
        if found:
            self._read.update(at for at, word in enumerate(self.words) if word == "both")
        return found

    def _kinds(self) -> Iterator[tuple[int, str]]:
        kinds = {tuple(map(stem, parts_of(node.label))): node.label for node in self.about.schema.nodes}
        stems = [said for _, said in self.about.words]
        for at in range(len(stems)):
            for length in (3, 2, 1):
                places = range(at, at + length)
                if tuple(stems[at : at + length]) in kinds and not self._read.intersection(places):
                    self._read.update(places)
                    yield at, kinds[tuple(stems[at : at + length])]

    def _numbers(self) -> Iterator[tuple[str, str]]:
        signs = {**_SIGNS, "between": ">="}
        for at, word in enumerate(self.words):
            if at in self._read:
                continue
            length, sign = next(((n, sign) for n in (2, 1) if (sign := signs.get(self._before(at, n)))), (0, ""))
            behind = _BEHIND.get(" ".join(self.words[at + 1 : at + 3]), "")
            if word in NUMBERS and (sign or behind):
                word = str(NUMBERS.index(word))
            if _NUMBER.fullmatch(word) or _DAY.fullmatch(word):
                end = at + 3 if behind else at + 1
                self._read.update(range(at - length, end))
                self.counted = self.kinds.get(end, "")
                yield behind or sign, word

    def _before(self, at: int, length: int) -> str:
        return " ".join(self.words[max(at - length, 0) : at])

    def _order(self) -> tuple[str | None, int]:
        word = self._one_of(_FIRST)
        if not word:
            return None, 1
        at = self.words.index(word)
        self.counted = self.counted or (self.kinds.get(at + 1, "") if word in ("most", "fewest") else "")
        several = self._one_of(NUMBERS)
        if not several and len(self.numbers) == 1 and self.numbers[0][0] == "" and self.numbers[0][1].isdigit():
            return _FIRST[word], int(self.numbers.pop()[1])
        return _FIRST[word], NUMBERS.index(several) if several else 1

    def _one_of(self, words: Sequence[str] | dict[str, str]) -> str:
        """The only one of these words that the question has and that was not read yet; ""."""
        found = [at for at, word in enumerate(self.words) if word in words and at not in self._read]
        self._read.update(found[:1])
        return self.words[found[0]] if found else ""


@dataclass(frozen=True)
class _Node:
    """A node of a pattern, joined with an earlier one: outwards, if that one is the relationship's source."""

    label: str
    parent: int = -1
    type: str = ""
    outwards: bool = True
    values: tuple[Link, ...] = ()
    edge_values: tuple[Link, ...] = ()


_Tree = tuple[_Node, ...]
"""A pattern. The first node is what is asked for, `x`."""


class _Patterns:
    """The patterns in which everything that the words name has its place."""

    def __init__(self, words: _Words) -> None:
        self._words, self._about, self._schema = words, words.about, words.about.schema
        self._ends = {edge.label: edge.ends for edge in self._schema.edges}
        self._left = PATTERNS

    def query(self) -> str:
        """The query of the one pattern that fits, with as few relationships as can be; ""."""
        types = self._types_said()
        for implied in range(FAR + 1 - len(types)):
            trees: dict[object, _Tree] = {}
            for tree in self._whole(types, implied):
                trees.setdefault(_key(tree, 0), tree)
            if self._left < 0:
                return ""
            if found := [query for query in map(self._written, trees.values()) if query]:
                return found[0] if len(found) == 1 else ""
        return ""

    def _types_said(self) -> list[str]:
        """The relationship types that the question speaks of, or by a property that nothing else has."""
        owners = self._about.owners_of(self._words.amount)
        by_property = owners if len(owners) == 1 and self._about.is_type(owners[0]) else []
        said = [name for at, name in self._about.verbs if at not in self._words.value_places]
        more = (*self._about.relations, *by_property)
        said += dict.fromkeys(name for name in more if name not in said)
        for label, number in self._words.joined.items():
            ends = [name for name in said if any(label in pair for pair in self._ends[name])]
            said += ends * (number - 1) if len(ends) == 1 else []
        return said

    def _whole(self, types: Sequence[str], implied: int) -> Iterator[_Tree]:
        for root in self._roots():
            for tree in self._grown((_Node(root),), types, implied):
                yield from filter(self._is_whole, self._placed(tree))

    @cached_property
    def _sole_types(self) -> list[str]:
        """The relationship types that are the only one between two kinds, so that a question need not name them."""
        between: dict[frozenset[str], set[str]] = {}
        for edge in self._schema.edges:
            for pair in edge.ends:
                between.setdefault(frozenset(pair), set()).add(edge.label)
        return sorted(name for ends, names in between.items() if len(ends) == 2 and len(names) == 1 for name in names)

    def _roots(self) -> list[str]:
        """The kinds that may be asked for."""
        about, value = self._about, self._words.value_asked_for
        if about.kind or value:
            return [about.kind or value.label if value else about.kind]
        labels = [node.label for node in self._schema.nodes]
        if about.property:
            return [label for label in labels if about.property in about.properties_of(label)]
        return [label for label in labels if label not in self._words.other_kinds]

    def _grown(self, tree: _Tree, types: Sequence[str], implied: int) -> Iterator[_Tree]:
        """The pattern with these relationships more, and with so many others that need not be named."""
        self._left -= 1
        if not types and not implied and self._left >= 0:
            yield tree
        if self._left < 0:
            return
        for name in dict.fromkeys(types):
            others = list(types)
            others.remove(name)
            for grown in self._joined(tree, name):
                yield from self._grown(grown, others, implied)
        for name in self._sole_types if implied else ():
            for grown in self._joined(tree, name):
                yield from self._grown(grown, types, implied - 1)

    def _joined(self, tree: _Tree, name: str) -> Iterator[_Tree]:
        """The pattern with one relationship of this type more, at each node that may have it."""
        is_mutual = self._about.is_mutual(name)
        for source, target in self._ends[name]:
            for at, node in enumerate(tree):
                if source == node.label:
                    yield (*tree, _Node(target, at, name))
                if target == node.label and not is_mutual:
                    yield (*tree, _Node(source, at, name, outwards=False))

    def _placed(self, tree: _Tree) -> Iterator[_Tree]:
        """The pattern with each value at a node or a relationship that may have it."""
        for links in product(*self._words.texts.values()):
            places = [[at for at, node in enumerate(tree) if self._may_have(node, at, link)] for link in links]
            for chosen in product(*places):
                placed = list(tree)
                for link, at in zip(links, chosen, strict=True):
                    node = placed[at]
                    if link.label == node.type:
                        placed[at] = replace(node, edge_values=(*node.edge_values, link))
                    else:
                        placed[at] = replace(node, values=(*node.values, link))
                if not any(map(_is_double, placed)):
                    yield tuple(placed)

    def _may_have(self, node: _Node, at: int, link: Link) -> bool:
        if at or link.label != node.label:
            return link.label in (node.label, node.type)
        if self._about.property:
            return True
        return bool(self._about.kind or self._words.value_asked_for) and not self._words.is_name(link)

    def _is_whole(self, tree: _Tree) -> bool:
        """Whether all kinds that are named are there, each end is told, and each arrow points as the words say."""
        words, inner = self._words, {node.parent for node in tree}
        left = list(words.other_kinds)
        if words.value_asked_for and words.value_asked_for not in tree[0].values:
            return False
        if words.amount and len(self._places_of_amount(tree)) != 1:
            return False
        nobody = words.negation is not None and words.words[words.negation] in NOBODY
        repeated = [node.label for node in tree if not node.values]
        for at, node in enumerate(tree[1:], 1):
            if node.label in left:
                left.remove(node.label)
            elif at in inner and repeated.count(node.label) == 1:
                continue
            elif not (node.values or self._is_told(node) or nobody):
                return False
        mentioned = [label for label in left if label not in (node.label for node in tree)]
        first = words.first_type
        if mentioned or (first and not any(node.parent == 0 and node.type == first for node in tree)):
            return False
        for label in words.joined:  # what is joined by "and" is of one and the same
            parents = {node.parent for node in tree if node.label == label and any(map(words.is_name, node.values))}
            if len(parents) != 1:
                return False
        return all(self._points(tree, node) for node in tree[1:])

    def _is_told(self, node: _Node) -> bool:
        """Whether the question speaks of a node by its relationship: by a property of it, or by who does it."""
        return bool(node.edge_values) or self._has_amount(node.type) or node.type in self._about.doers.values()

    def _points(self, tree: _Tree, node: _Node) -> bool:
        way, nobody, parent = self._about.direction, self._about.nobody, tree[node.parent]
        source, target = (parent, node) if node.outwards else (node, parent)
        if node.label != parent.label:
            return True
        if way is not None and way.type == node.type:
            end = source if way.role == "source" else target
            return any(link.value in (way.value, *way.others) for link in end.values)
        return not nobody or nobody[0] != node.type or (source if nobody[1] == "source" else target) is node

    def _has_amount(self, label: str) -> bool:
        return label in self._about.owners_of(self._words.amount)

    def _places_of_amount(self, tree: _Tree) -> list[str]:
        """The variables that have the property: what is asked for before any other."""
        if self._has_amount(tree[0].label):
            return ["x"]
        nodes = [_name(at) for at, node in enumerate(tree) if at and self._has_amount(node.label)]
        return nodes + [f"r{at}" for at, node in enumerate(tree) if at and self._has_amount(node.type)]

    # --- writing -------------------------------------------------------------------------------------------------

    def _written(self, tree: _Tree) -> str:
        """The query of a pattern; "" where what is negated or counted cannot be told."""
        words, branches = self._words, [at for at, node in enumerate(tree) if node.parent == 0]
        what = "" if words.negation is None else self._negated(tree)
        excluded = self._excluded(tree, branches) if what == "branch" else None
        listed = [(_name(at), link) for at, node in enumerate(tree) for link in node.values if link.is_listed]
        places = self._places_of_amount(tree) if words.amount else []
        counted = [at for at in branches if tree[at].label == words.counted and not tree[at].values]
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
            tree = tuple(node if at else replace(node, values=()) for at, node in enumerate(tree))
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
        return f"MATCH {match}{where} {self._returned(tree, [_name(at) for at in counted])}"

    def _excluded(self, tree: _Tree, branches: Sequence[int]) -> int | None:
        """The branch that is negated: the only one that is mentioned behind the word that negates, or the only branch,
        if all is mentioned before that word. None if the words leave a choice."""
        start = self._words.negation or 0
        whole = {at: self._mentions(tree, _below(tree, at)) for at in branches}
        own = {at: self._mentions(tree, {at}) or whole[at] for at in branches}
        found = [at for at in branches if max(own[at], default=-1) > start]
        if not found and len(branches) == 1 and max(whole[branches[0]], default=0) < start:
            return branches[0]
        return found[0] if len(found) == 1 and all(own.values()) else None

    def _mentions(self, tree: _Tree, places: set[int]) -> set[int]:
        """The places of the words that mention these nodes: their values, their relationships and their kinds."""
        nodes = [tree[at] for at in places]
        links = [link for node in nodes for link in (*node.values, *node.edge_values)]
        found = {at for link in links for at in self._about.places_of(link.words)}
        found |= {at for at, name in self._about.verbs if name in (node.type for node in nodes)}
        kinds = {node.label for node in nodes} - {tree[0].label}
        return found | {at for at, label in self._words.kinds.items() if label in kinds}

    def _named_by(self, tree: _Tree) -> str:
        """The id by which the question names another node of the kind that it asks for; ""."""
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
        """What the word that negates is about: what the question says next; without that, all that there is."""
        words, start, root = self._words, self._words.negation, tree[0]
        assert start is not None, "something is negated"
        own = {at for link in root.values for at in self._about.places_of(link.words)}
        truths = {at for at, (_, said) in enumerate(self._about.words) if said in map(stem, words.truths)}
        for at in range(start + 1, len(words.words)):
            if at in own:
                return "value"
            if at in truths:
                return "truth"
            if at in words.value_places or at in words.verbs or words.kinds.get(at, root.label) != root.label:
                return "branch"
        if len(tree) > 1:
            return "branch"
        return "value" if len(root.values) == 1 else None

    def _lines(self, tree: _Tree, used: set[str], *, bare_root: bool = False) -> list[str]:
        """The pattern as the parts of a MATCH: the longest way from the first node, then what branches off it."""
        lines: list[str] = []

        def way(at: int) -> str:
            below, name = [n for n, node in enumerate(tree) if node.parent == at], _name(at)
            is_named = not at or name in used or len(below) > 1
            said = "(x)" if bare_root and not at else self._node(tree[at], name if is_named else "")
            lines.extend(f"({name}){joined(n)}" for n in below[1:])
            return said + (joined(below[0]) if below else "")

        def joined(at: int) -> str:
            node, variable = tree[at], f"r{at}" if f"r{at}" in used else ""
            left, right = ("-", "->") if node.outwards else ("<-", "-")
            if self._about.is_mutual(node.type):
                left, right = "-", "-"
            return f"{left}[{variable}:{spelled(node.type)}{_braces(node.edge_values)}]{right}{way(at)}"

        first = way(0)
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
            if (
                place == "x" and len(tree) > 1 and not words.numbers
            ):  # it may be joined in several ways, and counts once
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


def _is_small(word: str) -> bool:
    return word in _SMALL.split() or (is_common(word) and word not in _TELLING.split())


def _days(sign: str, when: str) -> Iterator[tuple[str, str]]:
    """What a comparison of a date with a year or a day is, in days."""
    if _DAY.fullmatch(when):
        yield sign, f"date('{when}')"
        return
    if sign in ("=", ">=", "<"):
        yield (">=" if sign == "=" else sign), f"date('{when}-01-01')"
    if sign in ("=", "<=", ">"):
        yield ("<=" if sign == "=" else sign), f"date('{when}-12-31')"


def _is_double(node: _Node) -> bool:
    """Whether a property has two values."""
    return any(len({link.property for link in links}) < len(links) for links in (node.values, node.edge_values))


def _below(tree: _Tree, branch: int) -> set[int]:
    """The places of a node of a pattern and of all that are joined with it further on."""
    found = {branch}
    for at, node in enumerate(tree):
        if node.parent in found:
            found.add(at)
    return found


def _part(tree: _Tree, places: set[int]) -> _Tree:
    """The pattern of the first node and of the nodes at these places alone."""
    kept = sorted({0, *places})
    return tuple(replace(tree[at], parent=kept.index(tree[at].parent) if at else -1) for at in kept)


def _key(tree: _Tree, at: int) -> tuple[object, ...]:
    """What is equal for two patterns that differ in their order alone."""
    node = tree[at]
    below = sorted(repr(_key(tree, n)) for n, other in enumerate(tree) if other.parent == at)
    return node.label, node.type, node.outwards, *_said(node.values), "-", *_said(node.edge_values), "-", *below


def _name(at: int) -> str:
    return f"y{at}" if at else "x"


def _said(links: Sequence[Link]) -> list[str]:
    return sorted(f"{spelled(link.property)}: {literal(link.value)}" for link in links)


def _braces(links: Sequence[Link]) -> str:
    said = _said([link for link in links if not link.is_listed])
    return f" {{{', '.join(said)}}}" if said else ""
