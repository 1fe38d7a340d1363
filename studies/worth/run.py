"""What entries are worth, estimated where the truth is known. docs/worth.md holds the tables.

    python studies/worth/run.py --choose              half-lives and estimators, on the two worlds to choose on, 40 runs
    python studies/worth/run.py                       the table, on the two worlds to choose on, 1,000 runs
    python studies/worth/run.py --world "kept back"   the same on those kept back: "kept back", "fresh"

`play` uses the counting of `mulligan.core.worth` itself; `play_many` does the same for all runs at once, and a test
compares the two. Seeds are fixed.
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

from mulligan.core.worth import BETS, HALFLIFE, HORIZON, LEVEL, PRIOR, STUDENT, Tally, Z


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


@dataclass
class Many:
    """What several runs gave; arrays of shape (runs, entries).

    retired_at: the task, after_outcomes: of the entry; 0: it was not retired. sums: of `Arm`, of shape (2, runs,
    entries), shown and withheld. true: the effect of each entry since the turn, as the difference of the two chances of
    each task, with it and without it, everything else as it was drawn.
    """

    low: Any
    high: Any
    retired_at: Any
    after_outcomes: Any
    sums: dict[str, Any]
    stakes: Any
    rate: float
    lost: float
    true: Any


def believed(sums: dict[str, Any]) -> tuple[Any, Any]:
    """The limits of `Tally.uplift`; nan where it is not measured."""
    with np.errstate(all="ignore"):
        n = sums["weight"] ** 2 / sums["squares"]
        pooled = (sums["good"].sum(0) + 1) / (sums["weight"].sum(0) + 2)
        seen = sums["good"] / sums["weight"]
        rate = (n * seen + PRIOR * pooled) / (n + PRIOR)
        z = Z + STUDENT / n.min(0)
        middle, half = seen + z * z / (2 * n), z * np.sqrt(seen * (1 - seen) / n + z * z / (4 * n * n))
        low, high = np.maximum(0, (middle - half) / (1 + z * z / n)), np.minimum(1, (middle + half) / (1 + z * z / n))
        mean, apart = rate[0] - rate[1], seen[0] - seen[1]
        least = apart - np.hypot(seen[0] - low[0], high[1] - seen[1])
        return np.minimum(mean, least), np.maximum(mean, apart + np.hypot(high[0] - seen[0], seen[1] - low[1]))


def play_many(world: World, share: float, runs: int, seed: int, *, retire: bool, script: Any = None) -> Many:
    """As `play`, all runs at once. script: called with each task's recalled, withheld and success, for a test."""
    random, count = np.random.default_rng(seed), len(world.effects)
    member = np.array([[entry in group for entry in range(count)] for group in world.groups])
    of_group = random.uniform(-world.spread, world.spread, (runs, len(world.groups))) / 2
    sums = {name: np.zeros((2, runs, count)) for name in ("count", "weight", "good", "squares")}
    stakes, active = np.zeros((len(BETS), runs, count)), np.ones((runs, count), bool)
    at, after, solved, lost = (np.zeros((runs, count), int), np.zeros((runs, count), int), 0.0, 0.0)
    every, by = np.arange(runs), 0.5 ** (1 / HALFLIFE)
    caused, cases = np.zeros(count), np.zeros(count)
    for task in range(world.tasks):
        number = random.integers(len(world.groups), size=runs)
        recalled = member[number]
        if world.others:
            order = np.where(recalled, -1.0, random.random((runs, count))).argsort(1)[:, -world.others :]
            recalled = recalled.copy()
            recalled[every[:, None], order] = True
        recalled = recalled & active
        away = recalled & (random.random((runs, count)) < share)
        shown = recalled & ~away
        hard = of_group[every, number] + random.uniform(-world.spread, world.spread, runs) / 2
        chances = [chances_of(world, task, hard, which) for which in (shown, recalled)]
        for entry in range(count) if task >= world.turn and not retire else ():
            both = np.repeat(shown[None], 2, 0)
            both[:, :, entry] = [[True], [False]]
            with_it, without = (chances_of(world, task, hard, which) for which in both)
            caused[entry] += ((with_it - without) * recalled[:, entry]).sum()
            cases[entry] += recalled[:, entry].sum()
        success = random.random(runs) < chances[0]
        if script:
            script(recalled, away, success)
        solved += success.mean() / world.tasks
        lost += (chances[1] - chances[0]).mean() / world.tasks
        pooled = (sums["good"].sum(0) + 1) / (sums["weight"].sum(0) + 2)
        surprise = success[:, None] - pooled
        effect = np.where(away, -surprise / max(share, 1e-9), surprise / (1 - share))
        put_in = np.where(sums["count"].sum(0) == 0, 0.5, 0.5 / HORIZON)
        for n, bet in enumerate(BETS):
            grown = np.minimum((stakes[n] + put_in) * (1 - bet * share * effect), 1e12)
            stakes[n] = np.where(recalled, grown, stakes[n])
        aged = np.where(recalled, by, 1.0)
        sums["weight"] *= aged
        sums["good"] *= aged
        sums["squares"] *= aged**2
        for side, which in enumerate((shown, away)):
            for name in ("count", "weight", "squares"):
                sums[name][side] += which
            sums["good"][side] += which & success[:, None]
        if retire and (found := recalled & (stakes.mean(0) >= 1 / LEVEL)).any():
            found &= believed(sums)[1] < 0
            active &= ~found
            at[found], after[found] = task + 1, sums["count"].sum(0)[found]
    return Many(*believed(sums), at, after, sums, stakes, solved, lost, caused / np.maximum(cases, 1))


