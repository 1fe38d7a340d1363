"""Arms: the ways in which a strategy may continue after a failed trial, and how often each was tried and passed.

A strategy that learns (see `core.protocols.Adapts`) chooses an arm before each trial; once its episode is over, the
store counts which arms passed. examples/thompson_strategy.py is such a strategy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mulligan.core.episode import Acted, Event, Forked
from mulligan.core.records import Episode, Head, Json, folded_kind

Counts: TypeAlias = tuple[float, float]
"""How much an arm has won and lost."""

LEAST_MEMORY, MOST_MEMORY = 30.0, 1000.0
POOLED = 10.0
"""The most trials that an arm's results with other kinds of task count for."""


@dataclass(frozen=True)
class ArmRow:
    """The counts of an arm with one model and one kind of task; kind "": over all kinds.

    Attributes:
        tried, passed: how many trials used it, and how many of these passed.
        won, lost: the same, with older trials fading (see `counted`).
    """

    model: str
    kind: str
    arm: str
    tried: int = 0
    passed: int = 0
    won: float = 0.0
    lost: float = 0.0


def memory(trials: int) -> float:
    """How many of the newest trials count, after this many with a model and a kind.

    It grows with the square root: the counts follow a change, and exploring costs less and less if nothing changes.
    """
    return min(MOST_MEMORY, max(LEAST_MEMORY, 15 * math.sqrt(trials)))


def counted(rows: Iterable[ArmRow], new: ArmRow, passed: bool) -> tuple[ArmRow, ...]:
    """The rows of one model and kind after a trial with the arm of `new`; `new` is the row of an arm that has none yet.

    The counts of every arm fade, even of those that were not tried, so that each is tried again in time.
    """
    known = {row.arm: row for row in rows}
    known.setdefault(new.arm, new)
    fading = 1 - 1 / memory(sum(row.tried for row in known.values()))
    known = {arm: replace(row, won=row.won * fading, lost=row.lost * fading) for arm, row in known.items()}
    row = known[new.arm]
    known[new.arm] = replace(
        row, tried=row.tried + 1, passed=row.passed + passed, won=row.won + passed, lost=row.lost + (not passed)
    )
    return tuple(known.values())


def seen(rows: Sequence[ArmRow], kind: str) -> dict[str, Counts]:
    """What each arm won and lost with this kind of task, and, as at most `POOLED` trials, with other kinds."""
    kind = folded_kind(kind)
    counts = {row.arm: (row.won, row.lost) for row in rows if row.kind == kind}
    for row in rows if kind else ():
        if not row.kind:
            of_kind = counts.get(row.arm, (0.0, 0.0))
            won, lost = max(0.0, row.won - of_kind[0]), max(0.0, row.lost - of_kind[1])
            weight = POOLED / max(won + lost, POOLED)
            counts[row.arm] = of_kind[0] + weight * won, of_kind[1] + weight * lost
    return {arm: (round(won, 6), round(lost, 6)) for arm, (won, lost) in counts.items()}


def model_of(head: Head) -> str:
    """The id of the actor's model, or the actor's name if it has none."""
    actor: Json = head.settings.get("actor") or {}
    return head.models.get("actor") or f"actor {actor.get('name', '')}"


def settings_with(settings: Mapping[str, Json], rows: Sequence[ArmRow], kind: str) -> dict[str, Json]:
    """The settings of a strategy that learns, with the counts of its arms as `seen`."""
    return {**settings, "seen": {arm: list(counts) for arm, counts in sorted(seen(rows, kind).items())}}


def outcomes(episode: Episode, events: Sequence[Event]) -> list[tuple[str, bool]]:
    """The arm of each trial that has one and was judged, and whether it passed. A fork leaves out what it copied."""
    fork = max((n for n, event in enumerate(events) if isinstance(event, Forked)), default=0)
    copied = sum(isinstance(event, Acted) for event in events[:fork])
    return [
        (trial.attempt.choice.arm, trial.feedback.passed)
        for trial in episode.trials[copied:]
        if trial.attempt.choice and trial.feedback and trial.feedback.passed is not None
    ]
