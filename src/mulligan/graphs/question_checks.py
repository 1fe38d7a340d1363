"""Compares a query and its rows with the words of the question, without a model.

No rule proves an answer right. Each rule finds one way in which it is wrong, from the question's words, the schema and
the values that the question names, and returns a sentence. The same reading of the question gives hints before a draft.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from mulligan.graphs._guard import Refused
from mulligan.graphs.protocol import EdgeKind, GraphSchema, bare
from mulligan.graphs.query_text import QueryText
from mulligan.graphs.values import Link, Links, is_common, shown, stem
from mulligan.plugins import Json

REACH = 5
"""The number of words after "which" or "how many" in which the asked kind or property is looked for."""
SIMILAR = 4
"""The number of first letters that a text of the query and a word of the question share if they are about the same."""

_WORD = re.compile(r"\w(?:[\w.\-/'’]*\w)?")
_COUNTS = re.compile(r"\b(how many|number of|count)\b", re.I)
_GROUPS = re.compile(r"\b(each|every|per|by)\b", re.I)
_AMOUNTS = re.compile(
    r"\b(how|number|count|total|sum|average|mean|median|length|size|score|share|percent\w*|fraction|most|fewest|"
    r"maximum|minimum|many|much)\b",
    re.I,
)
_NEGATES = re.compile(
    r"\b(not|no|nobody|none|nothing|without|except|excluding|never|neither|nor|lacks?|lacking)\b|n['’]t\b", re.I
)
_SUPERLATIVE = re.compile(
    r"\b(longest|shortest|largest|smallest|biggest|highest|lowest|greatest|heaviest|lightest|oldest|newest|latest|"
    r"earliest|youngest|strongest|weakest|most|fewest|least|(?<=the )(?:first|last)|maximum|minimum)\b",
    re.I,
)
_SEVERAL = re.compile(r"\b(\d+|two|three|four|five|ten|at (?:most|least))\b", re.I)
NOBODY = frozenset(("nobody", "nothing", "none"))
"""Words that negate and stand for the end of a relationship."""
_WHETHER = re.compile(r"\s*(is|are|was|were|does|do|did|can|has|have)\b", re.I)
ASKS = ("which", "what", "who", "whose", "many", "list", "name", "find", "show", "give")
"""Words that ask for a kind or a property."""
_ASKS_FOR_PROPERTY = ("when", "where", "how")
"""Words that ask for the property that the question speaks of."""
_DETERMINERS = ("a", "an", "any", "her", "his", "its", "the", "their")
"""Words that begin another noun phrase."""
_BE = ("is", "are", "was", "were")
_SORTS = ("kind", "sort", "type")
"""Property names that add nothing to a kind: "kinds of cargo" are cargo."""
_WEAK = frozenset(
    ("has", "have", "is", "are", "was", "of", "in", "on", "at", "by", "to", "with", "for", "from", "part")
)
_CONDITION = frozenset(("have", "has", "had", "with", "whose"))
"""Words that a condition follows: what is asked for stands before them."""
_BEFORE_BY = frozenset(("both", "directly", "either", "neither", "not", "only"))
"""Words that may stand between a passive verb and its "by"."""
_ONE_WAY = frozenset(map(stem, ["cover", "end", "fill", "load", "replace", "start", "substitute", "swap"]))
"""Verbs that take "with" and hold in one direction only."""
_DESCRIBES = re.compile(r"(ed|ing|est|able|ible|self|selves)$|^(alone|called|named|next|present|still|there|too)$")
"""Words after a kind that describe it and are not a name."""
_COMMAS = re.compile(r"(?<=\d),(?=\d{3})")
_QUOTES = "\"'`“"
_DIGITS = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")
_DAY = re.compile(r"(\d{4})-\d\d-\d\d.*")
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""The numbers in words, each at its own index."""


@dataclass(frozen=True)
class Direction:
    """The direction that the question gives a relationship between nodes of one kind.

    The node with `value` is the end `role`, and so are those with `others`, which the question joins to it by "and".
    """

    type: str
    label: str
    property: str
    value: str
    role: Literal["source", "target"]
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        node, other = f"(:{self.label} {{{self.property}: {literal(self.value)}}})", f"(:{self.label})"
        first, second = (node, other) if self.role == "source" else (other, node)
        return f"{first}-[:{self.type}]->{second}"


