"""Rank the lessons of an index for a query: by words (BM25 over postings) and by meaning, calibrated to relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, overload

import numpy as np

from mulligan.core.ranking import Array, Ranked, Retrieval
from mulligan.core.records import LAYERS, same_kind

TAIL = 1 << 15
"""Postings that are sorted anew at each question after a change, before they become a segment."""


@dataclass(frozen=True)
class BM25:
    """Parameters of BM25, chosen in studies/retrieval (design/036).

    Attributes:
        k1: how soon repetitions in a lesson stop counting.
        b: how far long lessons are held back, 0 to 1.
        common: terms of more than this share of the lessons, and of more than `FEW`, are skipped, unless the query
            holds no other.
        most: terms of a query that count, the heaviest.
    """

    k1: float = 1.5
    b: float = 0.75
    common: float = 0.5
    most: int = 64


DIGITS = 6
"""Decimal places of a cosine, a share and a relevance. Equal lessons get equal scores, so that age decides ties, and
what is 1 but for the last digits of a sum is 1."""


def rounded(scores: Array) -> Array:
    return scores.round(DIGITS)


FEW = 10
YOUNG = 20
"""Lessons after which a bank's own count of a term weighs as much as how common the term is anywhere."""
LESSON = 28
"""Words of a short lesson, by which the size of a bank is measured where words are compared."""
CHANCE = 3.5
"""What a short query may score with an unrelated lesson. What a longer one is expected to score beyond it counts for
nothing."""


@dataclass(frozen=True)
class WordScores:
    """What the words of a query find.

    Attributes:
        scores: BM25 for each slot (float64).
        share: of the query's words, by how rare they are anywhere, that each slot holds, 0 to 1.
        whole: divides `scores` into the share by the words' weight in this bank.
        chance: what an unrelated lesson of the bank's mean length scores, by how common the query's words are anywhere.
    """

    scores: Array
    share: Array
    whole: float = 1.0
    chance: float = 0.0


class Segment:
    """Postings sorted by term: `slots[starts[i]:starts[i + 1]]` are those of `hashes[i]`, with their counts."""

    hashes: Array
    starts: Array

    def __init__(self, keys: Array) -> None:
        """keys: uint64 each, hash << 32 | slot << 8 | count. Sorted in place."""
        keys.sort()
        terms = (keys >> np.uint64(32)).astype(np.uint32)
        news: Array = np.ones(len(keys), np.bool_)
        news[1:] = terms[1:] != terms[:-1]
        first: Array = np.flatnonzero(news)
        self.hashes = terms[first]
        self.starts = np.append(first, len(keys))
        low = keys.astype(np.uint32)
        self.slots = (low >> np.uint32(8)).astype(np.int32)
        self.counts = low.astype(np.uint8)

    def keys(self) -> Array:
        high = np.repeat(self.hashes, np.diff(self.starts)).astype(np.uint64) << np.uint64(32)
        return high | (self.slots.astype(np.uint64) << np.uint64(8)) | self.counts

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def bytes(self) -> int:
        return self.hashes.nbytes + self.starts.nbytes + self.slots.nbytes + self.counts.nbytes

    def spans(self, hashes: Array) -> tuple[Array, Array]:
        """For each hash, from where to where its postings go; from = to where there are none."""
        if not len(self.hashes):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
        at = np.asarray(np.searchsorted(self.hashes, hashes), np.int64)
        at[at == len(self.hashes)] = 0
        starts, ends = self.starts[at], self.starts[at + 1]
        missing = self.hashes[at] != hashes
        ends[missing] = starts[missing]
        return starts, ends


def packed(hashes: Array, slots: Array, counts: Array) -> Array:
    """Postings as the keys of a segment. Slots go up to 16,777,215."""
    return (hashes.astype(np.uint64) << np.uint64(32)) | (slots.astype(np.uint64) << np.uint64(8)) | counts


