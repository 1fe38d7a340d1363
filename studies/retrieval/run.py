"""How well each strategy finds what is needed, on two public sets; and what the presets of the threshold keep out.

    python studies/retrieval/run.py [--embedder local] [--presets] [--tune]

hit@1, recall@10 and nDCG@10 without a threshold. Settings were chosen on tau2's queries of odd number (`--tune` prints
what was tried), so the even ones are reported apart. docs/retrieval.md holds the tables.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from math import log2
from typing import Any, TypeAlias

import numpy as np
from sets import Set, tau, webarena

from mulligan.bank.index import Index
from mulligan.bank.postings import BM25
from mulligan.models.catalog import open_embedder
from mulligan.retrieval.cosine import Cosine
from mulligan.retrieval.fused import Fused
from mulligan.retrieval.hybrid import Hybrid

Find: TypeAlias = Callable[[Any], Sequence[int]]
"""The rows of the candidates, best first."""

NONE = 0.0


def by_bm25(among: Any) -> Sequence[int]:
    return np.argsort(-among.lexical(), kind="stable").tolist()


STRATEGIES: dict[str, Find] = {
    "BM25": by_bm25,
    "cosine": lambda among: Cosine().rank(among, 11).rows,
    "hybrid": lambda among: Hybrid(NONE).rank(among, 11).rows,
    "fused": lambda among: Fused(NONE).rank(among, 11).rows,
}


def scored(of: Set, index: Index, find: Find, numbers: Sequence[int]) -> tuple[float, float, float]:
    """hit@1, recall@10, nDCG@10, over the queries that need something."""
    hits, recalls, gains = list[float](), list[float](), list[float]()
    for n in numbers:
        if not (needed := of.needed[n]):
            continue
        among = index.candidates(of.queries[n], of.query_vectors[n])
        first = [id for row in find(among)[:11] if (id := among.ids[row]) != of.own[n]][:10]
        right = [id in needed for id in first]
        best = sum(1 / log2(i + 2) for i in range(min(10, len(needed))))
        hits.append(float(right[0]))
        recalls.append(sum(right) / len(needed))
        gains.append(sum(1 / log2(i + 2) for i, one in enumerate(right) if one) / best)
    return float(np.mean(hits)), float(np.mean(recalls)), float(np.mean(gains))


def quality(sets: list[Set], embedder: str) -> None:
    print("| set, queries | strategy | hit@1 | recall@10 | nDCG@10 |\n|---|---|--:|--:|--:|")
    for of in sets:
        index, every = of.index(embedder), range(len(of.queries))
        halves = {"all": every, "odd (tuned on)": every[1::2], "even": every[::2]}
        for which, numbers in halves.items() if of.name.startswith("tau2") else [("all", every)]:
            for name, find in STRATEGIES.items():
                hit, recall, gain = scored(of, index, find, numbers)
                print(f"| {of.name}, {which} | {name} | {hit:.2f} | {recall:.3f} | {gain:.3f} |")


# --- presets ------------------------------------------------------------------------------------------------------


def given(bank: Index, of: Set, n: int, threshold: float, words: bool, itself: str) -> list[str]:
    """What the bank answers to this query, at most three lessons, by their ids."""
    among = bank.candidates(of.queries[n], None if words else of.query_vectors[n])
    ids = [among.ids[row] for row in Fused(threshold).rank(among, 4).rows]
    return [id for id in ids if id != itself][:3]


def drawn(of: Set, size: int, embedder: str, chance: random.Random) -> list[tuple[Index, int]]:
    """60 banks of so many lessons, each with a query that one of them helps with; the largest bank is made once."""
    asking = [n for n, needed in enumerate(of.needed) if needed]
    if size >= 500:
        bank = of.index(embedder)
        return [(bank, n) for n in chance.sample(asking, min(60, len(asking)))]
    number = {lesson.id: i for i, lesson in enumerate(of.lessons)}
    found: list[tuple[Index, int]] = []
    for n in chance.choices(asking, k=60):
        helps = number[chance.choice(sorted(of.needed[n]))]
        others = [
            i for i in chance.sample(range(len(of.lessons)), size) if i != helps and of.lessons[i].id != of.own[n]
        ]
        found.append((of.index(embedder, sorted([helps, *others[: size - 1]])), n))
    return found


def presets(banking: Set, tasks: Set, embedder: str) -> None:
    """Of banks of several sizes: how often something needed is among the three given, and how often nothing is given
    to a query of the other set, which needs nothing here."""
    chance = random.Random(1)
    levels = (0.9, 0.95, 0.97, 0.98, 0.99)
    print("| bank | by | " + " | ".join(f"≥ {level}" for level in levels) + " |\n|---|---|" + "--:|" * len(levels))
    for of, other in ((banking, tasks), (tasks, banking)):
        for size in (1, 10, 100, len(of.lessons)):
            draws = drawn(of, size, embedder, chance)
            foreign = [chance.randrange(len(other.queries)) for _ in draws]
            for words in (False, True):
                cells: list[str] = []
                for level in levels:
                    right = [set(given(b, of, n, level, words, of.own[n])) & of.needed[n] for b, n in draws]
                    silent = [given(b, other, n, level, words, "") for (b, _), n in zip(draws, foreign, strict=True)]
                    share = [sum(map(bool, found)) / len(draws) for found in (right, silent)]
                    cells.append(f"{share[0]:.2f}, {1 - share[1]:.2f}")
                print(f"| {size} of {of.name} | {'words' if words else 'both'} | {' | '.join(cells)} |")


# --- tuning -------------------------------------------------------------------------------------------------------


def tune(of: Set, embedder: str) -> None:
    numbers = range(1, len(of.queries), 2)

    def report(name: str, index: Index, find: Find) -> None:
        hit, recall, gain = scored(of, index, find, numbers)
        print(f"{name:44} hit@1 {hit:.2f}  recall@10 {recall:.3f}  nDCG@10 {gain:.3f}")

    for k1, b, k3, common in (
        (1.2, 0.75, 8, 1),
        (1.5, 0.75, 8, 0.5),
        (2, 0.9, 8, 1),
        (2, 0.9, 2, 0.5),
        (2, 0.9, 8, 0.5),
    ):
        report(f"BM25 {k1=} {b=} {k3=} {common=}", of.index(embedder, bm25=BM25(k1, b, k3, common)), by_bm25)
    index = of.index(embedder)
    for k in (10, 30, 60, 100):
        for meaning in (0.7, 1, 1.5, 2, 3):
            for depth in (50, 100, 300, 1000):
                fused = Fused(NONE, k=k, meaning=meaning, depth=depth, diversity=0)
                report(
                    f"fused {k=} {meaning=} {depth=} without diversity", index, lambda a, f=fused: f.rank(a, 10).rows
                )
    for diversity in (0.0, 0.05, 0.1, 0.2, 0.3, 0.5):
        fused = Fused(NONE, diversity=diversity)
        report(f"fused {diversity=}", index, lambda a, f=fused: f.rank(a, 10).rows)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--presets", action="store_true")
    parser.add_argument("--tune", action="store_true")
    asked = parser.parse_args()
    embedder = open_embedder(asked.embedder)
    print(f"embedder: {embedder.id}\n")
    banking, tasks = await tau().embed(embedder), await webarena().embed(embedder)
    if asked.tune:
        tune(banking, embedder.id)
    elif asked.presets:
        presets(banking, tasks, embedder.id)
    else:
        quality([banking, tasks], embedder.id)


if __name__ == "__main__":
    asyncio.run(main())
