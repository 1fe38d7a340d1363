"""Cluster vectors by average linkage, and give a vector the cluster whose members it is most like.

One measure serves both: the mean cosine. Two clusters become one while the mean cosine between their members is at least
`alike`, and a vector belongs to the cluster to whose members it has the highest mean cosine, if that is at least `alike`.
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
        mean: of its members' vectors, so that a product with it is a mean cosine.
        rows: that belong to it, the most like it first.
    """

    mean: Array
    rows: tuple[int, ...]


def clusters(vectors: Array, alike: float, least: int) -> list[Cluster]:
    """The clusters of unit vectors, the largest first; a row belongs to one at most.

    The members of a cluster are the rows that `nearest` gives to it.

    Args:
        vectors: A unit vector in each row.
        alike: The mean cosine that joins, above 0 and at most 1.
        least: How many rows a cluster has at least.
    """
    means = [vectors[rows].mean(axis=0) for rows in linked(vectors, alike) if len(rows) >= least]
    while means:
        of, likeness = nearest(vectors, np.asarray(means), alike)
        sizes = [int((of == n).sum()) for n in range(len(means))]
        if min(sizes) >= least:
            found = [np.flatnonzero(of == n) for n in range(len(means))]
            made = [
                Cluster(mean, tuple(rows[np.argsort(-likeness[rows], kind="stable")].tolist()))
                for mean, rows in zip(means, found, strict=True)
            ]
            return sorted(made, key=lambda one: (-len(one.rows), min(one.rows)))
        means = [mean for mean, size in zip(means, sizes, strict=True) if size >= least]
    return []


def nearest(vectors: Array, means: Array, alike: float) -> tuple[Array, Array]:
    """For each vector the number of the mean that it is most like, and how like; -1 where that is below `alike`."""
    likeness = vectors @ means.T
    of = likeness.argmax(axis=1)
    best = likeness[np.arange(len(vectors)), of]
    return np.where(best >= alike, of, -1), best


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