class Postings:
    """All postings of an index. Slots are given by the caller and never twice."""

    def __init__(self, bm25: BM25 = BM25()) -> None:
        self._bm25 = bm25
        self._segments: list[Segment] = []
        self._tail: list[Any] = []

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self._segments) + 8 * sum(len(part) for part in self._tail)

    def add(self, hashes: Array, slots: Array, counts: Array) -> None:
        self._tail.append(packed(hashes, slots, counts))
        if sum(len(part) for part in self._tail) < TAIL:
            return
        keys = np.concatenate(self._tail)
        self._tail = []
        while self._segments and len(self._segments[-1]) < 2 * len(keys):
            keys = np.concatenate((self._segments.pop().keys(), keys))
        self._segments.append(Segment(keys))

    def compact(self, moved: Array) -> None:
        """Slots get new numbers (`moved[old]`, -1: dead), and what belongs to dead ones goes."""
        keys = np.concatenate([np.zeros(0, np.uint64), *(one.keys() for one in self._segments), *self._tail])
        slots = moved[((keys >> np.uint64(8)) & np.uint64(0xFFFFFF)).astype(np.int64)]
        keep = slots >= 0
        kept = keys[keep] & np.uint64(0xFFFFFFFF000000FF) | (slots[keep].astype(np.uint64) << np.uint64(8))
        self._segments, self._tail = [Segment(kept)], []

    def held(self, lengths: Array, alive: Array | None) -> PostingsView:
        """As they are now, whatever is added later. lengths: of the lessons, in terms; alive: which slots count, in
        scores and statistics, None for all."""
        if self._tail:
            self._tail = [np.concatenate(self._tail)]
            return PostingsView(self._bm25, (*self._segments, Segment(self._tail[0].copy())), lengths, alive)
        return PostingsView(self._bm25, tuple(self._segments), lengths, alive)


class PostingsView:
    """Postings at one moment: they answer queries and never change. total: words of all lessons."""

    def __init__(self, bm25: BM25, segments: tuple[Segment, ...], lengths: Array, alive: Array | None) -> None:
        self._bm25, self._segments, self._lengths, self._alive = bm25, segments, lengths, alive
        self._n = len(lengths) if alive is None else int(np.count_nonzero(alive))
        self.total = float(lengths.sum() if alive is None else lengths[alive].sum())
        self._mean = self.total / self._n if self.total else 1.0
        self._held = (bm25.k1 * (1 - bm25.b + bm25.b * lengths / self._mean)).astype(np.float32)

    def scores(self, hashes: Array, counts: Array, anywhere: Array) -> WordScores:
        """hashes: the terms of the query, each once. counts: how often it stands there. anywhere: the share of texts
        that hold it, which counts for `YOUNG` lessons of the bank."""
        none = np.zeros(len(self._lengths))
        if not self._n or not len(hashes):
            return WordScores(none, none)
        found = self._found(hashes)
        df = np.zeros(len(hashes), np.int64)
        for term, slots, _ in found:
            df[term] += len(slots)
        among, holding = self._n + YOUNG, df + YOUNG * anywhere
        weights = np.log1p((among - holding + 0.5) / (holding + 0.5)) * counts
        heavy = np.zeros(len(hashes), np.bool_)
        heavy[np.argsort(-weights, kind="stable")[: self._bm25.most]] = True
        rare = heavy & (df <= max(self._bm25.common * self._n, FEW))
        wanted = rare if (rare & (df > 0)).any() else heavy
        used = [part for part in found if wanted[part[0]]]
        if not used:
            return WordScores(none, none)
        slots = np.concatenate([part[1] for part in used])
        times = np.concatenate([part[2] for part in used]).astype(np.float32)
        weight = np.repeat([weights[part[0]] for part in used], [len(part[1]) for part in used])
        weight *= times * np.float32(self._bm25.k1 + 1) / (times + self._held[slots])
        scores = np.bincount(slots, weights=weight, minlength=len(none))
        whole = float(weights[heavy].sum()) * (self._bm25.k1 + 1)
        share = np.zeros(len(none))
        for term, slots, _ in found:
            share[slots] += -np.log(anywhere[term])
        share = rounded(share / -np.log(anywhere).sum())
        shared = 1 - (1 - anywhere[heavy]) ** (self._mean / LESSON)
        return WordScores(scores, share, whole, float((weights[heavy] * shared).sum()))

    def _found(self, hashes: Array) -> list[tuple[int, Array, Array]]:
        """The postings of each term of the query, as (index of the term, slots, counts)."""
        parts: list[tuple[int, Array, Array]] = []
        for segment in self._segments:
            starts, ends = segment.spans(hashes)
            for term in np.flatnonzero(ends > starts).tolist():
                slots, counts = segment.slots[starts[term] : ends[term]], segment.counts[starts[term] : ends[term]]
                if self._alive is not None:
                    live = self._alive[slots]
                    slots, counts = slots[live], counts[live]
                if len(slots):
                    parts.append((term, slots, counts))
        return parts


