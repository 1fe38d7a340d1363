"""How well clusters of embeddings find the kinds of tasks, by the cut that joins them: see README.md.

python studies/kinds/run.py [--embedder hash] [--held] [--at .45]
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from collections_of_tasks import Tasks, develop, held

from mulligan.bank.kinds.clusters import Cluster, centred, clusters, nearest
from mulligan.bank.recall.embedding import embed
from mulligan.core.ranking import Array
from mulligan.models.catalog import open_embedder

CUTS = [round(0.2 + 0.05 * n, 2) for n in range(13)]
LEAST = 3
FOREIGN = 60


@dataclass(frozen=True)
class Figures:
    clusters: float
    purity: float
    covered: float
    nmi: float
    later: float
    right: float
    foreign: float


@dataclass(frozen=True)
class Vectors:
    """A collection in a canonical order, with its vectors."""

    kinds: Sequence[str]
    vectors: Array

    @classmethod
    async def of(cls, tasks: Tasks, embedder: str) -> Vectors:
        ordered = sorted(set(tasks))
        return cls([kind for _, kind in ordered], await embed(open_embedder(embedder), [text for text, _ in ordered]))


def figures(one: Vectors, foreign: Array, cut: float, centre: bool) -> Figures:
    vectors = centred(one.vectors, one.vectors.mean(axis=0)) if centre else one.vectors
    found = clusters(vectors, cut, LEAST)
    labels = [f"alone {row}" for row in range(len(vectors))]
    for n, cluster in enumerate(found):
        for row in cluster.rows:
            labels[row] = f"cluster {n}"
    inside = sum(len(cluster.rows) for cluster in found)
    right = sum(_most(one.kinds, cluster)[1] for cluster in found)
    return Figures(
        len(found),
        right / inside if inside else 1.0,
        inside / len(vectors),
        nmi(labels, one.kinds),
        *_later(one, foreign, cut, centre),
    )


def _later(one: Vectors, foreign: Array, cut: float, centre: bool) -> tuple[float, float, float]:
    """Of every second task, the share that gets a kind, and of these the share with the right one; the share of the
    foreign tasks that gets one."""
    first, kinds = one.vectors[::2], one.kinds[::2]
    mean = first.mean(axis=0) if centre else 0.0
    shown, later, others = (centred(part, mean) if centre else part for part in (first, one.vectors[1::2], foreign))
    found = clusters(shown, cut, LEAST)
    if not found:
        return 0.0, 1.0, 0.0
    means = np.asarray([cluster.mean for cluster in found])
    names = [_most(kinds, cluster)[0] for cluster in found]
    of, similarity = nearest(later, means)
    given = zip(of.tolist(), similarity.tolist(), one.kinds[1::2], strict=True)
    right: list[bool] = [names[int(n)] == kind for n, much, kind in given if much >= cut]
    _, foreign_similarity = nearest(others, means)
    return len(right) / len(later), float(np.mean(right)) if right else 1.0, float((foreign_similarity >= cut).mean())


def _most(kinds: Sequence[str], cluster: Cluster) -> tuple[str, int]:
    """The most frequent kind of a cluster, and how many of its tasks have it."""
    return Counter(kinds[row] for row in cluster.rows).most_common(1)[0]


def nmi(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Normalised mutual information, by the arithmetic mean of the entropies."""
    n, both = len(ours), Counter(zip(ours, theirs, strict=True))
    a, b = Counter(ours), Counter(theirs)
    shared = sum(c / n * log(n * c / (a[x] * b[y])) for (x, y), c in both.items())
    entropies = [-sum(c / n * log(c / n) for c in counts.values()) for counts in (a, b)]
    return 2 * shared / sum(entropies) if sum(entropies) else 1.0


def foreigners(all_of: Mapping[str, Vectors], name: str) -> Array:
    """Tasks of the other collections, the same number of each."""
    others = [one.vectors for other, one in all_of.items() if other != name]
    each = FOREIGN // len(others)
    return np.concatenate([vectors[:: max(1, len(vectors) // each)][:each] for vectors in others])


def line(name: str, cut: float, row: Figures) -> str:
    shares = (row.purity, row.covered, row.nmi, row.later, row.right, row.foreign)
    return f"| {name} | {cut:.2f} | {row.clusters:.0f} | {' | '.join(f'{share:.2f}' for share in shares)} |"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--held", action="store_true", help="Look at the collection that was kept back.")
    parser.add_argument("--at", type=float, help="Each collection at this cut.")
    given = parser.parse_args()
    all_of = {name: await Vectors.of(tasks, given.embedder) for name, tasks in develop().items()}
    looked_at = {"held": await Vectors.of(held()["held"], given.embedder)} if given.held else all_of
    head = (
        "| | cut | clusters | purity | covered | NMI | later | right | foreign |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for centre in (False, True):
        print(f"\n{given.embedder}, {'centred' if centre else 'as it is'}\n\n{head}")
        for cut in CUTS if given.at is None else [given.at]:
            rows = {
                name: figures(one, foreigners({**all_of, name: one}, name), cut, centre)
                for name, one in looked_at.items()
            }
            if given.at is not None:
                for name, row in rows.items():
                    print(line(name, cut, row))
            columns = np.asarray([list(vars(row).values()) for row in rows.values()])
            print(line("mean", cut, Figures(*columns.mean(axis=0).tolist())))


if __name__ == "__main__":
    asyncio.run(main())
