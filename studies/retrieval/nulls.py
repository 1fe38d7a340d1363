"""Writes src/mulligan/bank/nulls.py: how unrelated texts score, for the embedders that ship with Mulligan.

Unrelated are WebArena tasks of different templates, and tau2-banking's documents that a query (of odd number) does not
need. Mean and deviation are those of the two sets averaged; the shape is that of their scores in deviations from what
the bank would estimate from its own lessons.

    python studies/retrieval/nulls.py
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sets import Set, tau, webarena

from mulligan.bank.calibration import Null, shipped
from mulligan.bank.nulls import LEVELS
from mulligan.models.catalog import open_embedder

OUT = Path(__file__).parents[2] / "src" / "mulligan" / "bank" / "nulls.py"
HEAD = '''"""How unrelated texts score, by embedder: written by studies/retrieval/nulls.py, not by hand."""

LEVELS = {levels}
"""Shares of unrelated pairs; the last numbers of each entry are the scores, in deviations, that so many stay below."""

SHIPPED = {{
{entries}}}
"""By the beginning of the embedder's id and by part: mean, deviation, and the shape of the distribution."""
'''


def unrelated(of: Set, embedder: str, part: str, queries: range) -> tuple[Any, Any]:
    """Scores of these queries with the lessons that they do not need; and the bank's own pairs, of its own accord."""
    index = of.index(embedder)
    scores: list[Any] = []
    for n in queries:
        among = index.candidates(of.queries[n], of.query_vectors[n])
        keep = [id not in of.needed[n] and id != of.own[n] for id in among.ids]
        own = among.lexical() / among.scale if part == "lexical" else among.semantic(part)
        scores.append(own[keep])
    return np.concatenate(scores), index


def measured(sets: list[tuple[Set, range]], embedder: str, part: str) -> str:
    found = [unrelated(of, embedder, part, queries) for of, queries in sets]
    mean = float(np.mean([scores.mean() for scores, _ in found]))
    sd = float(np.mean([scores.std() for scores, _ in found]))
    start = replace(shipped(part, embedder), mean=mean, sd=sd)
    if start.bounds is None:
        start = replace(start, weight=20, bounds=(1.5, 0.7, 1.5))
    shapes: list[Any] = []
    for scores, index in found:
        fitted: Null = start.fitted(index.own_pairs(part), index.n)
        shapes.append(np.quantile((scores - fitted.mean) / fitted.sd, LEVELS))
    shape = ", ".join(f"{x:.2f}" for x in np.mean(shapes, axis=0))
    name = "" if part == "lexical" else embedder.partition("@")[0]
    return f'    ("{name}", "{part}"): ({mean:.3f}, {sd:.3f}, ({shape})),\n'


async def main() -> None:
    entries = ""
    for name in ("local", "hash"):
        embedder = open_embedder(name)
        banking, tasks = await tau().embed(embedder), await webarena().embed(embedder)
        both = [(banking, range(1, len(banking.queries), 2)), (tasks, range(0, len(tasks.queries), 4))]
        entries += measured(both, embedder.id, "lesson") + measured(both[1:], embedder.id, "query")
        if name == "local":
            entries += measured(both, embedder.id, "lexical")
    OUT.write_text(HEAD.format(levels=LEVELS, entries=entries))
    print(entries)


if __name__ == "__main__":
    asyncio.run(main())
