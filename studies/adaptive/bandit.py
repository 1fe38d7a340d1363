"""Simulated arms with known rates: how much the choice of `adaptive` loses to the best arm. No model is asked.

    python studies/adaptive/bandit.py

Regret after T trials is what choosing the best arm would have passed more, in expectation. It is counted against the
arm that is best at each trial; "fixed" counts it against the one arm that is best over all trials, which is weaker
where rates drift. It is below linear where four times as many trials cost clearly less than four times the regret.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from thompson_strategy import PRIOR, drawn

from mulligan.core.arms import ArmRow, counted


@dataclass(frozen=True)
class Scenario:
    """Rates of the arms in the order of `PRIOR`. after: those of the second half; None: as before."""

    name: str
    rates: Sequence[float]
    after: Sequence[float] | None = None

    def rates_at(self, trial: int, trials: int) -> Sequence[float]:
        return self.rates if self.after is None or trial < trials // 2 else self.after


FAR = Scenario("far", (0.1, 0.15, 0.3, 0.2, 0.45))
NEAR = Scenario("near", (0.25, 0.1, 0.15, 0.05, 0.1))
DRIFT = Scenario("drift", (0.1, 0.15, 0.45, 0.2, 0.3), (0.45, 0.2, 0.1, 0.3, 0.15))
SCENARIOS = (FAR, NEAR, DRIFT)

Choose = Callable[[Sequence[ArmRow], random.Random], str]


def adaptive(rows: Sequence[ArmRow], rng: random.Random) -> str:
    """The choice of the strategy where all arms fit and the episode has tried none."""
    known = {row.arm: (row.won, row.lost) for row in rows}
    zero = (0.0, 0.0)
    return drawn(
        {arm: (a + known.get(arm, zero)[0], b + known.get(arm, zero)[1]) for arm, (a, b) in PRIOR.items()}, rng
    )


def uniform(rows: Sequence[ArmRow], rng: random.Random) -> str:
    return rng.choice(list(PRIOR))


def default(rows: Sequence[ArmRow], rng: random.Random) -> str:
    return "evidence_and_lesson"


def lost(scenario: Scenario, choose: Choose, trials: int, seed: int, *, fixed: bool = False) -> float:
    """The regret of one run. fixed: against the one arm that is best over all trials."""
    rng, arms = random.Random(f"{scenario.name}/{seed}"), list(PRIOR)
    best = max(sum(scenario.rates_at(t, trials)[n] for t in range(trials)) for n in range(len(arms))) / trials
    rows: Sequence[ArmRow] = ()
    total = 0.0
    for trial in range(trials):
        rates = dict(zip(arms, scenario.rates_at(trial, trials), strict=True))
        arm = choose(rows, rng)
        rows = counted(rows, ArmRow("simulated", "", arm), rng.random() < rates[arm])
        total += (best if fixed else max(rates.values())) - rates[arm]
    return total


def regret(
    scenario: Scenario, choose: Choose, lengths: Sequence[int], seeds: int, *, fixed: bool = False
) -> Sequence[float]:
    """The mean regret of runs of these lengths; each length has its change in the middle."""
    return [fmean(lost(scenario, choose, length, seed, fixed=fixed) for seed in range(seeds)) for length in lengths]


def main() -> None:
    lengths, seeds = (100, 400, 1600, 6400), 20
    print(f"Mean regret over {seeds} seeds, and how it grew from 400 to 6,400 trials (linear: 16).\n")
    print(f"| scenario | choice | against | {' | '.join(map(str, lengths))} | growth |\n|---|---|---|{'--:|' * 5}")
    for scenario in SCENARIOS:
        for choose in (adaptive, uniform, default):
            for fixed in (False, True) if scenario.after else (False,):
                found = regret(scenario, choose, lengths, seeds, fixed=fixed)
                against = "the best fixed arm" if fixed or not scenario.after else "the best arm of the time"
                grew = f"{found[3] / found[1]:.1f}" if found[1] > 1 else "–"
                cells = " | ".join(f"{one:.0f}" for one in found)
                print(f"| {scenario.name} | {choose.__name__} | {against} | {cells} | {grew} |")


if __name__ == "__main__":
    main()
