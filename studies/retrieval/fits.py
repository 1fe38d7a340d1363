"""What a recall keeps if it gives something in .12 of the cases where nothing fits, by words and by both.

Each query meets banks of 1, 5, 20 and 50 lessons of its collection with a lesson that it needs, and without one; banks
of small collections are filled from `notes`. A score of the recall decides whether something is given; the first three
of the ranking are given then. Compared, with the threshold chosen for each row afterwards, are what the product uses,
other signals, and a logistic regression on all of them and their products, fitted on all collections but the last,
which is to be looked at once.

    python studies/retrieval/fits.py webarena errors conventions [--last last] [--draws 6]
"""

from __future__ import annotations

import argparse
import asyncio
import random
from typing import Any

import numpy as np
from sets import Set, notes, tau, webarena
from tongues import SIZES, tongue

from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.bank.recall.terms import language_of as language
from mulligan.models.catalog import open_embedder

NAMES = (
    *("relevance", "cosine", "best - second", "best - mean", "share", "words", "second words"),
    *("shared terms", "two languages"),
)
SHOWN = range(6)
AIM = 0.12


def collection(name: str) -> Set:
    if name == "webarena":
        return webarena()
    if name == "tau2":
        of = tau()
        needed = set[str]().union(*of.needed)
        of.lessons = [lesson for lesson in of.lessons if lesson.id in needed]
        return of
    return tongue(name)[0]


def signals(among: Any, query: str, words: bool) -> list[float]:
    """What one recall knows before it decides."""
    fused = Fused(0)
    relevance = fused.rank(among, 1).scores
    semantic = None if words else among.semantic()
    lexical = np.sort(among.lexical())[::-1]
    cosines = np.sort(semantic)[::-1] if semantic is not None else np.zeros(among.n)
    rest = cosines[1:] if among.n > 1 else np.zeros(1)
    best = int(np.argmax(fused.scores(among)))
    share = float(among._columns.of_slots(among._query.words.share)[best])
    second = float(lexical[1]) if among.n > 1 else 0.0
    apart = float(language(query) != int(among._columns.of_slots(among._columns.language)[best]))
    return [
        float(max(relevance, default=0.0)),
        float(cosines[0]),
        float(cosines[0] - rest[0]),
        float(cosines[0] - rest.mean()),
        share,
        float(lexical[0] - among.by_chance),
        second,
        share * len(query.split()),
        apart,
    ]


def cases(of: Set, beside: Set, embedder: str, draws: int, chance: random.Random) -> list[Any]:
    """(arm, size, signals with, right in the first three, right by another ranking, signals without) of each case."""
    both = Set(of.name, [*of.lessons, *beside.lessons], of.queries, of.needed, of.own)
    both.lesson_vectors = np.concatenate([of.lesson_vectors, beside.lesson_vectors])
    ids = [lesson.id for lesson in of.lessons]
    numbers = [n for n in range(len(of.queries)) if of.needed[n]]
    rows: list[Any] = []
    for size in SIZES:
        for n in chance.sample(numbers, 360) if len(numbers) > 360 else numbers * draws:
            own = [row for row, id in enumerate(ids) if id not in of.needed[n] and id != of.own[n]]
            right = chance.choice([row for row, id in enumerate(ids) if id in of.needed[n]])
            others = chance.sample(own, min(size, len(own)))
            others += [len(ids) + row for row in range(size - len(others))]
            for arm in ("words", "both"):
                vector = None if arm == "words" else of.query_vectors[n]
                without = both.index(embedder, sorted(others)).candidates(of.queries[n], vector)
                among = both.index(embedder, sorted([right, *others[: size - 1]])).candidates(of.queries[n], vector)
                rankings = [Fused(0).scores(among), among.lexical()]
                if arm == "both":
                    rankings.append(among.semantic() + 2)
                hits = [
                    ids[right] in [among.ids[row] for row in np.argsort(-one, kind="stable")[:3] if one[row] > 0]
                    for one in rankings
                ]
                words = arm == "words"
                default = (
                    ids[right] in [among.ids[one] for one in Fused().rank(among, 3).rows],
                    bool(Fused().rank(without, 3).rows),
                )
                row = (signals(among, of.queries[n], words), hits, signals(without, of.queries[n], words), default)
                rows.append((arm, size, n, *row))
    return rows


