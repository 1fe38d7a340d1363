"""Scores as relevance, 0 to 1: the share of unrelated pairs of query and lesson that score less.

How unrelated pairs score depends on the embedder and on the bank: within one trade everything is a little alike. So
the place and width of their distribution are estimated from the bank's own lessons, compared with each other; while the
bank is young they lean on the ones shipped for the embedder. Its shape is the shipped one, so that the tail, which no
bank has enough pairs for, is smooth and never reaches 1. See design/010-lexical-retrieval.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mulligan.bank.nulls import LEVELS, SHIPPED
from mulligan.bank.postings import Held
from mulligan.core.ranking import Array

PRESETS = {"strict": 0.99, "standard": 0.97, "lenient": 0.9}
"""Relevance below which a lesson is not given. What each keeps and lets through: docs/retrieval.md."""

YOUNG = 20
"""Lessons after which the bank's own distribution counts as much as the shipped one."""

UNKNOWN = (0.3, 0.15, SHIPPED["local:minilm-l6-v2", "lesson"][2])
"""Of an embedder that none is shipped for; a few lessons of the bank outweigh it."""

_HAZARD = -np.log1p(-np.asarray(LEVELS))


@dataclass(frozen=True)
class Null:
    """How unrelated pairs score: mean, deviation, and shape (scores in deviations at `LEVELS`).

    weight: lessons that the shipped numbers count for. bounds: how far the bank may move the mean up, and the deviation
    down and up, in shipped deviations; a bank where all lessons say one thing would call nothing relevant otherwise.
    """

    mean: float
    sd: float
    shape: tuple[float, ...]
    weight: int = YOUNG
    bounds: tuple[float, float, float] | None = (1.5, 0.7, 1.5)

    def fitted(self, scores: Array, lessons: int) -> Null:
        """With the scores of the bank's own pairs taken in, of so many lessons."""
        if not len(scores):
            return self
        share = lessons / (lessons + self.weight)
        mean = share * float(scores.mean()) + (1 - share) * self.mean
        sd = float(np.sqrt(share * float(scores.var()) + (1 - share) * self.sd**2))
        if self.bounds:
            up, least, most = self.bounds
            mean = min(mean, self.mean + up * self.sd)
            sd = min(max(sd, least * self.sd), most * self.sd)
        return replace(self, mean=mean, sd=max(sd, 1e-6))

    def relevance(self, scores: Array) -> Array:
        """Monotonic and smooth; beyond the last level the tail falls on as it fell before. nan stays nan."""
        at = (np.asarray(scores, np.float64) - self.mean) / self.sd
        shape = np.asarray(self.shape)
        hazard = np.interp(at, shape, _HAZARD)
        steep = (_HAZARD[-1] - _HAZARD[-2]) / (shape[-1] - shape[-2])
        hazard += np.maximum(at - shape[-1], 0) * steep
        low = at < shape[0]
        if low.any():
            hazard[low] = _HAZARD[0] * np.exp(2 * (at[low] - shape[0]))
        return -np.expm1(-hazard)


def shipped(part: str, embedder: str | None) -> Null:
    """The distribution to begin with: of an embedder's "lesson" or "query" cosines, or "lexical"."""
    if part == "lexical":
        return Null(*SHIPPED["", "lexical"], bounds=(3.0, 0.5, 2.0))
    for (name, known), numbers in SHIPPED.items():
        if name and known == part and (embedder or "").startswith(name):
            return Null(*numbers)
    return Null(*UNKNOWN, weight=4, bounds=None)


def semantic_pairs(vectors: Array, there: Array, slots: Array, labels: Array, most: int = 256) -> Array:
    """Cosines of lessons with each other, those of one experience (label) left out; of at most so many lessons."""
    has = there[slots]
    slots, labels = _spread(slots[has], most), _spread(labels[has], most)
    cosines = np.vecdot(vectors[slots][:, None], vectors[slots][None])
    return cosines[labels[:, None] != labels]


def lexical_pairs(postings: Held, slots: Array, labels: Array, most: int = 16) -> Array:
    """BM25 in its scale of at most so many lessons as queries against all, those of one experience left out."""
    asking, whose = _spread(slots, most), _spread(labels, most)
    found: list[Array] = []
    for (hashes, counts), label in zip(postings.terms(asking), whose, strict=True):
        scores, scale = postings.scores(hashes, counts)
        found.append(scores[slots[labels != label]] / scale)
    return np.concatenate(found) if found else np.zeros(0)


def _spread(column: Array, most: int) -> Array:
    """At most so many of a column, spread evenly."""
    return column[np.linspace(0, len(column) - 1, most).astype(np.int64)] if len(column) > most else column
