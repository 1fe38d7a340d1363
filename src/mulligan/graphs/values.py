"""Looks up in a graph the values that a question or a query names.

`link_values` finds the values that a question names, so that a model writes them as the graph does. `probe_values`
finds the texts of a query that no value equals, with the nearest values. Both only read, use the database's index if it
has one, and have a time limit: properties that were too slow to search are reported.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from mulligan.graphs._guard import Refused, Token, tokens
from mulligan.graphs._patterns import Reader
from mulligan.graphs.protocol import Graph, GraphSchema, bare, quoted
from mulligan.pages import one_line
from mulligan.plugins import GraphError, Json, QueryError

SECONDS = 2.0
"""The time limit of one look-up."""
OWN_SHARE = 0.9
"""The share of the remaining time that the database gets, so that it ends a query before we do."""
MAX_WORDS = 4
"""The most words of a question that may be one value."""
MAX_PHRASES = 80
"""The most phrases of a question that are looked up, long phrases first."""
MAX_PROPERTIES = 40
"""The most properties with texts that are searched, in the order of the schema."""
MAX_VALUES = 20
"""The most values of one property that one look-up takes."""
PREFIX_LENGTH = 2
"""The number of first characters that a value and a text must share to be compared."""
MAX_CANDIDATES = 2000
"""The most values of one property that are compared with a text."""
MAX_EDGE_VALUES = 30
"""The most distinct values of a relationship's property that are compared with words of a question in any form."""
MIN_FORM_LENGTH = 4
"""The fewest letters of a word that is compared in any of its forms."""
MIN_LIKENESS, MAX_NEAREST = 0.35, 3
"""The likeness from which a value is near, and the most near values that are named."""
SHOWN_WIDTH = 80
"""The most characters of a value that a sentence shows."""

_WORD = re.compile(r"\w(?:[\w.\-/'’]*\w)?")
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)")
_COMMON = """
    a all also an and any are as at be been being between both but by can could did do does each either every few find
    for from get give had has have how i in into is it its last least less list long many me more most much my name
    names neither no nobody none nor not nothing of on one only or other out over per same show some such tell than that
    the their them then there these they this those through to too under us was we were what when where which while who
    whose why will with without would you your
"""

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_OF_DATES = re.compile(
    rf"\d+(s|st|nd|rd|th)|{'|'.join(MONTHS)}|(mon|tues|wednes|thurs|fri|satur|sun)day", re.IGNORECASE
)
"""Words of dates and numbers, which look like names."""
_MONTH, _ORDINAL = f"(?:{'|'.join(MONTHS)})", r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:(?:the )?{_ORDINAL} (?:of )?{_MONTH},? \d{{4}}|{_MONTH} {_ORDINAL},? \d{{4}}|\d{{4}}-\d\d-\d\d)\b", re.I
)
"""A day, as in 1 July 1990, July 1st, 1990, or 1990-07-01."""
_IRREGULAR = """
    bind bound; build built; buy bought; choose chose chosen; drive drove driven; eat ate eaten; feed fed; hold held
    give gave given; grow grew grown; keep kept; know knew known; lead led; make made; meet met; pay paid; sell sold
    send sent; speak spoke spoken; take took taken; teach taught; win won; write wrote written
    alias aliases; analysis analyses; bias biases; bus buses; campus campuses; gas gases; lens lenses; status statuses
    virus viruses
"""
_PLAIN_FORM = {form: first for first, *forms in map(str.split, re.split("[;\n]", _IRREGULAR.strip())) for form in forms}
"""The base form of each irregular form."""


@dataclass(frozen=True)
class Link:
    """Words of a question that name a value of the graph.

    Attributes:
        value: The value as the graph writes it.
        is_listed: Whether the property is a list that contains the value.
    """

    words: str
    label: str
    property: str
    value: str
    is_listed: bool = False

    def __str__(self) -> str:
        place = f"{self.label}.{self.property}"
        if self.is_listed:
            return (
                f"{shown(self.value)} is in the list {place}: it is found by {shown(self.value)} IN x.{self.property}"
            )
        if self.words == self.value:
            return f"{shown(self.value)} is a {place}"
        return f"{shown(self.words)} is the {place} {shown(self.value)}"


