"""Cluster vectors by average linkage, and give a vector the cluster whose members it is most like.

One measure serves both: the mean cosine. Two clusters become one while the mean cosine between their members is at
least `alike`, and a vector belongs to the cluster to whose members it has the highest mean cosine, if that is at least
`alike`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mulligan.core.ranking import Array


@dataclass(frozen=True)
class Cluster:
    """A cluster of rows of the vectors that were clustered.

    Attributes:
        mean: of the vectors that it was made from, so that a product with it is a mean cosine.
        rows: that belong to it, the most like it first.
        similarities: of each of them with the mean.
    """

    mean: Array
    rows: tuple[int, ...]
    similarities: tuple[float, ...]


def centred(vectors: Array, centre: Array) -> Array:
    """Unit vectors without what they all share, as unit vectors. centre: the mean of the vectors that are clustered."""
    moved = vectors - centre
    return moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)


def clusters(vectors: Array, alike: float, least: int) -> list[Cluster]:
    """The clusters of unit vectors, the largest first; a row belongs to one at most.

    The members of a cluster are the rows that `nearest` gives to it with a mean cosine of at least `alike`.

    Args:
        vectors: A unit vector in each row.
        alike: The mean cosine that joins, above 0 and at most 1.
        least: How many rows a cluster has at least.
    """
    means: list[Array] = [vectors[rows].mean(axis=0) for rows in linked(vectors, alike) if len(rows) >= least]
    while means:
        of, similarity = nearest(vectors, np.asarray(means))
        members = [np.flatnonzero((of == n) & (similarity >= alike)) for n in range(len(means))]
        if min(map(len, members)) >= least:
            found = [_cluster(mean, rows, similarity) for mean, rows in zip(means, members, strict=True)]
            return sorted(found, key=lambda one: (-len(one.rows), min(one.rows)))
        means = [mean for mean, rows in zip(means, members, strict=True) if len(rows) >= least]
    return []


def _cluster(mean: Array, rows: Array, similarity: Array) -> Cluster:
    ordered = rows[np.argsort(-similarity[rows], kind="stable")]
    return Cluster(mean, tuple(ordered.tolist()), tuple(similarity[ordered].tolist()))


def nearest(vectors: Array, means: Array) -> tuple[Array, Array]:
    """For each vector the number of the mean that it has the highest product with, and that product."""
    similarity = vectors @ means.T
    of = similarity.argmax(axis=1)
    return of, similarity[np.arange(len(vectors)), of]


def linked(vectors: Array, alike: float) -> list[Sequence[int]]:
    """Groups of rows by average linkage. Of pairs that are equally alike, the first are joined first."""
    count = len(vectors)
    between = np.asarray(vectors, np.float64) @ np.asarray(vectors, np.float64).T
    np.fill_diagonal(between, -np.inf)
    groups: list[list[int]] = [[row] for row in range(count)]
    for _ in range(count - 1):
        first, second = divmod(int(between.argmax()), count)
        if between[first, second] < alike:
            break
        first, second = sorted((first, second))
        of_first, of_second = len(groups[first]), len(groups[second])
        joined = (of_first * between[first] + of_second * between[second]) / (of_first + of_second)
        between[first] = between[:, first] = joined
        between[second] = between[:, second] = -np.inf
        between[first, first] = -np.inf
        groups[first] += groups[second]
        groups[second] = []
    return [group for group in groups if group]
