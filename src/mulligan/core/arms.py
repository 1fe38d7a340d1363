"""Arms: the ways in which a strategy may go on after a failed trial, and what was seen of each.

A strategy that learns (`core.protocols.Learns`) chooses an arm before each trial; once its episode is over, the store
counts which arm passed. examples/thompson_strategy.py is such a strategy.
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
"""Trials that what was seen with other kinds of task counts for, at most, per arm."""


@dataclass(frozen=True)
class ArmRow:
    """What is counted of an arm with one model and one kind of task; kind "": over all kinds.

    Attributes:
        tried, passed: trials, since the count began.
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
    """After so many trials with a model and a kind, how many of the newest count. It grows with the root of their
    number: a change is followed, and exploring costs less and less where nothing changes."""
    return min(MOST_MEMORY, max(LEAST_MEMORY, 15 * math.sqrt(trials)))


def counted(rows: Iterable[ArmRow], new: ArmRow, passed: bool) -> tuple[ArmRow, ...]:
    """The rows of one model and kind after a trial with the arm of `new`, which counts from its numbers where the rows
    do not have it. Every arm fades, those that were not tried, too, so that each is tried again in time."""
    known = {row.arm: row for row in rows}
    known.setdefault(new.arm, new)
    kept = 1 - 1 / memory(sum(row.tried for row in known.values()))
    known = {arm: replace(row, won=row.won * kept, lost=row.lost * kept) for arm, row in known.items()}
    row = known[new.arm]
    known[new.arm] = replace(
        row, tried=row.tried + 1, passed=row.passed + passed, won=row.won + passed, lost=row.lost + (not passed)
    )
    return tuple(known.values())


def seen(rows: Sequence[ArmRow], kind: str) -> dict[str, Counts]:
    """What counts for a task of this kind, by arm: that of the kind, and that of other kinds as a few trials."""
    kind = folded_kind(kind)
    found = {row.arm: (row.won, row.lost) for row in rows if row.kind == kind}
    for row in rows if kind else ():
        if not row.kind:
            own = found.get(row.arm, (0.0, 0.0))
            won, lost = max(0.0, row.won - own[0]), max(0.0, row.lost - own[1])
            weight = POOLED / max(won + lost, POOLED)
            found[row.arm] = own[0] + weight * won, own[1] + weight * lost
    return {arm: (round(won, 6), round(lost, 6)) for arm, (won, lost) in found.items()}


def model_of(head: Head) -> str:
    """The model that acts; of an actor without one, the actor's name."""
    actor: Json = head.settings.get("actor") or {}
    return head.models.get("actor") or f"actor {actor.get('name', '')}"


def settings_with(settings: Mapping[str, Json], rows: Sequence[ArmRow], kind: str) -> dict[str, Json]:
    """The settings of a strategy that learns, with what was seen of its arms."""
    return {**settings, "seen": {arm: list(counts) for arm, counts in sorted(seen(rows, kind).items())}}


def outcomes(episode: Episode, events: Sequence[Event]) -> list[tuple[str, bool]]:
    """Of each trial that was chosen and judged, the arm and whether it passed. A fork leaves out what it copied."""
    forked = max((n for n, event in enumerate(events) if isinstance(event, Forked)), default=0)
    copied = sum(isinstance(event, Acted) for event in events[:forked])
    return [
        (trial.attempt.choice.arm, trial.feedback.passed)
        for trial in episode.trials[copied:]
        if trial.attempt.choice and trial.feedback and trial.feedback.passed is not None
    ]