@dataclass(frozen=True)
class Links:
    """The values that a question names.

    Attributes:
        left_out: Properties, such as "Gene.name", that could not be searched in time.
        unknown: Words that look like a name, but that no value equals or begins with; empty if a property was left out.
    """

    found: tuple[Link, ...] = ()
    left_out: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Missing:
    """A text of a query that no value of the property equals. nearest: the values most like it, the nearest first."""

    text: str
    label: str
    property: str
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        near = f"; nearest: {', '.join(map(shown, self.nearest))}" if self.nearest else ""
        return f"no {self.label} has the {self.property} {shown(self.text)}{near}"


async def link_values(
    graph: Graph, schema: GraphSchema, question: str, *, labels: Iterable[str] = (), seconds: float = SECONDS
) -> Links:
    """Return the values that the question names, longer phrases before their parts.

    A value counts when it is equal to a phrase of up to four words, regardless of case and of a plural's ending; a
    phrase that could be a name (with a capital inside the sentence, a digit, or in quotes) may also be the beginning of
    values. A name that no node has is looked up in the texts of relationships and in lists, too. Names of labels and
    relationship types do not count, unless they are in quotes.

    Args:
        labels: The kinds of nodes to search; all by default.
        seconds: The time limit.
    """
    edges, lists = _edge_texts_of(schema), [place for place in _lists_of(schema) if not labels or place[0] in labels]
    rest_seconds = seconds / 4 if edges or lists else 0.0
    search = _Search(graph, seconds - rest_seconds)
    phrases = _phrases(question, schema)
    places = [place for place in _texts_of(schema) if not labels or place[0] in labels]
    found = [link for place in places for link in await search.written(place, phrases)]
    if left := _left(phrases, found) or (() if found else phrases):  # without an index each place is read through
        for place in places:
            found += await search.in_any_case(place, left)
    left = _left(phrases, found)
    for place in places if left else ():
        found += await search.beginning(place, left)
    rest, left = _Search(graph, rest_seconds), [] if search.left_out else _left(phrases, found)
    for place in edges if left else ():
        found += await rest.on_relationships(place, left)
    for place in lists if left else ():
        found += await rest.in_lists(place, left)
    left = [] if rest.left_out else _left(left, found)
    left_out = [*search.left_out, *rest.left_out]
    types = {stem(part) for edge in schema.edges for part in edge.label.split("_")}
    words = [word for word in _WORD.findall(question) if stem(word) not in types]
    spoken = [word for word in words if not any(_holds(link.words, word) for link in found)]
    for place in edges if spoken else ():  # words that this does not find are not names
        found += await rest.said(place, spoken)
    return Links(tuple(_longest(found)), tuple(left_out), tuple(_unknown(left, schema)))


async def probe_values(
    graph: Graph, schema: GraphSchema, query: str, *, seconds: float = SECONDS
) -> tuple[Missing, ...]:
    """Return the texts that the query compares with a property and that no value of it equals."""
    search = _Search(graph, seconds)
    places = set(_texts_of(schema))
    missing: list[Missing] = []
    for (label, name), texts in _compared(query).items():
        if (label, name) not in places:
            continue
        for text in dict.fromkeys(texts):
            if await search.has((label, name), text) is False:
                missing.append(Missing(text, label, name, await search.nearest((label, name), text)))
    return tuple(missing)


# --- what a question may name ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Phrase:
    """Consecutive words of a question. spellings: in lower case, with and without a plural's ending."""

    text: str
    is_name: bool
    spellings: tuple[str, ...]
    is_quoted: bool = False


def with_plain_days(question: str) -> str:
    """Return the question with each day that it names as 1990-07-01. A day that does not exist stays as it is."""

    def plain(found: re.Match[str]) -> str:
        words = re.findall(r"\d+|[a-z]+", found[0].lower())
        month = next((MONTHS.index(word) + 1 for word in words if word in MONTHS), 0)
        if not month:
            return found[0]
        day, year = (int(word) for word in words if word.isdigit())
        try:
            return date(year, month, day).isoformat()
        except ValueError:
            return found[0]

    return _DATE.sub(plain, question)