PRESETS = {"strict": 0.98, "standard": 0.9, "lenient": 0.5}
"""Relevance below which a lesson is not given. What each keeps and lets through: docs/retrieval.md."""


@dataclass(frozen=True)
class NullDistribution:
    """How the best score of a bank is spread where nothing fits: a Gumbel distribution.

    The size of a bank is, by meaning, how many lessons it has; by words, how many lessons of `LESSON` words its words
    make.

    Attributes:
        place, width: of a bank of one lesson.
        growth: what the place rises by when the bank grows by a factor of e.
    """

    place: float
    width: float
    growth: float

    def relevance(self, scores: Array, size: float) -> Array:
        """Monotonic, from 0 to 1. nan stays nan."""
        place = self.place + self.growth * np.log(max(size, 1.0))
        return rounded(np.exp(-np.exp(np.minimum((place - np.asarray(scores, np.float64)) / self.width, 700.0))))


SHIPPED = {
    "words": NullDistribution(-2.0, 1.3, 1.05),
    "local:minilm-l6-v2": NullDistribution(0.033, 0.057, 0.04),
    "local:multilingual-e5-small": NullDistribution(0.224, 0.047, 0.042),
    "hash:384": NullDistribution(0.09, 0.08, 0.053),
}
"""Of words, and of embedders by the beginning of their id, read from what studies/retrieval/nulls.py prints."""

UNKNOWN = (0.2, 0.12, 2)
"""Mean and deviation of lessons with each other for an embedder that nobody has measured, and the lessons of the bank
that outweigh them."""


FOREIGN = {"local:minilm-l6-v2": NullDistribution(0.34, 0.1, 0.05)}
"""Of embedders that know English alone: of two texts in one other language, which are alike by their language."""


def shipped(embedder: str | None, known: Mapping[str, NullDistribution] = SHIPPED) -> NullDistribution | None:
    """That of a known embedder."""
    return next((null for name, null in known.items() if (embedder or "").startswith(name)), None)


def estimated(cosines: Array, lessons: int) -> NullDistribution:
    """From the cosines of so many lessons with each other. Lessons are a little more alike than a lesson and a task."""
    mean, sd, weight = UNKNOWN
    if len(cosines):
        share = lessons / (lessons + weight)
        mean = share * float(cosines.mean()) + (1 - share) * mean
        sd = float(np.sqrt(share * float(cosines.var()) + (1 - share) * sd**2))
    sd = max(sd, 1e-6)
    return NullDistribution(mean - 0.45 * sd, 0.5 * sd, 0.3 * sd)


def pairs(vectors: Array, there: Array, slots: Array, labels: Array, most: int = 256) -> Array:
    """Cosines of lessons with each other, those of one experience (label) left out; of at most so many lessons."""
    has = there[slots]
    slots, labels = _spread(slots[has], most), _spread(labels[has], most)
    cosines = np.vecdot(vectors[slots][:, None], vectors[slots][None])
    return cosines[labels[:, None] != labels]


def _spread(column: Array, most: int) -> Array:
    """At most so many of a column, spread evenly."""
    return column[np.linspace(0, len(column) - 1, most).astype(np.int64)] if len(column) > most else column


class TextSelection(Sequence[str]):
    """Some of a list of texts, by position, without a copy."""

    def __init__(self, texts: list[str], slots: Array) -> None:
        self._texts, self._slots = texts, slots

    def __len__(self) -> int:
        return len(self._slots)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return TextSelection(self._texts, self._slots[index])
        return self._texts[int(self._slots[index])]


