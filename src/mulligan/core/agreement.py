"""How far people's scores and computed ones agree, by ranks: the two need not have one scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from mulligan.core.records import Episode, Rating, Trial

LEAST = 10
"""Pairs of scores below which nothing is said: chance alone would decide."""


@dataclass(frozen=True)
class Agreement:
    """How far two scores of the same things agree.

    Attributes:
        n: how many things have both scores.
        correlation: Spearman's rank correlation, -1 to 1. None where one of the scores is the same for all.
        share: of two things that both scores tell apart, how often both put the same one first. None where there are
            no two such things.
    """

    n: int
    correlation: float | None
    share: float | None


def agreement(pairs: Sequence[tuple[float, float]]) -> Agreement | None:
    """How far the first and the second score of each pair agree. None for fewer than `LEAST` pairs."""
    if len(pairs) < LEAST:
        return None
    ours, theirs = _ranks([one for one, _ in pairs]), _ranks([other for _, other in pairs])
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in combinations(pairs, 2)]
    told = [sign for sign in signs if sign]
    return Agreement(
        len(pairs), _correlation(ours, theirs), sum(sign > 0 for sign in told) / len(told) if told else None
    )


def latest(ratings: Iterable[Rating]) -> list[Rating]:
    """Of each person the newest rating of each thing."""
    return list({(rating.by, rating.trial): rating for rating in ratings}.values())


def of_lessons(episodes: Iterable[Episode]) -> list[tuple[float, float]]:
    """A person's score of each reflection, and its computed quality."""
    found: list[tuple[float, float]] = []
    for episode in episodes:
        for rating in latest(episode.ratings):
            reflection = episode.trials[rating.trial - 1].reflection if rating.trial else None
            if reflection and reflection.quality:
                found.append((rating.score, reflection.quality.score))
    return found


def of_results(episodes: Iterable[Episode]) -> list[tuple[float, float]]:
    """A person's score of each result, and what its judge said: its score if it has one, else 1 for passed, else 0."""
    found: list[tuple[float, float]] = []
    for episode in episodes:
        judged = judged_as(episode.best)
        found += [
            (rating.score, judged) for rating in latest(episode.ratings) if not rating.trial and judged is not None
        ]
    return found


def judged_as(trial: Trial | None) -> float | None:
    """The judge's score of a trial, or what its verdict counts. None where it is unknown."""
    feedback = trial.feedback if trial else None
    if feedback is None or feedback.passed is None:
        return None
    return float(feedback.passed) if feedback.score is None else feedback.score


def _ranks(values: Sequence[float]) -> list[float]:
    """The place of each value among all; equal ones share the mean of their places."""
    order = sorted(values)
    places = {value: order.index(value) + (order.count(value) - 1) / 2 for value in set(values)}
    return [places[value] for value in values]


def _correlation(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    middle = (len(ours) - 1) / 2
    mine, its = [a - middle for a in ours], [b - middle for b in theirs]
    spread = (sum(a * a for a in mine) * sum(b * b for b in its)) ** 0.5
    return sum(a * b for a, b in zip(mine, its, strict=True)) / spread if spread else None