def chances_of(world: World, task: int, hard: Any, shown: Any) -> Any:
    """`chance`, of all runs."""
    added = shown @ np.array(effects_at(world, task))
    if world.redundant:
        added = added + world.redundant[2] * (shown[:, world.redundant[0]] | shown[:, world.redundant[1]])
    return np.clip(world.base + hard + added, 0.0, 1.0)


def table(world: World, runs: int) -> None:
    seed = SEED * 1000 + list(WORLDS).index(world.name)
    print(f"\n**{world.name}**, {world.tasks} tasks, {runs} runs\n")
    print("| withheld | coverage | help | nothing | harm | width | price | success | nothing withheld |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    plain = play_many(world, 0.0, runs, seed, retire=False).rate
    retired: dict[float, Many] = {}
    for share in SHARES:
        kept = play_many(world, share, runs, seed + 10, retire=False)
        retired[share] = play_many(world, share, runs, seed + 20, retire=True)
        true = kept.true
        measured = ~np.isnan(kept.low)
        held = np.where(measured, (kept.low <= true) & (true <= kept.high), np.nan)
        kinds = [np.ones(len(true), bool), true > -HARM, (true >= HARM) & (true <= -HARM), true < HARM]
        parts = " | ".join(f"{np.nanmean(held[:, kind]):.3f}" if kind.any() else "-" for kind in kinds)
        width = np.nanmean(kept.high - kept.low)
        print(
            f"| {share} | {parts} | {width:.2f} | {kept.lost:+.4f} | {retired[share].rate:.3f} | {plain:.3f} |",
            flush=True,
        )
    print("\n| withheld | effect | retired | after tasks, median | 90 % | after its outcomes, median | 90 % |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    last = effects_at(world, world.tasks)
    for share, many in retired.items():
        for before, effect in sorted(set(zip(world.effects, last, strict=True)), key=lambda pair: pair[::-1]):
            entries = [n for n, pair in enumerate(zip(world.effects, last, strict=True)) if pair == (before, effect)]
            at, after = many.retired_at[:, entries], many.after_outcomes[:, entries]
            gone = at > 0
            shown = f"{effect:+.2f}" if before == effect else f"{before:+.2f}, then {effect:+.2f}"
            cells = [
                f"{np.median(of[gone]):.0f} | {np.quantile(of[gone], 0.9):.0f}" if gone.any() else "- | -"
                for of in (at, after)
            ]
            print(f"| {share} | {shown} | {gone.mean():.4f} | {' | '.join(cells)} |")


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