LAYER_NUMBERS: Mapping[str, int] = {layer: number for number, layer in enumerate(LAYERS, 1)}
"""The number of each layer in its column; 0 is none."""


@dataclass(frozen=True)
class Columns:
    """All that an index holds, as it is now: arrays of one row per slot.

    Attributes:
        slots: the active ones, oldest first.
        whole: whether `slots` are simply all of them.
        project, kind: a number for each name; `kinds` has those of the kinds.
        language: the language, as `terms.language_of` returns it.
        layer: a number for each layer, 0 for none.
        vectors: unit, float32, by part, and where there is one.
        unrelated: how unrelated texts score in this bank, by words and by meaning; where the embedder knows English
            alone, by meaning of texts in another language ("foreign").
    """

    ids: list[str]
    experience: list[str]
    slots: Array
    whole: bool
    success: Array
    uses: Array
    created: Array
    confidence: Array
    worth: Array
    fact: Array
    project: Array
    layer: Array
    kind: Array
    kinds: Mapping[str, int]
    language: Array
    vectors: dict[str, tuple[Array, Array]]
    postings: PostingsView
    unrelated: dict[str, NullDistribution] = field(default_factory=dict[str, NullDistribution])

    def of_kind(self, kind: str) -> Array:
        """Which of `slots` hold lessons of this kind of task."""
        return np.isin(self.kind[self.slots], [n for name, n in list(self.kinds.items()) if same_kind(kind, name)])

    def of_slots(self, column: Array) -> Array:
        """What a column has for `slots`."""
        return column if self.whole else column[self.slots]


class Query:
    """A query to the lessons of an index. The rankings of parts of them share it, so that each lesson is scored once.

    Args:
        terms: as `terms.weighted_terms` returns them.
        vector: unit; None: by words alone.
    """

    def __init__(
        self, columns: Columns, terms: tuple[Array, Array, Array], vector: Any, now: float, language: int = 0
    ) -> None:
        self.now, self.language = now, language
        self._postings, self._terms = columns.postings, terms
        self._vector = None if vector is None else np.asarray(vector, np.float32)
        self._cosines: dict[str, Array] = {}

    @cached_property
    def words(self) -> WordScores:
        return self._postings.scores(*self._terms)

    def cosines(self, columns: Columns, of: str) -> Array | None:
        """Of the lessons in these columns with the query; nan for those without a vector."""
        if self._vector is None or of not in columns.vectors:
            return None
        vectors, there = columns.vectors[of]
        if vectors.shape[1] != len(self._vector):
            return None
        if of not in self._cosines and 2 * len(columns.slots) <= len(vectors):
            some = cosines_of(vectors[columns.slots], self._vector)
            some[~there[columns.slots]] = np.nan
            return some
        if of not in self._cosines:
            self._cosines[of] = cosines_of(vectors, self._vector)
            self._cosines[of][~there] = np.nan
        return columns.of_slots(self._cosines[of])


