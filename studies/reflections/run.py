"""AUC of the score: good reflections against bad ones, with intervals clustered by episode. README.md is the plan.

python studies/reflections/run.py [--part develop|check|last] [--each]
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Sequence

from reflection_sets import PARTS, PUBLISHED, Item, items

from mulligan.plugins import quality_of

DRAWS, SEED = 2000, 20


def score(item: Item) -> float:
    return quality_of(
        item.text, trial=item.trial, earlier=item.earlier, examples=item.examples, answers=item.answers
    ).score


def auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """How often a good one has the higher score; a tie counts half."""
    won = sum((one > other) + 0.5 * (one == other) for one in good for other in bad)
    return won / (len(good) * len(bad))


def measured(scores: Sequence[tuple[Item, float]]) -> tuple[float, float, float]:
    """The AUC and its 95 % interval; whole episodes are drawn."""
    by_episode: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for item, value in scores:
        by_episode[item.episode][item.kind != "good"].append(value)
    groups = list(by_episode.values())

    def pooled(drawn: Sequence[tuple[list[float], list[float]]]) -> float | None:
        good, bad = ([value for group in drawn for value in group[side]] for side in (0, 1))
        return auc(good, bad) if good and bad else None

    chance = random.Random(SEED)
    drawn = sorted(value for _ in range(DRAWS) if (value := pooled(chance.choices(groups, k=len(groups)))) is not None)
    point = pooled(groups)
    assert point is not None
    return point, drawn[int(0.025 * len(drawn))], drawn[int(0.975 * len(drawn))]


def row(name: str, scores: Sequence[tuple[Item, float]]) -> str:
    good = sum(item.kind == "good" for item, _ in scores)
    bad = len(scores) - good
    episodes = len({item.episode for item, _ in scores})
    if not good or not bad:
        return f"{name:<22} {good:>5} {bad:>5} {episodes:>9}"
    point, low, high = measured(scores)
    return f"{name:<22} {good:>5} {bad:>5} {episodes:>9}   {point:.3f}  {low:.3f} … {high:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, default="")
    parser.add_argument("--each", action="store_true", help="every score, lowest first")
    chosen = parser.parse_args()
    if not PUBLISHED.exists():
        print("Without the published reflections: there is no ../shared/data, and MULLIGAN_TEST_DATA names none.")
    scores = [(item, score(item)) for item in items(chosen.part)]
    if chosen.each:
        for item, value in sorted(scores, key=lambda one: one[1]):
            print(f"{value:.3f}  {item.domain:<12} {item.kind:<16} {item.episode} {item.number}")
    print(f"{'':<22} {'good':>5} {'bad':>5} {'episodes':>9}   AUC    95 %")
    print(row("all", scores))
    for domain in sorted({item.domain for item, _ in scores}):
        print(row(domain, [one for one in scores if one[0].domain == domain]))
    for kind in sorted({item.kind for item, _ in scores} - {"good"}):
        print(row(kind, [one for one in scores if one[0].kind in ("good", kind)]))
    print(row("good, not mistaken", [one for one in scores if not one[0].mistaken]))
    print(row("good, mistaken", [one for one in scores if one[0].mistaken or one[0].kind != "good"]))
    for kind in sorted({item.kind for item, _ in scores}):
        values = sorted(value for item, value in scores if item.kind == kind)
        tenths = [values[int(share * (len(values) - 1))] for share in (0.1, 0.5, 0.9)]
        print(f"{kind:<22} score at 10, 50, 90 %: " + ", ".join(f"{value:.2f}" for value in tenths))


if __name__ == "__main__":
    main()