def _phrases(question: str, schema: GraphSchema) -> list[_Phrase]:
    kinds, common = {bare(each.label) for each in (*schema.nodes, *schema.edges)}, set(_COMMON.split())
    quoted_ones = [next(filter(None, found.groups())) for found in _QUOTED.finditer(question)]
    phrases = {text: _Phrase(text, True, (text.lower(),), True) for text in quoted_ones}
    words = _WORD.findall(question)
    for length in range(MAX_WORDS, 0, -1):
        for at in range(len(words) - length + 1):
            some = words[at : at + length]
            text = " ".join(some)
            lowered = text.lower()
            spellings = tuple(dict.fromkeys((lowered, *_singular(lowered))))
            if {some[0].lower(), some[-1].lower()} & common:
                continue
            if any(bare(each) in kinds for each in spellings) or (len(text) == 1 and text.islower()):
                continue
            is_name = any(_is_name(word, at + n) for n, word in enumerate(some))
            phrases.setdefault(text, _Phrase(text, is_name, spellings))
    return list(phrases.values())[:MAX_PHRASES]


def _is_name(word: str, place: int) -> bool:
    inside = word[1:] if place == 0 else word
    return len(word) > 2 and any(char.isupper() or char.isdigit() for char in inside)


def _singular(text: str) -> Iterator[str]:
    if text.endswith(("'s", "’s")):
        yield text[:-2]
    if len(text) > 3 and text.endswith("s") and not text.endswith("ss"):
        yield text[:-1]
        if text.endswith("es"):
            yield text[:-2]
        if text.endswith("ies"):
            yield f"{text[:-3]}y"


def _left(phrases: Sequence[_Phrase], found: Sequence[Link]) -> list[_Phrase]:
    """Return the phrases that could be names and share no words with a link."""
    linked = [link.words for link in found]
    return [
        each
        for each in phrases
        if each.is_name and not any(_holds(words, each.text) or _holds(each.text, words) for words in linked)
    ]


def _unknown(left: Sequence[_Phrase], schema: GraphSchema) -> Iterator[str]:
    """Yield the names of one word, such as FOOBAR1 or X-7, and those in quotes, that are not names of the schema."""
    names = {bare(name) for each in (*schema.nodes, *schema.edges) for name in (each.label, *each.properties)}
    for each in left:
        is_one = (" " not in each.text or each.is_quoted) and any(map(str.isalpha, each.text))
        is_date = not each.is_quoted and is_of_date(each.text)
        if is_one and not is_date and not any(bare(spelling) in names for spelling in each.spellings):
            yield each.text


def is_common(word: str) -> bool:
    """Return whether a word is a common English word and so not a part of a name."""
    return word.lower() in _COMMON.split()


def is_of_date(word: str) -> bool:
    """Return whether a word is a month, a day of the week, an ordinal or a decade."""
    return _OF_DATES.fullmatch(word) is not None


def _holds(words: str, part: str) -> bool:
    return f" {part} " in f" {words} "


def _longest(found: Sequence[Link]) -> Iterator[Link]:
    """Yield the distinct links whose words are not a part of another link's words."""
    for link in dict.fromkeys(sorted(found, key=lambda each: -len(each.words.split()))):
        if not any(_holds(each.words, link.words) for each in found if len(each.words) > len(link.words)):
            yield link


# --- what a query compares ------------------------------------------------------------------------------------------


def _compared(query: str) -> Mapping[tuple[str, str], list[str]]:
    """Return the texts that the query compares with a property, by (label, property), if the query has the label."""
    try:
        found = tokens(query)
    except Refused:
        return {}
    reader = Reader(found)
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    labels: dict[str, set[str]] = defaultdict(set)
    patterns = list(reader.patterns())
    for node in (node for pattern in patterns for node in pattern.nodes):
        labels[node.variable].update(name.text for name in node.labels)
    for node in (node for pattern in patterns for node in pattern.nodes):
        owners = {name.text for name in node.labels} or (labels[node.variable] if node.variable else set[str]())
        for key in node.keys:
            for label in owners:
                texts[label, key.text] += _texts_after(found, key.token + 1)
    for n in range(2, len(found)):
        if reader.is_name(n) and reader.sign(n - 1) == "." and reader.is_name(n - 2) and found[n - 2].text:
            for label in labels.get(found[n - 2].text, ()):
                texts[label, found[n].text] += _texts_after(found, n + 1)
    return texts


def _texts_after(found: Sequence[Token], n: int) -> list[str]:
    """Return the texts after a comparison: = 'x', : 'x', IN ['x', 'y'], also after closing brackets."""
    while n < len(found) and found[n].text == ")":
        n += 1
    if n >= len(found) or not (found[n].text in ("=", ":") or found[n].text.upper() == "IN"):
        return []
    texts: list[str] = []
    for token in found[n + 1 :]:
        if token.kind == "string":
            texts.append(re.sub(r"\\(.)", r"\1", token.text))
            if found[n].text.upper() != "IN":
                break
        elif token.text not in ("[", ",", "(") and token.text.lower() not in ("tolower", "lower", "trim"):
            break
    return texts


