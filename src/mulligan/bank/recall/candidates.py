"""Rank the lessons of an index for a query: by words (BM25 over postings) and by meaning, calibrated to relevance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from mulligan.core.ranking import Array, Ranked, Retrieval
from mulligan.core.records import LAYERS, same_kind

MAX_TAIL = 1 << 15
"""New postings are sorted at each query until there are this many; then they become a segment."""


@dataclass(frozen=True)
class BM25:
    """Parameters of BM25, chosen in studies/retrieval (design/036).

    Attributes:
        k1: how soon repetitions in a lesson stop counting.
        b: how strongly long lessons are held back, 0 to 1.
        common: terms in more than this share of the lessons, and in more than `FEW`, are skipped, unless the query has
            no others.
        most: how many terms of a query count, the heaviest first.
    """

    k1: float = 1.5
    b: float = 0.75
    common: float = 0.5
    most: int = 64


DIGITS = 6
"""Decimal places of a cosine, a share and a relevance. So equal lessons get equal scores, and age decides ties; and a
sum that should be 1 is 1."""


def rounded(scores: Array) -> Array:
    return scores.round(DIGITS)


FEW = 10
"""A term in at most this many lessons never counts as common."""
YOUNG = 20
"""In a bank of this size, its own count of a term weighs as much as how common the term is anywhere."""
LESSON_WORDS = 28
"""Words of a short lesson. Where words are compared, the size of a bank is its words divided by this."""
CHANCE = 3.5
"""The BM25 score that a short query may get by chance. What a longer one may get beyond it is subtracted."""


@dataclass(frozen=True)
class WordScores:
    """How well the words of a query match each lesson.

    Attributes:
        scores: BM25 for each slot (float64).
        share: the share of the query's words that each slot holds, 0 to 1, weighted by how rare they are anywhere.
        highest: the score of a lesson that holds all words often.
        chance: the expected score of an unrelated lesson of average length.
    """

    scores: Array
    share: Array
    highest: float = 1.0
    chance: float = 0.0


class Segment:
    """Postings sorted by term: `slots[starts[i]:starts[i + 1]]` hold the term `hashes[i]`; `counts` says how often."""

    hashes: Array
    starts: Array

    def __init__(self, keys: Array) -> None:
        """keys: one uint64 per posting, hash << 32 | slot << 8 | count. They are sorted in place."""
        keys.sort()
        terms = (keys >> np.uint64(32)).astype(np.uint32)
        is_first: Array = np.ones(len(keys), np.bool_)
        is_first[1:] = terms[1:] != terms[:-1]
        first: Array = np.flatnonzero(is_first)
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
        """The start and end of the postings of each hash; equal if there are none."""
        if not len(self.hashes):
            return np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
        positions = np.asarray(np.searchsorted(self.hashes, hashes), np.int64)
        positions[positions == len(self.hashes)] = 0
        starts, ends = self.starts[positions], self.starts[positions + 1]
        missing = self.hashes[positions] != hashes
        ends[missing] = starts[missing]
        return starts, ends


def packed(hashes: Array, slots: Array, counts: Array) -> Array:
    """Postings as the keys of a segment. The largest slot is 16,777,215."""
    return (hashes.astype(np.uint64) << np.uint64(32)) | (slots.astype(np.uint64) << np.uint64(8)) | counts


class Postings:
    """All postings of an index. The caller numbers the slots and never reuses a number."""

    def __init__(self, bm25: BM25 = BM25()) -> None:
        self._bm25 = bm25
        self._segments: list[Segment] = []
        self._tail: list[Any] = []

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self._segments) + 8 * sum(len(part) for part in self._tail)

    def add(self, hashes: Array, slots: Array, counts: Array) -> None:
        self._tail.append(packed(hashes, slots, counts))
        if sum(len(part) for part in self._tail) < MAX_TAIL:
            return
        keys = np.concatenate(self._tail)
        self._tail = []
        while self._segments and len(self._segments[-1]) < 2 * len(keys):
            keys = np.concatenate((self._segments.pop().keys(), keys))
        self._segments.append(Segment(keys))

    def compact(self, moved: Array) -> None:
        """Gives slot `old` the new number `moved[old]`, and removes the postings of slots for which that is -1."""
        keys = np.concatenate([np.zeros(0, np.uint64), *(segment.keys() for segment in self._segments), *self._tail])
        slots = moved[((keys >> np.uint64(8)) & np.uint64(0xFFFFFF)).astype(np.int64)]
        alive = slots >= 0
        keys = keys[alive] & np.uint64(0xFFFFFFFF000000FF) | (slots[alive].astype(np.uint64) << np.uint64(8))
        self._segments, self._tail = [Segment(keys)], []

    def view(self, lengths: Array, alive: Array | None) -> PostingsView:
        """The postings as they are now, whatever is added later.

        lengths: the length of each lesson in terms. alive: which slots count; None: all.
        """
        if self._tail:
            self._tail = [np.concatenate(self._tail)]
            return PostingsView(self._bm25, (*self._segments, Segment(self._tail[0].copy())), lengths, alive)
        return PostingsView(self._bm25, tuple(self._segments), lengths, alive)


class _TermPostings(NamedTuple):
    """The slots that hold a term of a query, with how often each holds it. term: its position in the query."""

    term: int
    slots: Array
    counts: Array


class PostingsView:
    """The postings at one moment, which answer queries and never change. total: the number of terms in all lessons."""

    def __init__(self, bm25: BM25, segments: tuple[Segment, ...], lengths: Array, alive: Array | None) -> None:
        self._bm25, self._segments, self._lengths, self._alive = bm25, segments, lengths, alive
        self._n = len(lengths) if alive is None else int(np.count_nonzero(alive))
        self.total = float(lengths.sum() if alive is None else lengths[alive].sum())
        self._mean = self.total / self._n if self.total else 1.0
        self._length_penalty = (bm25.k1 * (1 - bm25.b + bm25.b * lengths / self._mean)).astype(np.float32)

    def scores(self, hashes: Array, counts: Array, anywhere: Array) -> WordScores:
        """Scores all lessons for a query.

        Args:
            hashes: The terms of the query, each once.
            counts: How often each term occurs in the query.
            anywhere: The share of texts that hold each term. It weighs as much as `YOUNG` lessons of the bank.
        """
        none = np.zeros(len(self._lengths))
        if not self._n or not len(hashes):
            return WordScores(none, none)
        postings = self._postings_of(hashes)
        holding = np.zeros(len(hashes), np.int64)  # how many lessons hold each term
        for posting in postings:
            holding[posting.term] += len(posting.slots)
        estimate = holding + YOUNG * anywhere
        weights = np.log1p((self._n + YOUNG - estimate + 0.5) / (estimate + 0.5)) * counts
        heavy = np.zeros(len(hashes), np.bool_)
        heavy[np.argsort(-weights, kind="stable")[: self._bm25.most]] = True
        rare = heavy & (holding <= max(self._bm25.common * self._n, FEW))
        counted = rare if (rare & (holding > 0)).any() else heavy
        used = [posting for posting in postings if counted[posting.term]]
        if not used:
            return WordScores(none, none)
        slots = np.concatenate([posting.slots for posting in used])
        times = np.concatenate([posting.counts for posting in used]).astype(np.float32)
        weight = np.repeat([weights[posting.term] for posting in used], [len(posting.slots) for posting in used])
        weight *= times * np.float32(self._bm25.k1 + 1) / (times + self._length_penalty[slots])
        scores = np.bincount(slots, weights=weight, minlength=len(none))
        highest = float(weights[heavy].sum()) * (self._bm25.k1 + 1)
        share = np.zeros(len(none))
        for posting in postings:
            share[posting.slots] += -np.log(anywhere[posting.term])
        share = rounded(share / -np.log(anywhere).sum())
        by_chance = 1 - (1 - anywhere[heavy]) ** (self._mean / LESSON_WORDS)
        return WordScores(scores, share, highest, float((weights[heavy] * by_chance).sum()))

    def _postings_of(self, hashes: Array) -> list[_TermPostings]:
        """The postings of the terms of a query. A term may have several, from several segments."""
        postings: list[_TermPostings] = []
        for segment in self._segments:
            starts, ends = segment.spans(hashes)
            for term in np.flatnonzero(ends > starts).tolist():
                slots, counts = segment.slots[starts[term] : ends[term]], segment.counts[starts[term] : ends[term]]
                if self._alive is not None:
                    live = self._alive[slots]
                    slots, counts = slots[live], counts[live]
                if len(slots):
                    postings.append(_TermPostings(term, slots, counts))
        return postings


PRESETS = {"strict": 0.98, "standard": 0.9, "lenient": 0.5}
"""The relevance below which a lesson is not recalled. docs/retrieval.md says how many lessons each lets through."""


@dataclass(frozen=True)
class NullDistribution:
    """The distribution of the best score in a bank in which no lesson fits: a Gumbel distribution.

    The size of a bank is its number of lessons if meanings are compared, and its words divided by `LESSON_WORDS` if
    words are compared.

    Attributes:
        place, width: the parameters for a bank of one lesson.
        growth: how much `place` rises when the bank grows by a factor of e.
    """

    place: float
    width: float
    growth: float

    def relevance(self, scores: Array, size: float) -> Array:
        """The probability, 0 to 1, that the best of unrelated lessons scores lower. nan stays nan."""
        place = self.place + self.growth * np.log(max(size, 1.0))
        return rounded(np.exp(-np.exp(np.minimum((place - np.asarray(scores, np.float64)) / self.width, 700.0))))


SHIPPED = {
    "words": NullDistribution(-2.0, 1.3, 1.05),
    "local:minilm-l6-v2": NullDistribution(0.033, 0.057, 0.04),
    "local:multilingual-e5-small": NullDistribution(0.224, 0.047, 0.042),
    "hash:384": NullDistribution(0.09, 0.08, 0.053),
}
"""For words, and for embedders by the beginning of their id, as studies/retrieval/nulls.py prints them."""

UNKNOWN = (0.2, 0.12, 2)
"""For an embedder that was not measured: the mean and the deviation of the cosines of unrelated lessons, and how many
lessons of a bank weigh as much as these."""

FOREIGN = {"local:minilm-l6-v2": NullDistribution(0.34, 0.1, 0.05)}
"""For embedders that know only English, and two texts in another language: their language alone makes them similar."""


def shipped(embedder: str | None, known: Mapping[str, NullDistribution] = SHIPPED) -> NullDistribution | None:
    """The distribution of an embedder; None if it is not known."""
    return next((null for name, null in known.items() if (embedder or "").startswith(name)), None)


def estimated(cosines: Array, lessons: int) -> NullDistribution:
    """The distribution of an unknown embedder, from the cosines of this many lessons with each other.

    The factors allow for lessons being a little more similar to each other than to a task.
    """
    mean, sd, weight = UNKNOWN
    if len(cosines):
        share = lessons / (lessons + weight)
        mean = share * float(cosines.mean()) + (1 - share) * mean
        sd = float(np.sqrt(share * float(cosines.var()) + (1 - share) * sd**2))
    sd = max(sd, 1e-6)
    return NullDistribution(mean - 0.45 * sd, 0.5 * sd, 0.3 * sd)


def pairs(vectors: Array, there: Array, slots: Array, labels: Array, most: int = 256) -> Array:
    """The cosines between lessons of different experiences (labels), for at most this many lessons."""
    embedded = there[slots]
    slots, labels = _spread(slots[embedded], most), _spread(labels[embedded], most)
    cosines = np.vecdot(vectors[slots][:, None], vectors[slots][None])
    return cosines[labels[:, None] != labels]


def _spread(column: Array, most: int) -> Array:
    """At most this many values of a column, evenly spread over it."""
    return column[np.linspace(0, len(column) - 1, most).astype(np.int64)] if len(column) > most else column


class TextSelection(Sequence[str]):
    """A view of the texts at some positions of a list."""

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
"""The number of each layer in the column of layers; 0 stands for none."""


@dataclass(frozen=True)
class Columns:
    """The content of an index at one moment, in arrays with one row per slot.

    Attributes:
        slots: the slots of the active lessons, oldest first.
        whole: whether `slots` are all slots in order, so that columns need not be indexed by them.
        project, kind: the number of the project, and of the kind of task, whose numbers are in `kinds`.
        language: the language, as `terms.language_of` returns it.
        layer: the number of the layer: see `LAYER_NUMBERS`.
        vectors: by part, the unit vectors (float32), and which slots have one.
        unrelated: the scores of unrelated texts by "words" and "meaning". If the embedder knows only English, also by
            meaning of texts in another language ("foreign").
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
        """The values of a column for `slots`."""
        return column if self.whole else column[self.slots]


