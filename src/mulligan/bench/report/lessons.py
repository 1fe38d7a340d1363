"""What the lessons of a run were worth: their quality beside what the next trial did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from mulligan.core.rates import Rate, rate
from mulligan.core.records import Episode, Reflection
from mulligan.text.reflections import after_lesson

BANDS = ((0.0, 0.25), (0.25, 0.7), (0.7, 1.0))
"""Of the score; the upper end belongs to the next band, and 1 to the last."""


@dataclass(frozen=True)
class Lessons:
    """The lessons of one band of quality.

    Attributes:
        band: such as "0.25 to 0.7", "withheld", or "not scored" (recorded before there was a score).
        count: lessons in it.
        quality: the mean of their scores. None: they have none.
        tokens: what one took, on average.
        passed: of the lessons behind which a judged trial came, those whose next trial passed.
        better: the same, with those whose next trial did not pass but scored higher.
    """

    band: str
    count: int
    quality: float | None
    tokens: float
    passed: Rate
    better: Rate


def lessons_by_quality(episodes: Iterable[Episode]) -> Sequence[Lessons]:
    """One row for each band that has a lesson, the lowest first."""
    found: dict[str, list[tuple[Reflection, str | None]]] = {name: [] for name in _NAMES}
    for episode in episodes:
        for trial in episode.trials:
            if trial.reflection and trial.reflection.text:
                after = after_lesson(episode, trial.number)
                found[_band(trial.reflection)].append((trial.reflection, after))
    return [_row(band, lessons) for band, lessons in found.items() if lessons]


_NAMES = ("not scored", "withheld", *(f"{low:g} to {high:g}" for low, high in BANDS))


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
        len(lessons),
        fmean(scores) if scores else None,
        fmean(reflection.usage.tokens for reflection, _ in lessons),
        rate(judged.count("passed"), len(judged)),
        rate(sum(after != "no better" for after in judged), len(judged)),
    )