def fitted(table: list[Any]) -> Any:
    """A logistic regression on the signals and their products with the size of the bank."""
    features = np.array([row[3] for row in table if row[4][0]] + [row[5] for row in table])
    label = np.array([1.0] * sum(row[4][0] for row in table) + [0.0] * len(table))
    mean, sd = features.mean(axis=0), features.std(axis=0) + 1e-9

    def design(of: Any) -> Any:
        z = (np.asarray(of) - mean) / sd
        pairs = [z[:, i] * z[:, j] for i in range(z.shape[1]) for j in range(i, z.shape[1])]
        return np.column_stack((np.ones(len(z)), z, *pairs))

    x = design(features)
    w = np.zeros(x.shape[1])
    for _ in range(30):  # Newton, with a little ridge
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        w += np.linalg.solve(x.T * (p * (1 - p)) @ x + np.eye(len(w)), x.T @ (label - p) - w)
    return lambda of: design(of) @ w


def curve(table: list[Any], score: Any, levels: tuple[float, ...]) -> tuple[float, list[float]]:
    """What the best ranking finds, and what is kept of it at these rates where nothing fits, in hindsight."""
    loud = np.sort(score([row[5] for row in table]))
    best = float(np.max(np.mean([row[4] for row in table], axis=0)))
    found = np.array([row[4][0] for row in table])
    own = score([row[3] for row in table])
    kept = []
    for level in levels:
        least = loud[min(int(np.ceil((1 - level) * len(loud))), len(loud) - 1)]
        kept.append(float(np.mean(found & (own > least))) / best if best else 0.0)
    return best, kept


def interval(table: list[Any], position: int, of: float) -> str:
    """A mean of what the default gives, divided by `of`, with its 95 % interval: a bootstrap over the queries."""
    by_query: dict[int, list[bool]] = {}
    for row in table:
        by_query.setdefault(row[2], []).append(row[6][position])
    means = np.array([np.mean(values) for values in by_query.values()]) / (of or 1.0)
    chance = np.random.default_rng(1)
    draws = means[chance.integers(0, len(means), (2000, len(means)))].mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return f"{means.mean():.2f} [{low:.2f}, {high:.2f}]"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--last", default="")
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--embedder", default="local")
    asked = parser.parse_args()
    embedder = open_embedder(asked.embedder)
    beside = await notes().embed(embedder)
    tables: dict[str, list[Any]] = {}
    for name in [*asked.collections, *filter(None, [asked.last])]:
        tables[name] = cases(
            await collection(name).embed(embedder), beside, embedder.id, asked.draws, random.Random(name)
        )
    print("| arm | lessons | collection | queries, cases | best ranking | default / best | where nothing fits", end="")
    print(
        "".join(f" | {NAMES[n]}" for n in SHOWN),
        "| all, fitted |\n|---|--:|---|--:|--:|--:|--:|" + "--:|" * (len(SHOWN) + 1),
    )
    for arm in ("words", "both"):
        for size in SIZES:
            every = {name: [row for row in rows if row[:2] == (arm, size)] for name, rows in tables.items()}
            model = fitted([row for name in asked.collections for row in every[name]])
            for name, table in every.items():
                by = [*((lambda of, n=n: np.asarray(of)[:, n]) for n in SHOWN), model]
                best = max(np.mean([row[4] for row in table], axis=0))
                kept = " | ".join(f"{curve(table, score, (AIM,))[1][0]:.2f}" for score in by)
                count = f"{len({row[2] for row in table})}, {len(table)}"
                default = f"{interval(table, 0, best)} | {interval(table, 1, 1.0)}"
                print(f"| {arm} | {size} | {name} | {count} | {best:.2f} | {default} | {kept} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