class Query:
    """A query to an index. Rankings of different lessons share it, so that each lesson is scored only once.

    Args:
        terms: As `terms.weighted_terms` returns them.
        vector: The unit vector of the query; None compares words alone.
        language: As `terms.language_of` returns it.
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
        """The cosines of the query with the lessons in these columns; nan for lessons without a vector."""
        if self._vector is None or of not in columns.vectors:
            return None
        vectors, there = columns.vectors[of]
        if vectors.shape[1] != len(self._vector):
            return None
        if of not in self._cosines and 2 * len(columns.slots) <= len(vectors):
            cosines = cosines_of(vectors[columns.slots], self._vector)
            cosines[~there[columns.slots]] = np.nan
            return cosines
        if of not in self._cosines:
            self._cosines[of] = cosines_of(vectors, self._vector)
            self._cosines[of][~there] = np.nan
        return columns.of_slots(self._cosines[of])


class Ranking:
    """`core.ranking.Candidates` over the columns of an index. Each score is computed once, when it is first needed."""

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
        """The ranking without tactical lessons for another kind of task whose words are less relevant than this."""
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
        return self.lexical() / self._query.words.highest

    @property
    def by_chance(self) -> float:
        """The part of BM25 that is not relevance: a long query shares many words with any lesson."""
        return max(self._query.words.chance - CHANCE, 0.0)

    def alike(self, rows: Sequence[int]) -> Array | None:
        if "lesson" not in self._columns.vectors:
            return None
        vectors: Array = self._columns.vectors["lesson"][0][self._columns.slots[np.asarray(rows, np.int64)]]
        return rounded(np.vecdot(vectors[:, None], vectors[None]))

    def relevance(self, scores: Array, by: Literal["lesson", "query", "lexical"]) -> Array:
        scores = np.asarray(scores, np.float64)
        if by == "lexical":
            size = self._columns.postings.total / LESSON_WORDS
            return np.where(scores > 0, self._columns.unrelated["words"].relevance(scores - self.by_chance, size), 0.0)
        unrelated = self._columns.unrelated
        if scores.shape != (self.n,):
            return unrelated["meaning"].relevance(scores, self.n)
        relevance: Array
        if "foreign" not in unrelated:
            relevance = unrelated["meaning"].relevance(scores, self.n)
        else:  # cosines of texts in two languages say nothing
            same = self._columns.of_slots(self._columns.language) == self._query.language
            null = unrelated["foreign" if self._query.language else "meaning"]
            relevance = np.where(same, null.relevance(scores, float(same.sum())), 0.0)
            if self._query.language or not same.all():
                relevance = np.maximum(relevance, self.by_words() * (~same | bool(self._query.language)))
        relevance[self._columns.of_slots(self._query.words.share) == 1.0] = 1.0
        relevance[np.isnan(scores)] = np.nan
        return relevance

    def by_words(self) -> Array:
        # A lesson that holds nearly all words of the task fits it, however many other lessons hold them, too.
        return np.maximum(self.relevance(self.lexical(), "lexical"), self._columns.of_slots(self._query.words.share))

    def threshold(self, wanted: float | str | None) -> float | None:
        """The relevance that a preset stands for; any other threshold as it is."""
        return PRESETS[wanted] if isinstance(wanted, str) else wanted


def cosines_of(vectors: Array, vector: Array) -> Array:
    """The cosine of each row with the vector; all are unit vectors.

    Not a matrix product: that would keep the other cores busy for as long, and differ in the last digits of equal rows.
    """
    return rounded(np.vecdot(vectors, vector))


KIND_RAISE = 0.05
"""A lesson for the task's kind ranks before others that are more relevant by at most this."""
KIND_POOL = 20
"""Lessons for the kind are looked for among this many, or three times as many as are requested if that is more."""


def rank_with_kind(retrieval: Retrieval, lessons: Ranking, top_k: int, threshold: float | None, kind: str) -> Ranked:
    """Ranks lessons as the retrieval strategy does, with those for this kind of task raised by `KIND_RAISE`.

    The result has as many lessons as without the kind, and all of them reach the threshold without being raised.
    """
    plain = retrieval.rank(lessons, top_k, threshold)
    if not kind or not plain.rows or not (of_kind := lessons.of_kind(kind)).any():
        return plain
    pool = retrieval.rank(lessons, max(KIND_POOL, 3 * top_k), threshold)
    raised, lowest = list[float](), 1.0
    for row, score in zip(pool.rows, pool.scores, strict=True):
        # The strategy may rank by more than relevance. `lowest` keeps its order within the kind and outside of it.
        lowest = min(lowest, score)
        raised.append(lowest + KIND_RAISE * bool(of_kind[row]))
    order = sorted(range(len(raised)), key=lambda n: -raised[n])[: len(plain.rows)]
    return replace(plain, rows=[pool.rows[n] for n in order], scores=[pool.scores[n] for n in order])
