"""The lessons of a run by their quality, and how the next trials ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mulligan.core.rates import Rate, rate
from mulligan.core.records import Episode, Reflection
from mulligan.text.reflections import after_lesson

BANDS = ((0.0, 0.25), (0.25, 0.7), (0.7, 1.0))
"""Bands of the score. An upper end belongs to the next band, but 1 belongs to the last."""
_NAMES = ("not scored", "withheld", *(f"{low:g} to {high:g}" for low, high in BANDS))


@dataclass(frozen=True)
class Lessons:
    """The lessons of one band of quality.

    Attributes:
        band: such as "0.25 to 0.7", "withheld", or "not scored" (recorded before lessons had scores).
        count: the number of lessons.
        quality: the mean score. None: they have no scores.
        tokens: the mean number of tokens that a lesson cost.
        passed: of the lessons followed by a judged trial, those whose next trial passed.
        better: of the same lessons, those whose next trial passed or scored higher.
    """

    band: str
    count: int
    quality: float | None
    tokens: float
    passed: Rate
    better: Rate


def lessons_by_quality(episodes: Iterable[Episode]) -> Sequence[Lessons]:
    """One row for each band that has lessons, the lowest first."""
    by_band: dict[str, list[tuple[Reflection, str | None]]] = {name: [] for name in _NAMES}
    for episode in episodes:
        for trial in episode.trials:
            if trial.reflection and trial.reflection.text:
                after = after_lesson(episode, trial.number)
                by_band[_band(trial.reflection)].append((trial.reflection, after))
    return [_row(band, lessons) for band, lessons in by_band.items() if lessons]


def _band(reflection: Reflection) -> str:
    if reflection.withheld:
        return "withheld"
    if reflection.quality is None:
        return "not scored"
    low, high = next((band for band in BANDS if reflection.quality.score < band[1]), BANDS[-1])
    return f"{low:g} to {high:g}"


def _row(band: str, lessons: Sequence[tuple[Reflection, str | None]]) -> Lessons:
    scores = [reflection.quality.score for reflection, _ in lessons if reflection.quality]
    judged = [after for _, after in lessons if after is not None]
    return Lessons(
        band,
        count=len(lessons),
        quality=fmean(scores) if scores else None,
        tokens=fmean(reflection.usage.tokens for reflection, _ in lessons),
        passed=rate(judged.count("passed"), len(judged)),
        better=rate(sum(after != "no better" for after in judged), len(judged)),
    )
