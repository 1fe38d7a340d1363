"""Uniform-cost search over candidates: which trial the next ones grow from, and what the roles see of the tree.

Each trial is a node and trial 1 is the root. The cost of a trial is how far its score is below the full score: with
tests, the share that fails. The cheapest node is expanded: it gets all its children before another one does. A node
whose tests gave the same verdicts as an expanded node is not expanded (as in Reflexion's reflexion_ucs.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.core.records import Episode, Feedback, Trial


def next_parent(trials: Sequence[Trial], expansion: int) -> Trial | None:
    """The trial that grows the next child; None when no candidate is left. Ties go to the oldest.

    Args:
        trials: all judged, none of them passed. One that could not be judged is not a candidate: its cost is unknown.
        expansion: children of a trial at most.
    """
    newest = trials[-1]
    if newest.parent is not None:
        unfinished = trials[newest.parent - 1]
        if sum(trial.parent == unfinished.number for trial in trials) < expansion:
            return unfinished
    expanded = {trial.parent for trial in trials}
    closed = {state(trial) for trial in trials if trial.number in expanded}
    failed = (trial for trial in trials if trial.feedback is not None and trial.feedback.passed is False)
    return min((trial for trial in failed if state(trial) not in closed), key=cost, default=None)


def cost(trial: Trial) -> float:
    """How far its score is below the full score of 1; infinite without a score. Lower is better."""
    score = trial.feedback.score if trial.feedback else None
    return float("inf") if score is None else 1.0 - score


def state(trial: Trial) -> Hashable:
    """Equal for trials that are the same node: the verdicts of their tests, or without these the trial's number."""
    return _verdicts(trial.feedback) or trial.number


def _verdicts(feedback: Feedback | None) -> tuple[bool, ...]:
    evidence: Any = feedback.evidence if feedback else None
    passed: Any = cast(Mapping[str, Any], evidence).get("passed") if isinstance(evidence, Mapping) else None
    return tuple(bool(verdict) for verdict in cast(list[Any], passed)) if isinstance(passed, list) else ()


def descent(episode: Episode, trial: int, number: int) -> Episode:
    """The episode as a role sees it that works on trial `number`: only `trial` and those it grew from, oldest first.

    So a role that expects a line of trials works in a tree. The seed is shifted, because a role that adds the number of
    trials to it, as ours do, should still use a different seed for each trial.
    """
    if episode.plan.expansion is None:
        return episode
    line: list[Trial] = []
    at: int | None = trial
    while at is not None:
        line.append(episode.trials[at - 1])
        at = line[-1].parent
    depth = len(line) + (number > trial)
    head = replace(episode.head, seed=episode.head.seed + number - depth)
    return replace(episode, trials=tuple(reversed(line)), head=head)
