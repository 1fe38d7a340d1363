"""What entries are worth, estimated where the truth is known. docs/worth.md holds the tables.

    python studies/worth/run.py --choose              half-lives and estimators, on the two worlds to choose on, 40 runs
    python studies/worth/run.py                       the table, on the two worlds to choose on, 1,000 runs
    python studies/worth/run.py --world "kept back"   the same on the world that was looked at once

Uses the counting of `mulligan.core.worth` itself. Each run has a seed of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import mean, median
from typing import Any

import numpy as np
from worlds import HALFLIVES, HARM, RUNS, SEED, SHARES, WORLDS, World

from mulligan.core.worth import HALFLIFE, Tally


@dataclass
class Run:
    """What one run gave, by entry. retired: the task and how many of its outcomes had come, where it was retired.

    rate: the share of tasks that succeeded. lost: the chance of success that the tasks lost by what was withheld.
    """

    tallies: list[Tally]
    retired: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    rate: float = 0.0
    lost: float = 0.0
    draws: list[tuple[tuple[int, ...], tuple[bool, ...], bool]] = field(default_factory=list)


def effects_at(world: World, task: int) -> tuple[float, ...]:
    return world.after if world.after and task >= world.turn else world.effects


def truth(world: World, entry: int, share: float) -> float:
    """The effect at the end of showing an entry, whatever else is drawn beside it."""
    effect = effects_at(world, world.tasks)[entry]
    if world.redundant and entry in world.redundant[:2]:
        effect += world.redundant[2] * share  # where the other one is withheld
    return effect


def chance(world: World, task: int, hard: float, shown: Sequence[int]) -> float:
    added = sum(effects_at(world, task)[entry] for entry in shown)
    if world.redundant and any(entry in shown for entry in world.redundant[:2]):
        added += world.redundant[2]
    return min(max(world.base + hard + added, 0.0), 1.0)


def play(
    world: World, share: float, seed: int, *, retire: bool, halflife: float | None = HALFLIFE, keep: bool = False
) -> Run:
    random = Random(seed)
    count = len(world.effects)
    run = Run([Tally() for _ in range(count)])
    of_group = [random.uniform(-world.spread, world.spread) / 2 for _ in world.groups]
    solved = 0
    for task in range(world.tasks):
        number = random.randrange(len(world.groups))
        outside = [entry for entry in range(count) if entry not in world.groups[number]]
        recalled = [*world.groups[number], *random.sample(outside, world.others)]
        recalled = [entry for entry in recalled if entry not in run.retired]
        away = [random.random() < share for _ in recalled]
        hard = of_group[number] + random.uniform(-world.spread, world.spread) / 2
        shown = [entry for entry, gone in zip(recalled, away, strict=True) if not gone]
        likely = chance(world, task, hard, shown)
        success = random.random() < likely
        solved += success
        run.lost += (chance(world, task, hard, recalled) - likely) / world.tasks
        if keep:
            run.draws.append((tuple(recalled), tuple(away), success))
        for entry, gone in zip(recalled, away, strict=True):
            tally = run.tallies[entry].with_draw(success, withheld=gone, share=share, halflife=halflife)
            run.tallies[entry] = tally
            if retire and tally.harmful:
                run.retired[entry] = task + 1, tally.shown.count + tally.withheld.count
    run.rate = solved / world.tasks
    return run


def joint(world: World, run: Run, share: float, halflife: float | None) -> list[tuple[float, float]]:
    """Mean and standard deviation of each effect by Bayesian linear regression over all entries of a recall, with
    a normal prior of deviation 0.25 and an intercept for each entry that is recalled."""
    count = len(world.effects)
    rows, answers, weights, seen = [], [], [], [0] * count
    for recalled, away, success in run.draws:
        row = [0.0] * (2 * count)
        for entry, gone in zip(recalled, away, strict=True):
            seen[entry] += 1
            row[entry] = share if not gone else share - 1.0  # shown or not, about its mean
            row[count + entry] = 1 / len(recalled)
        rows.append(row)
        answers.append(float(success))
        weights.append(1.0)
    if halflife is not None:  # by the outcomes of an average entry
        pace = sum(seen) / count / len(rows)
        weights = [0.5 ** ((len(rows) - 1 - n) * pace / halflife) for n in range(len(rows))]
    x, y, w = np.array(rows), np.array(answers), np.array(weights)
    prior = np.diag([1 / 0.25**2] * count + [1 / 1.0**2] * count)
    rate = float((w * y).sum() / w.sum())
    noise = max(rate * (1 - rate), 0.01)
    gram = (x * w[:, None]).T @ x / noise + prior
    inverse = np.linalg.inv(gram)
    means = inverse @ ((x * w[:, None]).T @ (y - rate) / noise)
    inflated = inverse @ ((x * (w**2)[:, None]).T @ x / noise + prior) @ inverse  # aged outcomes are no full ones
    return [(float(means[n]), float(np.sqrt(inflated[n, n]))) for n in range(count)]


# --- tables -------------------------------------------------------------------------------------------------------


def choose(runs: int) -> None:
    print("| world | share | half-life | coverage | width | joint: coverage | width | harm retired | after | false |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for world in (WORLDS["mixed"], WORLDS["drift"]):
        for share in (0.1,):
            for halflife in HALFLIVES:
                both: dict[str, list[Any]] = {"single": [], "joint": []}
                ends: list[Run] = []
                for n in range(runs):
                    run = play(world, share, SEED * 100_000 + n, retire=False, halflife=halflife, keep=True)
                    together = joint(world, run, share, halflife)
                    for entry, tally in enumerate(run.tallies):
                        is_so = truth(world, entry, share)
                        if tally.uplift:
                            both["single"].append(
                                (tally.uplift.low <= is_so <= tally.uplift.high, tally.uplift.high - tally.uplift.low)
                            )
                        there, sd = together[entry]
                        both["joint"].append((abs(there - is_so) <= 1.96 * sd, 2 * 1.96 * sd))
                    ends.append(play(world, share, SEED * 100_000 + n, retire=True, halflife=halflife))
                cells = [
                    f"{mean(one[0] for one in both[by]):.3f} | {mean(one[1] for one in both[by]):.2f}" for by in both
                ]
                print(
                    f"| {world.name} | {share} | {halflife} | {' | '.join(cells)} | {retirements(world, ends)} |",
                    flush=True,
                )


def retirements(world: World, runs: Sequence[Run]) -> str:
    """The share of harmful entries that were retired, after how many of their outcomes (median), and false ones."""
    found, outcomes, false = 0, list[int](), 0
    last = effects_at(world, world.tasks)
    harmful = [n for n, effect in enumerate(last) if effect < HARM]
    harmless = [n for n, effect in enumerate(last) if effect >= HARM and world.effects[n] >= HARM]
    for run in runs:
        found += sum(n in run.retired for n in harmful)
        outcomes += [run.retired[n][1] for n in harmful if n in run.retired]
        false += sum(n in run.retired for n in harmless)
    after = f"{median(outcomes):.0f}" if outcomes else "-"
    return f"{found / max(len(runs) * len(harmful), 1):.2f} | {after} | {false / max(len(runs) * len(harmless), 1):.4f}"


def table(world: World, runs: int) -> None:
    print(f"\n**{world.name}**, {world.tasks} tasks, {runs} runs\n")
    print("| share | coverage | help | nothing | harm | width | measured | price | success | without withholding |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    retired: dict[float, list[Run]] = {}
    for share in SHARES:
        kinds: dict[str, list[bool]] = {"help": [], "nothing": [], "harm": []}
        widths, known, price = list[float](), list[bool](), list[float]()
        for n in range(runs):
            run = play(world, share, SEED * 100_000 + 50_000 + n, retire=False)
            price.append(run.lost)
            for entry, tally in enumerate(run.tallies):
                is_so = truth(world, entry, share)
                kind = "harm" if is_so < HARM else "help" if is_so > -HARM else "nothing"
                known.append(tally.uplift is not None)
                if tally.uplift:
                    kinds[kind].append(tally.uplift.low <= is_so <= tally.uplift.high)
                    widths.append(tally.uplift.high - tally.uplift.low)
        retired[share] = [play(world, share, SEED * 100_000 + 50_000 + n, retire=True) for n in range(runs)]
        plain = mean(play(world, 0.0, SEED * 100_000 + 50_000 + n, retire=False).rate for n in range(min(runs, 200)))
        every = [held for held in kinds.values() for held in held]
        parts = " | ".join(f"{mean(held):.3f}" if held else "-" for held in (every, *kinds.values()))
        gained = mean(run.rate for run in retired[share])
        print(
            f"| {share} | {parts} | {mean(widths):.2f} | {mean(known):.3f} | {mean(price):+.4f} | {gained:.3f} "
            f"| {plain:.3f} |",
            flush=True,
        )
    print("\n| share | effect at the end | retired | after tasks, median | 90 % | after its outcomes, median | 90 % |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for share in SHARES:
        by_effect: dict[tuple[float, float], list[int]] = {}
        for n, effect in enumerate(effects_at(world, world.tasks)):
            by_effect.setdefault((world.effects[n], effect), []).append(n)
        for (before, effect), entries in sorted(by_effect.items(), key=lambda item: item[0][::-1]):
            ends = [run.retired[n] for run in retired[share] for n in entries if n in run.retired]
            tasks, outcomes = (sorted(end[part] for end in ends) for part in (0, 1))
            shown = f"{effect:+.2f}" if before == effect else f"{effect:+.2f}, was {before:+.2f}"
            share_of = len(ends) / (len(retired[share]) * len(entries))
            cells = [f"{median(of):.0f} | {of[int(0.9 * len(of))]}" if of else "- | -" for of in (tasks, outcomes)]
            print(f"| {share} | {shown} | {share_of:.4f} | {' | '.join(cells)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--world", choices=WORLDS)
    parser.add_argument("--runs", type=int)
    asked = parser.parse_args()
    if asked.choose:
        choose(asked.runs or 40)
    else:
        for name in [asked.world] if asked.world else ["mixed", "drift"]:
            table(WORLDS[name], asked.runs or RUNS)
