"""How far people's scores and computed ones agree, by ranks: the two need not have one scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from mulligan.core.records import Episode, Rating, Trial

MIN_PAIRS = 10
"""Fewer pairs of scores say nothing: chance alone would decide."""


@dataclass(frozen=True)
class Agreement:
    """How far two scores of the same things agree.

    Attributes:
        n: how many things have both scores.
        correlation: Spearman's rank correlation, -1 to 1. None if one of the scores is the same for all.
        share: how often both scores order two things the same way, of the pairs of things that both tell apart. None
            if there are no such pairs.
    """

    n: int
    correlation: float | None
    share: float | None


def agreement(pairs: Sequence[tuple[float, float]]) -> Agreement | None:
    """How far the first and the second score of each pair agree. None for fewer than `MIN_PAIRS` pairs."""
    if len(pairs) < MIN_PAIRS:
        return None
    first, second = zip(*pairs, strict=True)
    products = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in combinations(pairs, 2)]
    ordered = [product for product in products if product]
    share = sum(product > 0 for product in ordered) / len(ordered) if ordered else None
    return Agreement(len(pairs), _correlation(_ranks(first), _ranks(second)), share)


def latest(ratings: Iterable[Rating]) -> list[Rating]:
    """The newest rating of each thing by each person."""
    return list({(rating.by, rating.trial): rating for rating in ratings}.values())


def of_lessons(episodes: Iterable[Episode]) -> list[tuple[float, float]]:
    """The pairs of a person's score of a reflection and its computed quality."""
    pairs: list[tuple[float, float]] = []
    for episode in episodes:
        for rating in latest(episode.ratings):
            reflection = episode.trials[rating.trial - 1].reflection if rating.trial else None
            if reflection and reflection.quality:
                pairs.append((rating.score, reflection.quality.score))
    return pairs


def of_results(episodes: Iterable[Episode]) -> list[tuple[float, float]]:
    """The pairs of a person's score of a result and the judge's, as `judged_as` gives it."""
    pairs: list[tuple[float, float]] = []
    for episode in episodes:
        judged = judged_as(episode.best)
        pairs += [
            (rating.score, judged) for rating in latest(episode.ratings) if not rating.trial and judged is not None
        ]
    return pairs


def judged_as(trial: Trial | None) -> float | None:
    """The judge's score of a trial, else 1 if it passed and 0 if it failed. None if it was not judged."""
    feedback = trial.feedback if trial else None
    if feedback is None or feedback.passed is None:
        return None
    return float(feedback.passed) if feedback.score is None else feedback.score


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value; equal values share the mean of their ranks."""
    order = sorted(values)
    ranks = {value: order.index(value) + (order.count(value) - 1) / 2 for value in set(values)}
    return [ranks[value] for value in values]


def _correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    middle = (len(first) - 1) / 2
    deviations, others = [a - middle for a in first], [b - middle for b in second]
    spread = (sum(a * a for a in deviations) * sum(b * b for b in others)) ** 0.5
    return sum(a * b for a, b in zip(deviations, others, strict=True)) / spread if spread else None
