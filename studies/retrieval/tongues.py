"""What a recall gives where lessons and queries are in many languages: by words, and by words and meaning.

Four collections of 38 lessons with two queries each (data/tongues). Each query meets banks of 1, 5, 20 and 50 lessons
with the lesson that it needs and without it; the others are drawn from the collection, and from `notes` where it is too
small. A query of another collection meets the bank, too: it asks about another subject. kept.txt was looked at once,
when all was chosen.

    python studies/retrieval/tongues.py errors facts preferences [--embedder local] [--draws 3]
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from sets import OWN, Set, notes

from mulligan.bank.recall.retrieval.fused import Fused
from mulligan.core.records import Lesson
from mulligan.models.catalog import open_embedder

SIZES = (1, 5, 20, 50)
COLLECTIONS = ("errors", "facts", "preferences", "kept")
GROUPS = ("all", "English", "one other language", "two languages")


def tongue(name: str) -> tuple[Set, list[str], list[str]]:
    """A collection, with the language of each lesson and of each query."""
    lessons, queries, needed, of, asked = list[Lesson](), list[str](), list[set[str]](), list[str](), list[str]()
    for line in (next(OWN.glob(f"*/{name}.txt"))).read_text().splitlines():
        if line.startswith("? "):
            language, query = line[2:].split(" | ")
            queries.append(query)
            needed.append({lessons[-1].id})
            asked.append(language)
        else:
            language, title, content = line.split(" | ")
            lessons.append(Lesson(f"{name}{len(lessons)}", title, content, "success"))
            of.append(language)
    return Set(name, lessons, queries, needed, [""] * len(queries)), of, asked


def groups(lesson: str, query: str) -> Sequence[str]:
    one = "two languages" if lesson != query else "English" if query == "en" else "one other language"
    return "all", one


def found(among: Any, scores: Any, wanted: str) -> bool:
    """Whether the wanted lesson is among the first three that have a score."""
    return wanted in [among.ids[row] for row in np.argsort(-scores, kind="stable")[:3] if scores[row] > 0]


def measured(
    of: Set, languages: tuple[list[str], list[str]], beside: Set, strange: Set, embedder: str, draws: int
) -> Any:
    """By arm, size and group: of banks with the lesson, what the default gives and the best ranking finds; of banks
    without it, whether something is given, and whether it is for a query of another subject."""
    both = Set(of.name, [*of.lessons, *beside.lessons], of.queries, of.needed, of.own)
    both.lesson_vectors = np.concatenate([of.lesson_vectors, beside.lesson_vectors])
    table: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for size in SIZES:
        for n, query in enumerate(of.queries):
            chance = random.Random(f"{of.name} {n} {size}")
            right = n // 2
            for _ in range(draws):
                own = [row for row in range(len(of.lessons)) if row != right]
                others = [*chance.sample(own, min(size, len(own)))]
                others += [len(of.lessons) + row for row in range(size - len(others))]
                for arm in ("words", "both"):
                    vector = None if arm == "words" else of.query_vectors[n]
                    bank = both.index(embedder, sorted(others))
                    without = bank.candidates(query, vector)
                    far = bank.candidates(strange.queries[n], None if arm == "words" else strange.query_vectors[n])
                    among = both.index(embedder, sorted([right, *others[: size - 1]])).candidates(query, vector)
                    wanted = of.lessons[right].id
                    rankings = [among.lexical()]
                    if (meaning := among.semantic()) is not None:
                        rankings += [meaning + 2, Fused(0).scores(among)]
                    row = (
                        wanted in [among.ids[one] for one in Fused().rank(among, 3).rows],
                        [found(among, scores, wanted) for scores in rankings],
                        bool(Fused().rank(without, 3).rows),
                        bool(Fused().rank(far, 3).rows),
                    )
                    for group in groups(languages[0][right], languages[1][n]):
                        table[arm, size, group].append(row)
    return table


def report(name: str, table: Any) -> None:
    for arm in ("words", "both"):
        for group in GROUPS:
            for size in SIZES:
                rows = table[arm, size, group]
                given = np.mean([row[0] for row in rows])
                best = np.max(np.mean([row[1] for row in rows], axis=0))
                near, far = (np.mean([row[n] for row in rows]) for n in (2, 3))
                share = given / best if best else 0.0
                cells = f"{best:.2f} | {given:.2f} | {share:.2f} | {near:.2f} | {far:.2f}"
                print(f"| {name} | {arm} | {group} | {size} | {len(rows)} | {cells} |")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--embedder", default="local")
    parser.add_argument("--draws", type=int, default=3)
    asked = parser.parse_args()
    embedder = open_embedder(asked.embedder)
    beside = await notes().embed(embedder)
    print("| collection | by | query and lesson | lessons | cases | best ranking | default | default / best |", end="")
    print(" something where nothing fits | of another subject |\n|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
    every: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
    for name in asked.collections:
        of, *languages = tongue(name)
        strange, *_ = tongue(COLLECTIONS[(COLLECTIONS.index(name) + 1) % 3])
        for one in (of, strange):
            await one.embed(embedder)
        table = measured(of, (languages[0], languages[1]), beside, strange, embedder.id, asked.draws)
        for key, rows in table.items():
            every[key] += rows
    report(" ".join(asked.collections), every)


if __name__ == "__main__":
    asyncio.run(main())