# --- looking them up ------------------------------------------------------------------------------------------------


def _texts_of(schema: GraphSchema) -> list[tuple[str, str]]:
    """Return the properties of nodes that hold texts, as (label, property)."""
    found = [(node.label, name) for node in schema.nodes for name, kind in node.properties.items() if _is_text(kind)]
    return found[:MAX_PROPERTIES]


def _is_text(kind: str) -> bool:
    low = kind.lower()
    return not low or (("str" in low or "text" in low or "char" in low) and "[" not in low and "list" not in low)


def _edge_texts_of(schema: GraphSchema) -> list[tuple[str, str]]:
    """Return the properties of relationships that hold texts, as (type, property)."""
    found = [
        (edge.label, name) for edge in schema.edges for name, kind in edge.properties.items() if kind and _is_text(kind)
    ]
    return found[:MAX_PROPERTIES]


def _lists_of(schema: GraphSchema) -> list[tuple[str, str]]:
    """Return the properties of nodes that hold lists of texts, as (label, property)."""
    kinds = [(node.label, name, kind.lower()) for node in schema.nodes for name, kind in node.properties.items()]
    found = [(label, name) for label, name, kind in kinds if "str" in kind and ("[" in kind or "list" in kind)]
    return found[:MAX_PROPERTIES]


class _Search:
    """Asks one graph until the time is over. left_out: the properties that could not be searched."""

    def __init__(self, graph: Graph, seconds: float) -> None:
        self._graph, self._deadline = graph, time.monotonic() + seconds
        self.left_out: dict[str, None] = {}

    async def written(self, place: tuple[str, str], phrases: Sequence[_Phrase]) -> list[Link]:
        """Return the links of phrases that a value equals in the usual capitalisations, which an index can find."""
        texts = list(dict.fromkeys(form for phrase in phrases for form in _forms(phrase)))
        values = await self._values(place, "UNWIND $texts AS text MATCH (n:{label} {{{name}: text}})", texts=texts)
        return _linked(place, phrases, values)

    async def in_any_case(self, place: tuple[str, str], phrases: Sequence[_Phrase]) -> list[Link]:
        texts = list(dict.fromkeys(spelling for phrase in phrases for spelling in phrase.spellings))
        values = await self._values(place, "MATCH (n:{label}) WHERE toLower(n.{name}) IN $texts", texts=texts)
        return _linked(place, phrases, values)

    async def on_relationships(self, place: tuple[str, str], phrases: Sequence[_Phrase]) -> list[Link]:
        """Return the links of phrases that a value of this relationship property equals, in any case."""
        texts = list(dict.fromkeys(spelling for phrase in phrases for spelling in phrase.spellings))
        match = "MATCH ()-[n:{label}]->() WHERE toLower(n.{name}) IN $texts"
        return _linked(place, phrases, await self._values(place, match, texts=texts))

    async def in_lists(self, place: tuple[str, str], phrases: Sequence[_Phrase]) -> list[Link]:
        """Return the links of phrases that a list of this property contains, in any case."""
        texts = list(dict.fromkeys(spelling for phrase in phrases for spelling in phrase.spellings))
        match = "MATCH (n:{label}) UNWIND n.{name} AS one WITH one AS value WHERE toLower(value) IN $texts"
        values = await self._asked(place, match, MAX_VALUES, {"texts": texts}, what="value")
        return [replace(link, is_listed=True) for link in _linked(place, phrases, values or ())]

    async def beginning(self, place: tuple[str, str], phrases: Sequence[_Phrase]) -> list[Link]:
        """Return the links of phrases with which values of this property begin."""
        found: list[Link] = []
        for phrase in phrases:
            match = "MATCH (n:{label}) WHERE toLower(n.{name}) STARTS WITH $text"
            values = await self._values(place, match, most=MAX_NEAREST, text=phrase.text.lower())
            found += [Link(phrase.text, *place, value) for value in values]
        return found

    async def said(self, place: tuple[str, str], words: Sequence[str]) -> list[Link]:
        """Return the links of words that are a form of one of the few values of a relationship property."""
        match = f"MATCH ()-[n:{{label}}]->() WITH n LIMIT {MAX_CANDIDATES}"
        values = await self._values(place, match, most=MAX_EDGE_VALUES + 1)
        found = [Link(word, *place, value) for value in values for word in words if _is_form(word, value)]
        return found if len(values) <= MAX_EDGE_VALUES else []

    async def has(self, place: tuple[str, str], text: str) -> bool | None:
        """Return whether a value equals this text, in any case; None if it could not be found in time."""
        values = await self._asked(
            place, "MATCH (n:{label}) WHERE toLower(n.{name}) = $text", 1, {"text": text.lower()}
        )
        return None if values is None else bool(values)

    async def nearest(self, place: tuple[str, str], text: str) -> tuple[str, ...]:
        match = "MATCH (n:{label}) WHERE toLower(n.{name}) STARTS WITH $text"
        values = await self._values(place, match, most=MAX_CANDIDATES, text=text.lower()[:PREFIX_LENGTH])
        ranked = sorted(((_likeness(text, value), value) for value in values), key=lambda pair: (-pair[0], pair[1]))
        return tuple(value for like, value in ranked[:MAX_NEAREST] if like >= MIN_LIKENESS)

    async def _values(self, place: tuple[str, str], match: str, most: int = MAX_VALUES, **given: Json) -> list[str]:
        return await self._asked(place, match, most, given) or []

    async def _asked(
        self, place: tuple[str, str], match: str, most: int, given: Mapping[str, Json], what: str = "n.{name} AS value"
    ) -> list[str] | None:
        """Return the distinct values that match; None if there was not enough time."""
        label, name = map(quoted, place)
        left = self._deadline - time.monotonic()
        query = f"{match} RETURN DISTINCT {what} LIMIT {most}".format(label=label, name=name)
        try:
            if left <= 0:
                raise QueryError("The time limit was reached.", "slow")
            async with asyncio.timeout(left):
                rows = (await self._graph.run(query, given, seconds=OWN_SHARE * left, rows=most)).rows
        except (QueryError, GraphError, TimeoutError):  # too slow, of another type, or the database is being reopened
            self.left_out[".".join(place)] = None
            return None
        return [row["value"] for row in rows if isinstance(row["value"], str)]


