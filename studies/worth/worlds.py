"""The worlds of the study, written down before any was run. On `MIXED` and `DRIFT` half-life, prior and stakes were
chosen; `KEPT_BACK` was looked at once, when they were.

An entry adds `effect` to the chance of success when it is shown. Tasks recall groups of entries together.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class World:
    """base: the chance of success with nothing shown. spread: how far tasks differ in difficulty, either way; half
    depends on the group, so that some entries are recalled for harder tasks. effects: by entry, until `turn`, and after
    it (the same where empty). groups: what is recalled together. others: entries from outside the group that come with
    it, drawn for each task. redundant: two entries of which one is as good as both: what the first of them shown adds.
    """

    name: str
    tasks: int
    base: float
    spread: float
    effects: tuple[float, ...]
    after: tuple[float, ...] = ()
    turn: int = 0
    groups: tuple[tuple[int, ...], ...] = ()
    others: int = 0
    redundant: tuple[int, int, float] | None = None


PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11))

MIXED = World(
    "mixed",
    tasks=1200,
    base=0.5,
    spread=0.1,
    # pairs: help and harm, help and nothing, nothing and harm, both help, both harm, neither
    effects=(0.3, -0.3, 0.15, 0.0, 0.0, -0.15, 0.15, 0.1, -0.2, -0.1, 0.0, 0.0),
    groups=PAIRS,
    others=1,
)

DRIFT = World(
    "drift",
    tasks=2400,
    base=0.5,
    spread=0.1,
    effects=(0.3, 0.0, 0.15, 0.0, 0.0, -0.15, 0.15, 0.1, 0.3, -0.1, 0.0, 0.0),
    after=(-0.3, 0.0, 0.15, 0.0, 0.0, 0.15, -0.15, 0.1, 0.0, -0.1, 0.0, 0.0),
    turn=1200,
    groups=PAIRS,
    others=1,
)

KEPT_BACK = World(
    "kept back",
    tasks=1600,
    base=0.35,
    spread=0.15,
    # two notebooks shown whole; entries 0 and 1 say the same
    effects=(0.0, 0.0, 0.2, -0.25, 0.0, 0.1, -0.15, 0.0, 0.25, 0.0),
    after=(0.0, 0.0, 0.2, -0.25, 0.0, 0.1, -0.15, 0.0, -0.2, 0.0),
    turn=800,
    groups=((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)),
    redundant=(0, 1, 0.2),
)

FRESH = World(
    "fresh",
    tasks=1500,
    base=0.6,
    spread=0.2,
    effects=(0.2, -0.2, 0.0, 0.1, 0.0, -0.1, 0.0, -0.3, 0.2),
    after=(0.2, -0.2, 0.0, 0.1, 0.0, -0.1, -0.25, -0.3, -0.1),
    turn=700,
    groups=((0, 1, 2), (3, 4, 5), (6, 7, 8)),
    others=1,
)
"""Written down when `KEPT_BACK` had been looked at and the interval was widened by Student's t; looked at once, too."""

WORLDS = {world.name: world for world in (MIXED, DRIFT, KEPT_BACK, FRESH)}
SHARES = (0.05, 0.1, 0.2)
HALFLIVES = (50.0, 100.0, 200.0, 400.0, None)
RUNS = 1000
SEED = 60
HARM = -0.05
"""An entry with an effect below this does harm; a retired one above it is a false retirement."""
