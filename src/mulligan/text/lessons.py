"""Chooses the lessons of an episode that a trial is shown, within a window and a budget of tokens.

Use it alone in your own strategy: `LessonBudget(window=3, tokens=200).chosen(episode)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Condensed, Episode, Reflection
from mulligan.text.formatting import lessons_text, newest
from mulligan.text.likeness import likeness
from mulligan.text.truncate import estimate, truncate_text

Overflow: TypeAlias = Literal["newest", "useful", "condense"]

MIN_TOKENS = 40
"""The smallest budget of tokens that has room for a useful lesson."""
DISCOUNT = 0.9
"""The factor by which each later lesson lowers the usefulness of a lesson."""
DEFAULT_QUALITY = 0.5
"""The quality of a lesson without a score."""


def size(reflections: Sequence[Reflection]) -> int:
    """Returns the estimated number of tokens of these lessons in a prompt."""
    return estimate(lessons_text(reflections))


@dataclass(frozen=True)
class LessonBudget:
    """The limits for the lessons that a trial sees, and how to choose among more lessons.

    Attributes:
        window: the maximum number of lessons; None for no limit.
        tokens: the maximum total number of tokens (estimated); None for no limit.
        overflow: "newest" shows the newest lessons; "useful" omits old, poor and repetitive lessons; "condense" shows
            the lesson into which a model condensed them or, if there is none, does the same as "useful".
        earlier: reflections on trials of the task before this episode, oldest first.

    Raises:
        InvalidInput: a limit is too low, or `overflow` is set without a limit.
    """

    window: int | None = 3
    tokens: int | None = None
    overflow: Overflow = "newest"
    earlier: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        newest((), self.window)  # refuses a window below 1
        if self.tokens is not None and self.tokens < MIN_TOKENS:
            raise InvalidInput(f"The token budget for lessons must be at least {MIN_TOKENS}, not {self.tokens}.")
        if self.overflow != "newest" and self.window is None and self.tokens is None:
            raise InvalidInput(
                f"overflow={self.overflow!r} needs a limit: set a window, or a token budget for the lessons."
            )

    def chosen(self, episode: Episode) -> tuple[Reflection, ...]:
        """Returns the lessons that the next trial sees, oldest first, within the limits."""
        if self.overflow == "newest":
            reflections = (*map(Reflection, self.earlier), *episode.newest_reflections(self.window))
            lessons = newest(reflections, self.window)
            return lessons if self.tokens is None else self._fitting(lessons[::-1])
        lessons = self.candidates(episode)
        return self._most_useful(lessons) if self.is_exceeded(lessons) else lessons

    def candidates(self, episode: Episode) -> tuple[Reflection, ...]:
        """Returns all lessons, oldest first, with condensed lessons instead of those that they replace."""
        lessons = [*map(Reflection, self.earlier)]
        condensed = condensed_of(episode) if self.overflow == "condense" else None
        replaced = condensed.trials if condensed else ()
        if condensed:
            lessons = [*([] if 0 in replaced else lessons), reflection_of(condensed)]
        return (
            *lessons,
            *(t.reflection for t in episode.trials if t.lesson and t.reflection and t.number not in replaced),
        )

    def is_exceeded(self, reflections: Sequence[Reflection]) -> bool:
        """Whether these lessons exceed a limit."""
        if self.window is not None and len(reflections) > self.window:
            return True
        return self.tokens is not None and size(reflections) > self.tokens

    def _most_useful(self, reflections: Sequence[Reflection]) -> tuple[Reflection, ...]:
        """Returns the newest lesson, which is about the last failure, and the most useful others."""
        order, left = [len(reflections) - 1], list(range(len(reflections) - 1))
        while left:
            best = max(left, key=lambda at: (self._usefulness(at, order, reflections), at))
            left.remove(best)
            order.append(best)
        return self._fitting([reflections[at] for at in order], order)

    def _usefulness(self, at: int, chosen: Sequence[int], reflections: Sequence[Reflection]) -> float:
        text = reflections[at].text
        overlap = max(likeness(text, reflections[other].text) for other in chosen)
        quality = reflections[at].quality
        score = DEFAULT_QUALITY if quality is None else quality.score
        return score * (1 - overlap) * DISCOUNT ** (len(reflections) - 1 - at)

    def _fitting(self, reflections: Sequence[Reflection], order: Sequence[int] = ()) -> tuple[Reflection, ...]:
        """Returns the lessons that fit, oldest first. The most important one is shortened if it is too long alone.

        Args:
            reflections: the lessons, the most important first.
            order: the position of each in time. If it is empty, the newest is the most important.
        """
        lessons: list[tuple[int, Reflection]] = []
        for position, reflection in zip(order or range(len(reflections), 0, -1), reflections, strict=True):
            if self.window is not None and len(lessons) == self.window:
                break
            part = reflection if lessons or self.tokens is None else shortened(reflection, self.tokens)
            more = sorted([*lessons, (position, part)], key=lambda lesson: lesson[0])
            if self.tokens is None or size([lesson for _, lesson in more]) <= self.tokens:
                lessons = more
        return tuple(lesson for _, lesson in lessons)


def condensed_of(episode: Episode) -> Condensed | None:
    """Returns the newest condensed lesson, which replaces all earlier ones."""
    lessons = (reflection.condensed for reflection in reversed(episode.reflections) if reflection.condensed)
    return next(lessons, None)


def reflection_of(condensed: Condensed) -> Reflection:
    """Returns a condensed lesson as a reflection."""
    return Reflection(condensed.text, notes=(f"condensed from the lessons of {_trials_text(condensed.trials)}",))


def condensed_by(condensed: Condensed) -> str:
    """Returns a text that says which lessons were condensed, and by which model."""
    by = f" by {condensed.by}" if condensed.by else ""
    return f"the lessons of {_trials_text(condensed.trials)}, condensed{by}"


def _trials_text(trials: Sequence[int]) -> str:
    numbers = ", ".join(str(number) for number in trials if number)
    before = ["before this episode"] if 0 in trials else []
    return " and ".join([*before, *([f"trials {numbers}"] if numbers else [])])


def shortened(reflection: Reflection, tokens: int) -> Reflection:
    """Returns the lesson, with a note in place of its middle if it does not fit."""
    if size([reflection]) <= tokens:
        return reflection
    return replace(reflection, text=" ".join(truncate_text(reflection.text, tokens - 4).split()))
