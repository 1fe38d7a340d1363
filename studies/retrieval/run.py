"""How well lessons are found, and what is given of what is found. docs/retrieval.md holds the tables.

    python studies/retrieval/run.py [--embedder local]            ranking, beside bm25s with its defaults and cosine
    python studies/retrieval/run.py --young [--embedder local]    what a recall gives, banks of 1 to 50 lessons
    python studies/retrieval/run.py --elsewhere                   what a recall gives to tasks of another collection
    python studies/retrieval/run.py --tune                        what was tried for BM25 and `fused`

data/README.md says which collection was kept back. Needs bm25s (extra `webshop`).
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Callable, Sequence
from math import log2
from typing import Any, TypeAlias

import bm25s
import numpy as np
from sets import Set, held, notes, talks, tau, webarena, young

from mulligan.bank.recall.candidates import BM25
from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.bank.recall.terms import search_text
from mulligan.models.catalog import open_embedder

Find: TypeAlias = Callable[[int], Sequence[str]]
"""The ids of the lessons that answer query n, best first, at least 11 of them."""

NONE = 0.0


# --- ranking ------------------------------------------------------------------------------------------------------


def finds(of: Set, embedder: str) -> dict[str, Find]:
    index, plain = of.index(embedder), by_bm25s(of)

    def by(rank: Callable[[Any], Sequence[int]]) -> Find:
        def find(n: int) -> Sequence[str]:
            among = index.candidates(of.queries[n], of.query_vectors[n])
            return [among.ids[row] for row in rank(among)]

        return find

    return {
        "bm25s": plain,
        "BM25": by(lambda among: np.argsort(-among.lexical(), kind="stable")[:11].tolist()),
        "cosine": by(lambda among: np.argsort(-among.semantic(), kind="stable")[:11].tolist()),
        "fused": by(lambda among: Fused(NONE).rank(among, 11).rows),
    }


def by_bm25s(of: Set) -> Find:
    """bm25s with its defaults: its tokenizer, its stop words, k1 1.5, b 0.75."""
    ranker = bm25s.BM25()
    ranker.index(bm25s.tokenize([search_text(one) for one in of.lessons], show_progress=False), show_progress=False)

    def find(n: int) -> Sequence[str]:
        (words,) = bm25s.tokenize([of.queries[n]], return_ids=False, show_progress=False)
        known = [word for word in words if word in ranker.vocab_dict]
        scores = ranker.get_scores(known) if known else np.zeros(len(of.lessons))
        return [of.lessons[row].id for row in np.argsort(-scores, kind="stable")[:11]]

    return find


def scored(of: Set, find: Find, numbers: Sequence[int]) -> Any:
    """nDCG@10 and whether something needed is among the first three, a row for each query that needs something."""
    rows: list[tuple[float, float]] = []
    for n in numbers:
        if not (needed := of.needed[n]):
            continue
        right = [id in needed for id in find(n) if id != of.own[n]][:10]
        best = sum(1 / log2(i + 2) for i in range(min(10, len(needed))))
        rows.append((sum(1 / log2(i + 2) for i, one in enumerate(right) if one) / best, float(any(right[:3]))))
    return np.asarray(rows)


def interval(differences: Any) -> str:
    """The mean with its 95 % interval, by a paired bootstrap over the queries."""
    chance = np.random.default_rng(1)
    means = differences[chance.integers(0, len(differences), (2000, len(differences)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return f"{differences.mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def ranking(sets: list[Set], embedder: str) -> None:
    names = ("bm25s", "BM25", "cosine", "fused")
    print(f"| nDCG@10, recall@3 | queries | {' | '.join(names)} | fused - bm25s | fused - better of BM25 and cosine |")
    print("|---|--:|" + "--:|" * (len(names) + 2))
    for of in sets:
        found = finds(of, embedder)
        got = {name: scored(of, found[name], range(len(of.queries))) for name in names}
        cells = [f"{got[name][:, 0].mean():.3f}, {got[name][:, 1].mean():.2f}" for name in names]
        better = max(("BM25", "cosine"), key=lambda name: got[name][:, 0].mean())
        against = [interval(got["fused"][:, 0] - got[name][:, 0]) for name in ("bm25s", better)]
        print(f"| {of.name} | {len(got['fused'])} | {' | '.join((*cells, *against))} |", flush=True)


# --- what a recall gives ------------------------------------------------------------------------------------------

SIZES = (1, 5, 20, 50)


def nested(of: Set, size: int) -> list[list[int]]:
    """Banks of the lessons in their order, of so many each, so that every lesson is in as many of them."""
    count = len(of.lessons)
    return [sorted((first + i) % count for i in range(size)) for first in range(0, count, max(size // 5, 1))]


def given(banks: list[list[int]], of: Set, embedder: str, words: bool) -> str:
    """Over all banks: right in the first three without a threshold (and by the best of the other rankings), at the
    default, and at the threshold that would have given something to .15 of the queries that nothing fits; how many
    lessons are given to a query that something fits, and how often one to a query that nothing does.
    """
    without, default, best, wrong, many = 0, 0, 0, list[bool](), list[int]()
    right, loudest = list[float](), list[float]()
    asked = 0
    others = {"words": 0, "cosine": 0}
    for rows in banks if len(banks[0]) < len(of.lessons) else banks[:1]:
        index, there = of.index(embedder, rows), {of.lessons[row].id for row in rows}
        for n, needed in enumerate(of.needed):
            among = index.candidates(of.queries[n], None if words else of.query_vectors[n])
            if needed and not needed & there:
                continue
            got = [among.ids[row] for row in Fused().rank(among, 3).rows]
            every = Fused(NONE).rank(among, 3)
            if not needed:
                wrong.append(bool(got))
                loudest.append(max(every.scores))
                continue
            asked += 1
            fitting = zip(every.rows, every.scores, strict=True)
            right.append(max((score for row, score in fitting if among.ids[row] in needed), default=0.0))
            many += [len(got)] if got else []
            default += bool(needed.intersection(got))
            without += bool(needed & first_three(among, lambda among: Fused(NONE).scores(among)))
            others["words"] += bool(needed & first_three(among, lambda among: among.lexical()))
            if not words:
                others["cosine"] += bool(needed & first_three(among, lambda among: among.semantic() + 2))
    best = max(without, *others.values())
    hindsight = np.sum(np.asarray(right) > np.quantile(loudest, 0.85, method="higher")) / best
    shares = (without / asked, best / asked, default / asked, default / best, hindsight)
    cells = (*shares, np.mean(many or [0]), np.mean(wrong))
    return " | ".join(f"{cell:.2f}" for cell in cells)


def first_three(among: Any, score: Callable[[Any], Any]) -> set[str]:
    """What has no score is not found."""
    scores = score(among)
    return {among.ids[row] for row in np.argsort(-scores, kind="stable")[:3] if scores[row] > 0}


def recalls(sets: list[Set], embedder: str) -> None:
    print("| lessons | bank | by | `fused`, no threshold | best ranking | default | default / best |", end="")
    print(" in hindsight | given | something where nothing fits |\n|--:|---|---|" + "--:|" * 7)
    for of in sets:
        for size in SIZES:
            banks = nested(of, size)
            for words in (True, False):
                print(f"| {size} | {of.name} | {'words' if words else 'both'} | {given(banks, of, embedder, words)} |")


def elsewhere(banks: list[Set], short: Set, long: Set, embedder: str) -> None:
    """How often something is given to tasks of another collection: to those of `short` that nothing fits, and to those
    of `long`."""
    print("| bank | tasks | words in one | by | 1 | 5 | 20 | 50 |\n|---|---|--:|---|" + "--:|" * len(SIZES))
    for of in banks:
        for asking in (short,) if of is long else (short, long):
            numbers = [n for n, needed in enumerate(asking.needed) if asking is long or not needed][:20]
            mean = np.mean([len(asking.queries[n].split()) for n in numbers])
            for words in (True, False):
                cells = [f"{np.mean(strangers(of, size, asking, numbers, embedder, words)):.2f}" for size in SIZES]
                by = "words" if words else "both"
                print(f"| {of.name} | {asking.name} | {mean:.0f} | {by} | {' | '.join(cells)} |", flush=True)


def strangers(of: Set, size: int, asking: Set, numbers: list[int], embedder: str, words: bool) -> list[bool]:
    """Of each of these queries and of ten banks of so many lessons: whether something is given."""
    chance, given = random.Random(size), list[bool]()
    for _ in range(10):
        index = of.index(embedder, sorted(chance.sample(range(len(of.lessons)), size)))
        for n in numbers:
            among = index.candidates(asking.queries[n], None if words else asking.query_vectors[n])
            given.append(bool(Fused().rank(among, 3).rows))
    return given


# --- tuning -------------------------------------------------------------------------------------------------------


def tune(sets: list[Set], embedder: str) -> None:
    print(f"| nDCG@10 | {' | '.join(of.name for of in sets)} |\n|---|" + "--:|" * len(sets))

    def report(name: str, bm25: BM25, rank: Callable[[Any], Sequence[int]]) -> None:
        cells: list[str] = []
        for of in sets:
            index = of.index(embedder, bm25=bm25)

            def find(n: int, of: Set = of, index: Any = index) -> Sequence[str]:
                among = index.candidates(of.queries[n], of.query_vectors[n])
                return [among.ids[row] for row in rank(among)]

            asked = chosen(of)
            cells.append(f"{scored(of, find, asked)[:, 0].mean():.3f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    def words(among: Any) -> Sequence[int]:
        return np.argsort(-among.lexical(), kind="stable")[:11].tolist()

    for k1, b in ((1.2, 0.75), (1.5, 0.5), (1.5, 0.75), (1.5, 0.9), (2.0, 0.75), (6.0, 0.9)):
        report(f"BM25 {k1=} {b=}", BM25(k1, b), words)
    for most in (16, 32, 64, 1000):
        report(f"BM25 {most=}", BM25(most=most), words)
    for weight in (0.0, 2.0, 5.0, 10.0, 20.0, 40.0):
        report(f"fused words={weight}", BM25(), lambda among, w=weight: Fused(NONE, words=w).rank(among, 11).rows)
    for diversity in (0.0, 0.05, 0.1, 0.2):
        report(f"fused {diversity=}", BM25(), lambda a, d=diversity: Fused(NONE, diversity=d).rank(a, 11).rows)


def chosen(of: Set) -> list[int]:
    """At most 120 queries of a set, for speed."""
    every = list(range(len(of.queries)))
    return every if len(every) <= 120 else random.Random(1).sample(every, 120)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--young", action="store_true")
    parser.add_argument("--elsewhere", action="store_true")
    parser.add_argument("--tune", action="store_true")
    asked = parser.parse_args()
    embedder = open_embedder(asked.embedder)
    print(f"embedder: {embedder.id}\n")
    short = [await young(described).embed(embedder) for described in (False, True)]
    if asked.young:
        recalls([*short, *[await held(described).embed(embedder) for described in (False, True)]], embedder.id)
        return
    sets = [await of.embed(embedder) for of in (tau(), webarena(), talks())]
    if asked.elsewhere:
        elsewhere([*short[:1], *sets, await notes().embed(embedder)], short[0], sets[0], embedder.id)
    elif asked.tune:
        tune([*sets, *short], embedder.id)
    else:
        ranking([*sets, await notes().embed(embedder), *short], embedder.id)


if __name__ == "__main__":
    asyncio.run(main())