def _forms(phrase: _Phrase) -> Iterator[str]:
    yield phrase.text
    for spelling in phrase.spellings:
        yield from (spelling, spelling.upper(), spelling.capitalize(), spelling.title())


def _linked(place: tuple[str, str], phrases: Sequence[_Phrase], values: Iterable[str]) -> list[Link]:
    by_spelling: dict[str, list[str]] = defaultdict(list)
    for value in dict.fromkeys(values):
        by_spelling[value.lower()].append(value)
    return [
        Link(phrase.text, *place, value)
        for phrase in phrases
        for spelling in phrase.spellings
        for value in by_spelling.get(spelling, ())
    ]


def stem(word: str) -> str:
    """Return an English word in lower case without the ending that it has in some of its forms."""
    return _without_ending(_PLAIN_FORM.get(word.lower(), word.lower()))


def _without_ending(low: str) -> str:
    if low.endswith("ings") or (len(low) == 4 and low.endswith("ed") and low[1] != "e"):
        low = low[:-1]  # ratings, used
    for ending in ("ing", "ed", "es", "s", "e"):
        if low.endswith(ending) and len(low) - len(ending) >= 3 and not low.endswith("ss"):
            left = low[: -len(ending)]
            return f"{left[:-1]}y" if left.endswith("i") else left  # cities, studied, and movie as movies
    return low


def _is_form(word: str, value: str) -> bool:
    """Whether a word of a question and a value are forms of one word, such as inhibit and inhibitor."""
    one, other = sorted((_without_ending(word.lower()), _without_ending(value.lower())), key=len)
    return (
        not is_common(word)
        and len(one) >= MIN_FORM_LENGTH
        and (one == other or (len(one) > MIN_FORM_LENGTH and other.startswith(one)))
    )


def _likeness(one: str, other: str) -> float:
    """Return the share of common runs of three characters, 0 to 1 (Dice)."""
    runs, others = _runs(one), _runs(other)
    return 2 * len(runs & others) / (len(runs) + len(others))


def _runs(text: str) -> set[str]:
    padded = f"  {text.casefold()} "
    return {padded[at : at + 3] for at in range(len(padded) - 2)}


def shown(text: str) -> str:
    """Return a text of a question or a graph in quotes, in one line, as a sentence shows it."""
    return json.dumps(one_line(text, SHOWN_WIDTH), ensure_ascii=False)