class Ranking:
    """`core.ranking.Candidates` over an index's columns. Everything is computed once, when it is asked for."""

    def __init__(self, columns: Columns, query: Query) -> None:
        self._columns, self._query = columns, query
        self.now, self.n = query.now, len(columns.slots)
        self.ids: Sequence[str] = TextSelection(columns.ids, columns.slots)
        self.experience: Sequence[str] = TextSelection(columns.experience, columns.slots)
        self.success, self.uses = columns.of_slots(columns.success), columns.of_slots(columns.uses)
        self.created, self.confidence = columns.of_slots(columns.created), columns.of_slots(columns.confidence)
        self.worth = columns.of_slots(columns.worth)
        self._cosines: dict[str, Array | None] = {}

    def of_kind(self, kind: str) -> Array:
        """Which rows are lessons of this kind of task."""
        return self._columns.of_kind(kind)

    def fitting(self, least: float, kind: str) -> Ranking:
        """Without tactical lessons whose words are less relevant than this and that are of another kind of task."""
        columns = self._columns
        tactical = columns.layer[columns.slots] == LAYER_NUMBERS["tactical"]
        if not tactical.any():
            return self
        fits = ~tactical | (self.by_words() >= least) | columns.of_kind(kind)
        columns = replace(columns, slots=columns.slots[fits], whole=False)
        return Ranking(columns, self._query)

    def semantic(self, of: Literal["lesson", "query"] = "lesson") -> Array | None:
        if of not in self._cosines:
            cosines = self._query.cosines(self._columns, of)
            self._cosines[of] = None if cosines is None or np.isnan(cosines).all() else cosines
        return self._cosines[of]

    def lexical(self) -> Array:
        return self._columns.of_slots(self._query.words.scores)

    def coverage(self) -> Array:
        return self.lexical() / self._query.words.whole

    @property
    def by_chance(self) -> float:
        """What is taken from BM25 before it becomes relevance: a long query shares much with any lesson."""
        return max(self._query.words.chance - CHANCE, 0.0)

    def alike(self, rows: Sequence[int]) -> Array | None:
        if "lesson" not in self._columns.vectors:
            return None
        vectors: Array = self._columns.vectors["lesson"][0][self._columns.slots[np.asarray(rows, np.int64)]]
        return rounded(np.vecdot(vectors[:, None], vectors[None]))

    def relevance(self, scores: Array, by: Literal["lesson", "query", "lexical"]) -> Array:
        scores = np.asarray(scores, np.float64)
        if by == "lexical":
            size = self._columns.postings.total / LESSON
            return np.where(scores > 0, self._columns.unrelated["words"].relevance(scores - self.by_chance, size), 0.0)
        unrelated = self._columns.unrelated
        if scores.shape != (self.n,):
            return unrelated["meaning"].relevance(scores, self.n)
        relevance: Array
        if "foreign" not in unrelated:
            relevance = unrelated["meaning"].relevance(scores, self.n)
        else:  # of texts in two languages it says nothing
            same = self._columns.of_slots(self._columns.language) == self._query.language
            null = unrelated["foreign" if self._query.language else "meaning"]
            relevance = np.where(same, null.relevance(scores, float(same.sum())), 0.0)
            if self._query.language or not same.all():
                relevance = np.maximum(relevance, self.by_words() * (~same | bool(self._query.language)))
        relevance[self._columns.of_slots(self._query.words.share) == 1.0] = 1.0
        relevance[np.isnan(scores)] = np.nan
        return relevance

    def by_words(self) -> Array:
        # What holds nearly all words of the task fits it, however many other lessons hold them, too.
        return np.maximum(self.relevance(self.lexical(), "lexical"), self._columns.of_slots(self._query.words.share))

    def threshold(self, wanted: float | str | None) -> float | None:
        """A preset as the relevance that it stands for; anything else as it is."""
        return PRESETS[wanted] if isinstance(wanted, str) else wanted


def cosines_of(vectors: Array, vector: Array) -> Array:
    """Of each row with the vector, all unit. Row by row: a matrix product would keep other cores spinning for as long,
    and give equal rows unequal last digits."""
    return rounded(np.vecdot(vectors, vector))


KIND_RAISE = 0.05
"""A lesson of the task's kind comes before others that are more relevant by at most this."""
KIND_POOL = 20
"""Lessons among which those of the kind are looked for, at least; three times as many as are asked for, where that is
more."""


def rank_with_kind(retrieval: Retrieval, among: Ranking, top_k: int, threshold: float | None, kind: str) -> Ranked:
    """As the retrieval ranks, with lessons of this kind of task raised by `KIND_RAISE`.

    It gives as many lessons as without the kind, and only such as pass the threshold by themselves. Without a lesson of
    the kind it is what the retrieval gives.
    """
    plain = retrieval.rank(among, top_k, threshold)
    if not kind or not plain.rows or not (alike := among.of_kind(kind)).any():
        return plain
    pool = retrieval.rank(among, max(KIND_POOL, 3 * top_k), threshold)
    raised, least = list[float](), 1.0
    for row, score in zip(pool.rows, pool.scores, strict=True):
        least = min(least, score)  # the retrieval's order, which is not by relevance alone, holds within a kind
        raised.append(least + KIND_RAISE * bool(alike[row]))
    order = sorted(range(len(raised)), key=lambda n: -raised[n])[: len(plain.rows)]
    return replace(plain, rows=[pool.rows[n] for n in order], scores=[pool.scores[n] for n in order])
