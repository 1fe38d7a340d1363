"""Uniform-cost search over candidates: which trial the next ones grow from, and what the roles see of the tree.

Each trial is a node, trial 1 is the root, and a trial costs what it misses of the full score: with tests, the share
that fails. The cheapest node is expanded: it gets all its children before another one does. A node whose tests gave
exactly the verdicts of one that was expanded is not expanded (as in Reflexion's reflexion_ucs.py).
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
        begun = trials[newest.parent - 1]
        if sum(trial.parent == begun.number for trial in trials) < expansion:
            return begun
    expanded = {trial.parent for trial in trials}
    closed = {state(trial) for trial in trials if trial.number in expanded}
    failed = (trial for trial in trials if trial.feedback is not None and trial.feedback.passed is False)
    return min((trial for trial in failed if state(trial) not in closed), key=cost, default=None)


def cost(trial: Trial) -> float:
    """What it lacks of the full score, which is 1; infinite where it has no score. Lower is better."""
    score = trial.feedback.score if trial.feedback else None
    return float("inf") if score is None else 1.0 - score


def state(trial: Trial) -> Hashable:
    """What makes two trials the same node: the verdicts of their tests. Without such evidence each is its own."""
    return _verdicts(trial.feedback) or trial.number


def _verdicts(feedback: Feedback | None) -> tuple[bool, ...]:
    evidence: Any = feedback.evidence if feedback else None
    passed: Any = cast(Mapping[str, Any], evidence).get("passed") if isinstance(evidence, Mapping) else None
    return tuple(bool(one) for one in cast(list[Any], passed)) if isinstance(passed, list) else ()


def descent(episode: Episode, trial: int, number: int) -> Episode:
    """The episode as a role sees it that works on trial `number`: only `trial` and those it grew from, oldest first.

    So a role that knows of lines alone works in a tree. The seed is moved, so that a role that adds the count of trials
    to it, as ours do, draws for each trial with a seed of its own.
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