@dataclass(frozen=True)
class GraphQuestion:
    """A question with the schema of its graph and the values of the graph that it names."""

    question: str
    schema: GraphSchema
    links: Links = Links()

    def objections(self, query: str, rows: Sequence[Mapping[str, Json]]) -> list[str]:
        """Return what is wrong with these rows as an answer, a sentence each; none if the query cannot be read."""
        try:
            text = QueryText(query)
        except Refused:
            return []
        rules = (self._check_values, self._check_kinds, self._check_relations, self._check_conditions)
        sentences = [sentence for rule in rules for sentence in rule(text)]
        return list(dict.fromkeys([*sentences, *self._check_rows(text, rows)]))

    def passed_over(self, query: str) -> list[str]:
        """Return a sentence for each word of the question, such as DNA, that no value equals and the query ignores.

        They are doubts and not objections, since the word may be an ordinary one. Identifiers and names in quotes are
        objections, and so are all such words if the query asks for something that the question does not name.
        """
        try:
            return [_not_asked_for(name) for name in self._words_passed_over(QueryText(query))]
        except Refused:
            return []

    # --- what the question says ------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> bool:
        return bool(_COUNTS.search(self.question)) and not self.superlative

    @cached_property
    def negates(self) -> bool:
        return bool(_NEGATES.search(self.unnamed))

    @cached_property
    def superlative(self) -> bool:
        return bool(_SUPERLATIVE.search(re.sub(r"at (?:most|least)", "", self.unnamed)))

    @cached_property
    def numbers(self) -> list[str]:
        """The numbers of the question in digits, outside of the values that it names."""
        return [said.replace(",", "") for said in _DIGITS.findall(self.unnamed)]

    @cached_property
    def kind(self) -> str:
        """The label that is asked for; "" if unknown."""
        return self._asked[0]

    @cached_property
    def property(self) -> str:
        """The property that is asked for, if the question asks for no label."""
        return self._asked[1]

    @cached_property
    def strangers(self) -> tuple[str, ...]:
        """The texts of the question that look like names but are not values of the graph.

        They are texts that no value equals, texts that begin like a value and continue differently, and unknown words
        after a kind, as in "the drug imatinib".
        """
        found = [*self.links.unknown, *(() if self.links.left_out else self._lower_case_names())]
        for link in self.links.found:
            if link.value.lower().startswith(f"{link.words.lower()} "):
                after = re.search(rf"{re.escape(link.words)}\s+(\w[\w\-]*)", self.question)
                if after and not is_common(after[1]) and stem(after[1]) not in self._schema_stems:
                    found.append(f"{link.words} {after[1]}")
        return tuple(dict.fromkeys(found))

    def _lower_case_names(self) -> Iterator[str]:
        """Yield the lower-case words after "the" and a kind that can only be names."""
        labels = {tuple(map(stem, parts_of(node.label))): node.label for node in self.schema.nodes}
        stems = [said for _, said in self.words]
        taken = {at for link in self.links.found for at in self.places_of(link.words)} | {at for at, _ in self.verbs}
        for at in range(1, len(stems)):
            length = _named(stems[at:], labels)[1]
            behind = at + length
            if self.words[at - 1][0] != "the" or not length or behind >= len(stems) or behind in taken:
                continue
            (kind, _), (word, said) = self.words[behind - 1], self.words[behind]
            is_other = is_common(word) or said in self._schema_stems or self.says_no(word) or word in NUMBERS
            if not kind.endswith("s") and word.isalpha() and not is_other and not _DESCRIBES.search(word):
                yield from [word] if _has_words(self.question, word) else []

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relationship types that a word of the question names."""
        return tuple(dict.fromkeys(name for _, name in self.verbs))

    @cached_property
    def direction(self) -> Direction | None:
        """The direction of a relationship between nodes of one kind, if the question names it and one of its ends."""
        places = ((self._place(link.words), link) for link in self.links.found if link.label in self._between_one_kind)
        ends = sorted(((place, link) for place, link in places if place is not None), key=lambda end: end[0])
        roles = {role for place, _ in ends if (role := self._role_at(place))}
        if len(roles) != 1 or not all(self.are_joined(one, other) for (_, one), (_, other) in pairwise(ends)):
            return None
        (type, role), (first, *others) = roles.pop(), [link for _, link in ends]
        return Direction(type, first.label, first.property, first.value, role, tuple(link.value for link in others))

    def are_joined(self, one: Link, other: Link) -> bool:
        """Return whether two values of one property have only "and" and common words between them."""
        starts = self._place(one.words), self._place(other.words)
        if None in starts or (one.label, one.property) != (other.label, other.property):
            return False
        between = [word for word, _ in self.words][
            max(self.places_of(one.words)) + 1 : min(self.places_of(other.words))
        ]
        return "and" in between and all(map(is_common, between))

    @cached_property
    def nobody(self) -> tuple[str, Literal["source", "target"]] | None:
        """The relationship between nodes of one kind, and its end at which the question says there is nobody."""
        places = [at for at, (word, _) in enumerate(self.words) if word in NOBODY]
        return self._role_at(places[0]) if len(places) == 1 else None

    @cached_property
    def _between_one_kind(self) -> set[str]:
        """The labels whose nodes the question joins to nodes of the same label, if it names one such relationship."""
        said = [name for _, name in self.verbs if not self.is_mutual(name)]
        found = [{a for a, b in edge.ends if a == b} for name in said for edge in self._edges_named(name)]
        some = [labels for labels in found if labels]
        return some[0] if len(some) == 1 else set()

    def _edges_named(self, name: str) -> list[EdgeKind]:
        return [edge for edge in self.schema.edges if edge.label == name]

    def _role_at(self, where: int) -> tuple[str, Literal["source", "target"]] | None:
        """Return the relationship between nodes of one kind, and its end that the word at this place names."""
        between = {edge.label for edge in self.schema.edges if any(a == b for a, b in edge.ends)}
        between = {name for name in between if not self.is_mutual(name)}
        verbs = [(at, name) for at, name in self.verbs if name in between]
        words = [word for word, _ in self.words]
        if len(verbs) != 1:
            return None
        at, name = verbs[0]
        if abs(where - at) > REACH or self._clause_between(at, where):
            return None
        following = [word for word in words[at + 1 : at + 3] if word not in _BEFORE_BY]
        passive = "by" in following[:1] or "by whom" in " ".join(words)
        before = where < at
        if not passive and before and words[at - 1] in ("is", "are", "was", "were", "been"):
            return None
        return name, "source" if before != passive else "target"

    def _clause_between(self, one: int, other: int) -> bool:
        """Whether "that", "which" or another verb of a relationship stands between two words."""
        low, high = sorted((one, other))
        between = range(low + 1, high)
        return any(self.words[n][0] in ("and", "or", "which", "whose") for n in between) or any(
            at in between for at, _ in self.verbs
        )

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """The words in lower case, without "'s" and commas in numbers, each with its stem."""
        return [(word, stem(word)) for word in _words_of(self.question)]

    @cached_property
    def unnamed(self) -> str:
        """The question without the values that it names."""
        text = self.question
        for link in self.links.found:
            text = text.replace(link.words, "…")
        return text

    def _place(self, words: str) -> int | None:
        found = self._begins(words)
        return found[0] if len(found) == 1 else None

    def _begins(self, words: str) -> list[int]:
        first, plain = _words_of(words), [word for word, _ in self.words]
        return [n for n in range(len(plain)) if plain[n : n + len(first)] == first]

    def places_of(self, words: str) -> set[int]:
        """Return the indexes of these words in the question."""
        length = len(_words_of(words))
        return {at for start in self._begins(words) for at in range(start, start + length)}

    def says_no(self, word: str) -> bool:
        """Return whether a word, in lower case, negates."""
        return bool(_NEGATES.fullmatch(word) or word.endswith(("n't", "n’t")))

    def is_type(self, label: str) -> bool:
        """Return whether it is the name of a relationship type."""
        return any(edge.label == label for edge in self.schema.edges)

    def types_of(self, name: str) -> list[str]:
        """Return the types of the properties with this name."""
        return [each.properties[name] for each in (*self.schema.nodes, *self.schema.edges) if name in each.properties]

    def is_mutual(self, name: str) -> bool:
        """Return whether a relationship between nodes of one kind holds both ways, as INTERACTS_WITH does."""
        ends = [pair for edge in self._edges_named(name) for pair in edge.ends]
        parts = parts_of(name)
        is_said = len(parts) > 1 and parts[-1] == "with" and stem(parts[0]) not in _ONE_WAY
        return is_said and bool(ends) and all(source == target for source, target in ends)

    def owners_of(self, name: str) -> list[str]:
        """Return the labels and relationship types that have a property with this name."""
        return [each.label for each in (*self.schema.nodes, *self.schema.edges) if name in each.properties]

    @cached_property
    def _schema_stems(self) -> set[str]:
        every = (*self.schema.nodes, *self.schema.edges)
        names = [name for each in every for name in (each.label, *each.properties)]
        return {stem(part) for name in names for part in parts_of(name)}

    @cached_property
    def verbs(self) -> list[tuple[int, str]]:
        """The places of words that name a relationship type by its first meaningful word, each with the type."""
        names = (name for node in self.schema.nodes for name in (node.label, *node.properties))
        nouns = {stem(part) for name in names for part in parts_of(name)}
        stems: dict[str, list[str]] = defaultdict(list)
        for edge in self.schema.edges:
            strong = [stem(part) for part in parts_of(edge.label) if part not in _WEAK]
            if strong and strong[0] not in nouns and len(strong[0]) > 2:
                stems[strong[0]].append(edge.label)
        types_by_words: dict[str, set[str]] = defaultdict(set)
        for link in (link for link in self.links.found if self.is_type(link.label)):
            types_by_words[link.words].add(link.label)
        places = [(self._place(words), types) for words, types in types_by_words.items() if len(types) == 1]
        verbs = [(n, name) for n, (name, *_) in places if n is not None]
        for n, (_, said) in enumerate(self.words):
            names = stems.get(said) or ([] if said in nouns else stems.get(_verb_of(said), []))
            verbs += [(n, names[0])] if len(names) == 1 else []
        return verbs

    @cached_property
    def doers(self) -> Mapping[int, str]:
        """The places of words for who does something, such as "the director", each with its relationship."""
        said = {at: (name, self.words[at][1]) for at, name in self.verbs}
        return {
            at: name for at, (name, word) in said.items() if _verb_of(word) and word not in map(stem, parts_of(name))
        }

    @cached_property
    def _asked(self) -> tuple[str, str]:
        labels = {tuple(map(stem, parts_of(node.label))): node.label for node in self.schema.nodes}
        names = {
            tuple(map(stem, parts_of(name))): name
            for node in self.schema.nodes
            for name in node.properties
            if name != "name"
        }
        words, stems = [word for word, _ in self.words], [said for _, said in self.words]
        start = next((n for n, word in enumerate(words) if word in ASKS), None)
        if start is None:
            if not words or words[0] in _ASKS_FOR_PROPERTY:
                return "", self.properties_said[0] if words and len(self.properties_said) == 1 else ""
            if _WHETHER.match(self.question):
                return "", ""
            start = -1
        verbs = {place for place, _ in self.verbs}
        values = {at for link in self.links.found for at in self.places_of(link.words)}
        for at in range(start + 1, min(start + 1 + REACH, len(stems))):
            passed = any(not is_common(word) for word in words[start + 1 : at])
            if at in verbs or words[at] in _CONDITION or (words[at] in _BE and values.intersection(range(start, at))):
                break
            if passed and words[at] in _DETERMINERS:
                break  # another noun begins
            label, length = _named(stems[at:], labels)
            if label and self._is_beside_its_name(label, at, length):
                continue
            name, length = _named(stems[at:], names)
            if label or name:
                after = at + length + (name in _SORTS and stems[at + length : at + length + 1] == ["of"])
                label = (
                    label or _named(stems[after:], labels)[0]
                )  # "living authors" are authors, "kinds of cargo" cargo
                return label, "" if label else name
        return "", ""

    def _is_beside_its_name(self, label: str, at: int, length: int) -> bool:
        """Whether a kind stands beside the name of one of its nodes, as in "the Ulm line", and so is not asked for."""
        named = {
            place
            for link in self.links.found
            if link.label == label and link.property == shown_property(self.properties_of(label))
            for place in self.places_of(link.words)
        }
        return at - 1 in named or (at + length in named and self.words[at - 1][0] not in ASKS)

    # --- the rules -------------------------------------------------------------------------------------------------

    def _check_values(self, query: QueryText) -> Iterator[str]:
        written = [text.lower() for text in query.texts]
        words: dict[str, list[str]] = defaultdict(list)
        for link in self.links.found:
            words[link.words].append(link.value)
        for said, values in words.items():
            known = [said.lower(), *(value.lower() for value in values)]
            is_written = any(text and (text in name or name in text) for text in written for name in known)
            if not is_written and said not in query.amounts:
                yield f"The question names {shown(said)}, and the query does not ask for it."
        passed_over = self._words_passed_over(query)
        yield from (_not_asked_for(said) for said in self._strangers_left_out(query) if said not in passed_over)
        for text in query.texts:
            if self._invented(text):
                yield f"The query asks for {shown(text)}, which the question does not name."
        for said in self.strangers:
            guesses = [link.value for link in self.links.found if said.startswith(f"{link.words} ")]
            for value in guesses:
                if value.lower() in written:
                    yield f"The question names {shown(said)}, and the query asks for {shown(value)}."

    def _strangers_left_out(self, query: QueryText) -> list[str]:
        written = [text.lower() for text in query.texts]
        return [
            said
            for said in self.strangers
            if not any(_has_words(text, said.lower()) or _has_words(said.lower(), text) for text in written)
        ]

    def _words_passed_over(self, query: QueryText) -> list[str]:
        known = {name.lower() for link in self.links.found for name in (link.words, link.value)}
        if not all(text.lower() in known for text in query.texts):
            return []
        return [
            said
            for said in self._strangers_left_out(query)
            if said.isalpha() and not any(f"{mark}{said}" in self.question for mark in _QUOTES)
        ]

    def _invented(self, text: str) -> bool:
        """Whether a text of a query looks like a name, but is neither in the question nor a value that it names."""
        low, asked = text.lower().strip(".*%^$"), self.question.lower()
        if (day := _DAY.fullmatch(low)) and _has_words(asked, day[1]):
            return False  # a day of a year that the question names
        if len(low) < 3 or not any(char.isupper() or char.isdigit() for char in text) or _has_words(asked, low):
            return False
        if any(low in link.value.lower() or link.value.lower() in low for link in self.links.found):
            return False
        starts = {word[:SIMILAR] for word, _ in self.words}
        return not any(word[:SIMILAR] in starts for word in _WORD.findall(low) if word.isalpha())

    def _check_kinds(self, query: QueryText) -> Iterator[str]:
        if self.property:
            items = [item for item in query.returned if item.aggregate != "count"]
            if items and all(item.property and item.property != self.property for item in items):
                yield f"The question asks for the property {self.property}, and the query returns {query.returns}."
        if self.kind:
            labels = [query.labels_of(item.variable) for item in query.returned]
            if labels and all(labels) and not any(self.kind in some for some in labels):
                yield f"The question asks for {self.kind} nodes, and the query returns {query.returns}."

    def properties_of(self, label: str) -> Mapping[str, str]:
        return next((node.properties for node in self.schema.nodes if node.label == label), dict[str, str]())

    def _check_relations(self, query: QueryText) -> Iterator[str]:
        for name in self.relations:
            if query.types and name not in query.types:
                yield f"The question speaks of {name}, and the query has no such relationship."
        direction = self.direction
        if direction and query.role_of(direction.type, direction.value) not in ("", direction.role):
            yield f"The arrow points the wrong way, or none is written. The question is about {direction}."

    def _check_conditions(self, query: QueryText) -> Iterator[str]:
        if self.negates and not query.negates:
            yield "The question leaves something out (not, no, without), and the query excludes nothing: use WHERE NOT."
        for said in self.numbers:
            if not any(said in token for token in query.token_texts) and not self._is_percent(said, query):
                yield f"The question names {said}, and the query does not use it."
        for name in self.properties_said:  # stall and stalls may both be meant by one word
            if not any(name == other or stem(name) == stem(other) for other in query.token_texts):
                yield f"The question speaks of {name}, and the query does not use this property."
        orders = query.words & {"ORDER", "MAX", "MIN"}
        if self.superlative and not orders and not _SEVERAL.search(self.unnamed):
            yield "The question asks for the first of an order, and the query has no ORDER BY … LIMIT 1."

    def _is_percent(self, number: str, query: QueryText) -> bool:
        return bool(re.search(rf"{re.escape(number)}\s*(%|per ?cent)", self.question)) and any(
            float(each) == float(number) / 100 for each in query.amounts
        )

    @cached_property
    def properties_said(self) -> list[str]:
        """The properties that a word of the question names, if it is not a common word and names nothing else."""
        others = {stem(part) for each in (*self.schema.nodes, *self.schema.edges) for part in parts_of(each.label)}
        every = {name for each in (*self.schema.nodes, *self.schema.edges) for name in each.properties}
        values = {at for link in self.links.found for at in self.places_of(link.words)}
        words = [word for word, _ in self.words]
        said = {
            bare(stem(word))
            for at, word in enumerate(words)
            if not ({at, at + 1} & values or is_common(word))  # before a value it is a verb, as in "visit Genoa"
            and "'" not in word.replace("’", "'")  # "I'd" is no id
            and not (words[at + 1 : at + 2] == ["of"] and (stem(word) in _SORTS or words[at - 1].isdigit()))
        }
        every -= {"name", *(link.property for link in self.links.found)}
        return sorted(name for name in every if bare(stem(name)) in said and stem(name) not in others)

    def _check_rows(self, query: QueryText, rows: Sequence[Mapping[str, Json]]) -> Iterator[str]:
        if not rows:
            return
        values = [value for row in rows for value in row.values()]
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        if self.counts and not _GROUPS.search(self.question) and (len(values) != 1 or len(numbers) != 1):
            yield "The question asks how many, and the rows are not a single number: return count(DISTINCT …) alone."
        only_counts = bool(query.returned) and all(item.aggregate in ("count", "sum") for item in query.returned)
        if only_counts and not _AMOUNTS.search(self.question) and not _WHETHER.match(self.question):
            yield "The question does not ask for a number, and the query returns one: return what is asked for."
        empty = [name for name in rows[0] if all(row.get(name) is None for row in rows)]
        for name in empty:
            yield f"The column {name} is null in every row."
        written = {text.lower() for text in query.texts}
        texts = [value.lower() for value in values if isinstance(value, str)]
        if texts and len(texts) == len(values) and set(texts) <= written and not _WHETHER.match(self.question):
            yield "The rows only repeat what the query asked for."
        limit = query.limit
        named = {word for word, _ in self.words}
        several, plural = _SEVERAL.search(self.unnamed), _plural(self.kind, named)
        if limit is not None and limit == len(rows) and not self.superlative and not several and (limit > 1 or plural):
            yield f"The query keeps the first {limit} of the rows only: leave out LIMIT, or raise it."


def _verb_of(said: str) -> str:
    """Return the stem of the verb in a word such as director or reader; ""."""
    return stem(said[:-2]) if said.endswith(("er", "or")) and len(said) > 4 else ""


def _words_of(text: str) -> list[str]:
    return [re.sub(r"['’]s$", "", word.lower()) for word in _WORD.findall(_COMMAS.sub("", text))]


def parts_of(name: str) -> list[str]:
    """Return the words of a name such as CellType or EXPRESSED_IN, in lower case."""
    return [part.lower() for part in re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])", name)] or [name.lower()]


def _named(stems: Sequence[str], names: Mapping[tuple[str, ...], str]) -> tuple[str, int]:
    """Return the longest of the names that these words begin with, and its number of words."""
    lengths = (length for length in (3, 2, 1) if tuple(stems[:length]) in names)
    length = next(lengths, 0)
    return names.get(tuple(stems[:length]), ""), length


def _plural(label: str, words: set[str]) -> bool:
    last = parts_of(label)[-1] if label else ""
    return bool(last) and any(word != last and stem(word) == stem(last) and word.endswith("s") for word in words)


def _has_words(text: str, part: str) -> bool:
    return bool(part) and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) is not None


def _not_asked_for(said: str) -> str:
    return f"The question names {shown(said)}, which no value equals, and the query does not ask for it."


def shown_property(properties: Mapping[str, str]) -> str:
    """Return the property by which a person knows a node: its name, or else its first text that is not an id."""
    texts = [name for name, kind in properties.items() if kind == "STRING" and not name.lower().endswith("id")]
    return "name" if "name" in properties else next(iter((*texts, *properties)))


def literal(value: str) -> str:
    """Write a text as a string of a query."""
    return json.dumps(value, ensure_ascii=False)
