"""Reads the words of a question: values, kinds, relationships, numbers to compare with, an order, a negation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from mulligan.graphs.protocol import bare, is_number
from mulligan.graphs.question_checks import ASKS, NUMBERS, GraphQuestion, parts_of, shown_property
from mulligan.graphs.values import Link, is_common, is_of_date, stem

_EXISTENCE = """
    altogether anyone anybody belong belongs called come comes contain contains different ever exist exists include
    includes involve involves lie lies located named part please single someone somebody still take takes there whom
"""
"""Words that only say that something exists, beside the common ones."""
_MEANINGFUL = """
    both each either every last less more most neither nor only or other out over same than
"""
"""Common words that the query must account for."""
_SIGNS_BEFORE = {
    **dict.fromkeys(("at least", "since"), ">="),
    **dict.fromkeys(("at most", "until"), "<="),
    **dict.fromkeys(("more than", "greater than", "higher than", "over", "above", "after"), ">"),
    **dict.fromkeys(("less than", "fewer than", "lower than", "under", "below", "before"), "<"),
    "exactly": "=",
}
"""Words before a number, with the sign that they stand for."""
_SIGNS_AFTER = {
    **dict.fromkeys(("or more", "or later", "or higher", "or over"), ">="),
    **dict.fromkeys(("or less", "or fewer", "or earlier", "or lower"), "<="),
}
"""Words after a number, with the sign that they stand for."""
_ORDERS = {
    **dict.fromkeys(("highest", "largest", "biggest", "greatest", "most", "maximum", "latest"), " DESC"),
    **dict.fromkeys(("lowest", "smallest", "fewest", "least", "minimum", "earliest"), ""),
}
"""Words for the first of an order, with the direction of the order."""
_AUXILIARIES = frozenset(("do", "does", "did", "has", "have", "had", "by"))
"""Words that may stand before the one who does something, if the question asks for something else."""
_FUNCTIONS = {"average": "avg", "mean": "avg", "total": "sum"}
"""Words for what is computed from a property, with the function that computes it."""
_NUMBER = re.compile(r"\d+(\.\d+)?")
_ORDINALS = frozenset(("first", "second", "third", "last"))
"""Words for a position in an order, beside those that end in "est"."""
_ASKS_MORE = re.compile(r"\band (of |in |by |for )?(what|when|where|which|who|whom|whose|how)\b", re.IGNORECASE)
YEAR, DAY = re.compile(r"[12]\d{3}"), re.compile(r"\d{4}-\d\d-\d\d")


class QuestionWords:
    """The words of a question, each with its meaning for a query. A place is the index of a word.

    Attributes:
        texts: The texts that name something, each with the values that it may stand for.
        value_places: The places of these texts.
        verbs: The relationship types, by the places of the words that name them.
        joined: The kinds of which several nodes are named with "and" between them, with the number of nodes.
        kinds: The labels, by the places of the words that name them.
        numbers: The signs and numbers that something is compared with.
        counted: The kind whose nodes are counted for each node that is asked for; "".
        order, limit: The direction of an order, of which the first `limit` nodes are asked for; None without one.
        computed: The function that is computed from a property; "".
        negation: The place of the negating word; None without one.
    """

    def __init__(self, about: GraphQuestion) -> None:
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
        self.computed = _FUNCTIONS.get(self._one_of(_FUNCTIONS), "")
        negations = [at for at, word in enumerate(self.words) if about.says_no(word) and at not in self._read]
        self.negation = negations[0] if negations else None
        self._read.update(negations[:1])

    def unread(self) -> list[str] | None:
        """Return the words that the query does not use; None if more than the pattern would be left to choose."""
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
        used = {bare(stem(part)) for name in (*properties, *about.relations) if name for part in parts_of(name)}
        if about.superlative and self.order is None:
            return None
        unread = [
            at
            for at, (word, said) in enumerate(about.words)
            if not (at in self._read or bare(said) in used or word in ASKS or _is_small(word))
        ]
        asks = self.words[self.asked_place] if self.asked_place >= 0 else ""
        has_subject = (
            about.kind or about.property or self.value_asked_for or (asks in ("who", "whom", "what") and not unread)
        )
        if not has_subject or any(map(self._narrows, unread)) or any(is_of_date(self.words[at]) for at in unread):
            return None
        return [self.words[at] for at in unread]

    def _narrows(self, at: int) -> bool:
        """Whether an unused word may narrow the answer, as in "old lines", "the fastest" or "the line seven"."""
        before = self.words[max(at - 2, 0) : at]
        if before[:1] == ["the"] and at - 1 in self.kinds and not before[-1].endswith("s"):
            return True
        asked = self.about.places_of(self.value_asked_for.words) if self.value_asked_for else set[int]()
        word = self.words[at]
        return word.endswith("est") or word in _ORDINALS or at + 1 in self.kinds or at + 1 in asked

    @cached_property
    def _is_half_negated(self) -> bool:
        """Whether a relationship stands before the negating word and one of its values after it.

        As in "does it regulate without activating": the relationship exists, with another value.
        """
        labels_after = {
            link.label
            for link in self.about.links.found
            for at in self.about.places_of(link.words)
            if self.negation is not None and at > self.negation
        }
        return any(name in labels_after and at < (self.negation or 0) for at, name in self.verbs.items())

    @cached_property
    def asked_place(self) -> int:
        """The place of the word that asks."""
        return next((at for at, word in enumerate(self.words) if word in ASKS or word == "whom"), -1)

    @cached_property
    def first_type(self) -> str:
        """The relationship type that directly follows what the question asks for, as in "who directed"; ""."""
        for at in range(self.asked_place + 1, len(self.words)):
            if at in self.verbs:
                return self.verbs[at]
            if self.kinds.get(at, "") != self.about.kind or at in self.value_places or self.words[at] in _AUXILIARIES:
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
        """The property that is compared, ordered by or computed from; "".

        It is the one number that the question speaks of, or the one date, which is compared with years or days.
        """
        if self.counted or not (self.numbers or self.order is not None or self.computed):
            return ""
        said = dict.fromkeys(filter(None, (*self.about.properties_said, self.about.property)))
        with_days = any(DAY.fullmatch(amount) for _, amount in self.numbers)
        numeric = (name for name in said if any(is_number(kind) for kind in self.about.types_of(name)))
        found = [] if with_days else list(numeric)
        if not self.computed and all(YEAR.fullmatch(amount) or DAY.fullmatch(amount) for _, amount in self.numbers):
            found += filter(self.is_date, said)
        return found[0] if len(found) == 1 else ""

    def is_date(self, name: str) -> bool:
        return any(kind.upper() == "DATE" for kind in self.about.types_of(name))

    @cached_property
    def truths(self) -> list[str]:
        """The properties that the question speaks of and that are true or false."""
        said, types_of = self.about.properties_said, self.about.types_of
        return [name for name in said if any(kind.lower().startswith("bool") for kind in types_of(name))]

    @cached_property
    def value_asked_for(self) -> Link | None:
        """The value that says what is asked for, as in "which novels"; None without one."""
        if self.about.kind or self.about.property:
            return None
        skipped = ("all", "the", "many", *_FUNCTIONS)
        after = (at for at in range(self.asked_place + 1, len(self.words)) if self.words[at] not in skipped)
        first = next(after, -1)
        found = [link for text, some in self.texts.items() for link in some if first in self.about.places_of(text)]
        return found[0] if len(found) == 1 and not self.is_name(found[0]) else None

    def is_name(self, link: Link) -> bool:
        names = self.about.properties_of(link.label)
        return bool(names) and link.property == shown_property(names)

    def _joined_values(self) -> dict[str, int]:
        """Return the kinds of which several values are named with "and" between them, and the number of values."""
        numbers: dict[str, int] = {}
        places = ((min(self.about.places_of(text), default=0), text, links[0]) for text, links in self.texts.items())
        for (_, _, one), (_, _, other) in pairwise(sorted(places, key=lambda place: place[:2])):
            if self.is_name(one) and self.about.are_joined(one, other):
                numbers[one.label] = numbers.get(one.label, 1) + 1
        if numbers:
            self._read.update(at for at, word in enumerate(self.words) if word == "both")
        return numbers

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
        signs = {**_SIGNS_BEFORE, "between": ">="}
        for at, word in enumerate(self.words):
            if at in self._read:
                continue
            length, sign = next(((n, sign) for n in (2, 1) if (sign := signs.get(self._before(at, n)))), (0, ""))
            behind = _SIGNS_AFTER.get(" ".join(self.words[at + 1 : at + 3]), "")
            if word in NUMBERS and (sign or behind):
                word = str(NUMBERS.index(word))
            if _NUMBER.fullmatch(word) or DAY.fullmatch(word):
                end = at + 3 if behind else at + 1
                self._read.update(range(at - length, end))
                self.counted = self.kinds.get(end, "")
                yield behind or sign, word

    def _before(self, at: int, length: int) -> str:
        return " ".join(self.words[max(at - length, 0) : at])

    def _order(self) -> tuple[str | None, int]:
        word = self._one_of(_ORDERS)
        if not word:
            return None, 1
        at = self.words.index(word)
        self.counted = self.counted or (self.kinds.get(at + 1, "") if word in ("most", "fewest") else "")
        several = self._one_of(NUMBERS)
        if not several and len(self.numbers) == 1 and self.numbers[0][0] == "" and self.numbers[0][1].isdigit():
            return _ORDERS[word], int(self.numbers.pop()[1])
        return _ORDERS[word], NUMBERS.index(several) if several else 1

    def _one_of(self, words: Sequence[str] | dict[str, str]) -> str:
        """Return the first of these words in the question that was not read yet; "" without one."""
        places = [at for at, word in enumerate(self.words) if word in words and at not in self._read]
        self._read.update(places[:1])
        return self.words[places[0]] if places else ""


def _is_small(word: str) -> bool:
    """Whether a query need not account for the word."""
    return word in _EXISTENCE.split() or (is_common(word) and word not in _MEANINGFUL.split())
