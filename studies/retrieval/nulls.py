"""How the best lesson of a bank scores where nothing fits: what `SHIPPED` in bank/recall/candidates.py was read from.

The 20 queries of the young bank that nothing fits, over banks drawn from its 50 lessons, with descriptions and without:
the score below which nine of ten banks stay, and half of them. A `NullDistribution` passes through the first at 0.9.

    python studies/retrieval/nulls.py [--embedder local]
"""

from __future__ import annotations

import argparse
import asyncio
import random

import numpy as np
from sets import Set, young

from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.models.catalog import open_embedder


def best(of: Set, size: int, embedder: str, chance: random.Random) -> tuple[list[float], list[float]]:
    """By words, and by `fused`: the best score in each of 40 banks of so many lessons, for each of these queries."""
    asking = [n for n, needed in enumerate(of.needed) if not needed]
    words, meaning = list[float](), list[float]()
    for _ in range(40):
        bank = of.index(embedder, sorted(chance.sample(range(len(of.lessons)), size)))
        for n in asking:
            among = bank.candidates(of.queries[n], of.query_vectors[n])
            words.append(float(among.lexical().max()) - among.by_chance)
            meaning.append(float(np.max(Fused().scores(among))))
    return words, meaning


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="local")
    embedder = open_embedder(parser.parse_args().embedder)
    chance = random.Random(1)
    print(f"{embedder.id}\n\n| lessons | bank | by | half | nine of ten |\n|--:|---|---|--:|--:|")
    for described in (False, True):
        of = await young(described).embed(embedder)
        for size in (1, 5, 20, 50):
            for by, scores in zip(("words", "both"), best(of, size, embedder.id, chance), strict=True):
                half, most = np.quantile(scores, (0.5, 0.9))
                print(f"| {size} | {of.name} | {by} | {half:.3f} | {most:.3f} |")


if __name__ == "__main__":
    asyncio.run(main())
