"""BM25 over the lessons of one agent, held in memory. It knows numbered slots and hashed terms, no lessons.

Postings are kept as a few sorted segments, each at least twice as long as the next, so that adding a lesson costs
the logarithm of what is there; what was added last is sorted when somebody asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mulligan.core.ranking import Array

TAIL = 1 << 15
"""Postings that are sorted anew at each question after a change, before they become a segment."""


@dataclass(frozen=True)
class BM25:
    """k1: how soon repetitions in a lesson stop counting. b: how far long lessons are held back, 0 to 1. common: terms
    of more than this share of the lessons, and of more than `FEW`, are skipped, unless the query holds no other. most:
    terms of a query that count, the heaviest. Chosen in studies/retrieval (design/036-ranking.md).
    """

    k1: float = 1.5
    b: float = 0.75
    common: float = 0.5
    most: int = 64


FEW = 10
YOUNG = 20
"""Lessons after which a bank's own count of a term weighs as much as how common the term is anywhere."""
SHORT = 400.0
"""Keeps the scale of a short query from falling with each word that it lacks (squared weights: about 30 rare words)."""


@dataclass(frozen=True)
class Found:
    """What a query's words find: BM25 for each slot (float64), and what it is divided by.

    share: of the query's words, by how rare they are anywhere, that each slot holds, 0 to 1. whole: gives the share by
    their weight in this bank. length: gives scores that compare between short and long queries.
    """

    scores: Array
    share: Array
    whole: float = 1.0
    length: float = 1.0


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

    def held(self, lengths: Array, alive: Array | None) -> Held:
        """As they are now, whatever is added later. lengths: of the lessons, in terms; alive: which slots count, in
        scores and statistics, None for all."""
        if self._tail:
            self._tail = [np.concatenate(self._tail)]
            return Held(self._bm25, (*self._segments, Segment(self._tail[0].copy())), lengths, alive)
        return Held(self._bm25, tuple(self._segments), lengths, alive)


class Held:
    """Postings at one moment: they answer queries and never change. total: words of all lessons."""

    def __init__(self, bm25: BM25, segments: tuple[Segment, ...], lengths: Array, alive: Array | None) -> None:
        self._bm25, self._segments, self._lengths, self._alive = bm25, segments, lengths, alive
        self._n = len(lengths) if alive is None else int(np.count_nonzero(alive))
        self.total = float(lengths.sum() if alive is None else lengths[alive].sum())
        mean = self.total / self._n if self.total else 1.0
        self._held = (bm25.k1 * (1 - bm25.b + bm25.b * lengths / mean)).astype(np.float32)

    def scores(self, hashes: Array, counts: Array, anywhere: Array) -> Found:
        """hashes: the terms of the query, each once. counts: how often it stands there. anywhere: the share of texts
        that hold it, which counts for `YOUNG` lessons of the bank."""
        none = np.zeros(len(self._lengths))
        if not self._n or not len(hashes):
            return Found(none, none)
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
            return Found(none, none)
        slots = np.concatenate([part[1] for part in used])
        times = np.concatenate([part[2] for part in used]).astype(np.float32)
        weight = np.repeat([weights[part[0]] for part in used], [len(part[1]) for part in used])
        weight *= times * np.float32(self._bm25.k1 + 1) / (times + self._held[slots])
        scores = np.bincount(slots, weights=weight, minlength=len(none))
        whole = float(weights[heavy].sum()) * (self._bm25.k1 + 1)
        share = np.zeros(len(none))
        for term, slots, _ in found:
            share[slots] += -np.log(anywhere[term])
        share /= -np.log(anywhere).sum()
        return Found(scores, share, whole, float(np.sqrt(SHORT + (weights[heavy] ** 2).sum())))

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
