"""Gain and reward of a system of Continual Learning Bench, from the outcomes of its run and of its stateless baseline.

    python figures.py RUN.json BASELINE.json --r-max 1.0 --fixed 0.12 --drift 10

Both files are JSON lists of the benchmark's instance outcomes: `instance_id`, `instance_index`, `reward`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any


@dataclass(frozen=True)
class Figures:
    """Means over `n` instances.

    Attributes:
        reward: of the system.
        stateless: the reward of the same system, reset before each instance.
        gain: `reward` less `stateless`.
        gain_norm: the gain as a share of what was left to gain.
        reward_norm: the same share over a fixed baseline, which is the same for all systems. None: it is not known.
    """

    n: int
    reward: float
    stateless: float
    gain: float
    gain_norm: float | None
    reward_norm: float | None


@dataclass(frozen=True)
class Report:
    """whole: over all instances. comparable: over those whose baseline ran in the world of the system. faults: what is
    wrong with the baseline, a sentence each."""

    whole: Figures
    comparable: Figures | None
    faults: tuple[str, ...]


def report(
    run: Sequence[Mapping[str, Any]],
    baseline: Sequence[Mapping[str, Any]],
    *,
    r_max: float,
    fixed: float | None = None,
    drift: int | None = None,
) -> Report:
    """The figures of a run.

    Args:
        run: the outcomes of the system, in their order.
        baseline: those of the same system without state. They are matched by `instance_id`: a baseline that runs each
            instance alone may count each of them as number 0.
        r_max: the mean of the most that an instance can earn.
        fixed: the mean reward of the fixed baseline.
        drift: the index of the first instance after the drift. None: there is none.
    """
    stateless = {one["instance_id"]: one for one in baseline}
    both = [one for one in run if one["instance_id"] in stateless]
    if not both:
        raise ValueError("The run and the baseline have no instance in common.")
    faults = [f"{len(run) - len(both)} instances have no baseline and are left out."] if len(both) < len(run) else []

    def in_its_world(one: Mapping[str, Any]) -> bool:
        after = drift is not None and one["instance_index"] >= drift
        return not after or stateless[one["instance_id"]]["instance_index"] >= (drift or 0)

    comparable = [one for one in both if in_its_world(one)]
    if len(comparable) < len(both):
        faults.append(
            f"{len(both) - len(comparable)} instances after the drift (index {drift}) have a baseline that counts "
            "itself before it: run alone, it never came to the drift, and answered in the world from before. Their "
            "gain says nothing of memory; read the comparable instances."
        )

    def of(outcomes: Sequence[Mapping[str, Any]]) -> Figures:
        reward = fmean(one["reward"] for one in outcomes)
        without = fmean(stateless[one["instance_id"]]["reward"] for one in outcomes)
        share = (reward - fixed) / (r_max - fixed) if fixed is not None and fixed < r_max else None
        left = r_max - without
        return Figures(
            len(outcomes), reward, without, reward - without, (reward - without) / left if left else None, share
        )

    return Report(of(both), of(comparable) if comparable else None, tuple(faults))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("baseline", type=Path)
    parser.add_argument("--r-max", type=float, required=True)
    parser.add_argument("--fixed", type=float)
    parser.add_argument("--drift", type=int)
    given = parser.parse_args()
    run, baseline = (json.loads(file.read_text(encoding="utf-8")) for file in (given.run, given.baseline))
    print(json.dumps(asdict(report(run, baseline, r_max=given.r_max, fixed=given.fixed, drift=given.drift)), indent=2))


if __name__ == "__main__":
    main()
