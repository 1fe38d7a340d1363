"""Turn scores into relevance, 0 to 1: the share of banks of this size without a fitting lesson whose best scores less.

The more lessons there are, the better the best of them scores by chance. How scores of unrelated texts are spread is
shipped for words and for known embedders, so that it holds for the first lesson as for the thousandth; for an embedder
that nobody has measured it is estimated from the bank's own lessons, compared with each other. Until there are enough
of those, it errs on the side of giving. See design/037-what-a-recall-gives.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mulligan.core.ranking import Array

PRESETS = {"strict": 0.98, "standard": 0.9, "lenient": 0.5}
"""Relevance below which a lesson is not given. What each keeps and lets through: docs/retrieval.md."""


@dataclass(frozen=True)
class NullDistribution:
    """How the best score of a bank is spread where nothing fits: a Gumbel distribution.

    place, width: of a bank of one lesson. growth: what the place rises by when the bank grows by a factor of e. By
    meaning the size of a bank is how many lessons it has; by words, how many lessons of `LESSON` words its words make.
    """

    place: float
    width: float
    growth: float

    def relevance(self, scores: Array, size: float) -> Array:
        """Monotonic and smooth. nan stays nan."""
        place = self.place + self.growth * np.log(max(size, 1.0))
        return np.exp(-np.exp(np.minimum((place - np.asarray(scores, np.float64)) / self.width, 700.0)))


LESSON = 28
"""Words of a short lesson, by which the size of a bank is measured where words are compared."""

SHIPPED = {
    "words": NullDistribution(-0.085, 0.06, 0.046),
    "local:minilm-l6-v2": NullDistribution(0.036, 0.055, 0.03),
    "hash:384": NullDistribution(0.09, 0.08, 0.053),
}
"""Of words, and of embedders by the beginning of their id, read from what studies/retrieval/nulls.py prints."""

UNKNOWN = (0.2, 0.12, 2)
"""Mean and deviation of lessons with each other for an embedder that nobody has measured, and the lessons of the bank
that outweigh them."""


def shipped(embedder: str | None) -> NullDistribution | None:
    """That of a known embedder."""
    return next((null for name, null in SHIPPED.items() if (embedder or "").startswith(name)), None)


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
