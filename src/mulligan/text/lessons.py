"""Which lessons of an episode a trial is shown, within a window and a budget of tokens.

Works alone, in a strategy of your own: `LessonBudget(window=3, tokens=200).chosen(episode)`.
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

LEAST = 40
"""Tokens below which a budget holds no lesson that says anything."""
AGED = 0.9
"""What a lesson is worth compared with the one after it, all else equal."""
UNKNOWN = 0.5
"""The quality of a lesson that has no score."""


def size(reflections: Sequence[Reflection]) -> int:
    """The tokens that these lessons take in a prompt, estimated."""
    return estimate(lessons_text(reflections))


@dataclass(frozen=True)
class LessonBudget:
    """How many lessons a trial is shown, and which if there are more.

    Attributes:
        window: the most lessons. None: any number.
        tokens: the most tokens of all of them together, by estimate. None: any number.
        overflow: of more lessons, "newest" shows the newest; "useful" leaves out those of little quality, the old, and
            those that say what another one says; "condense" shows what a model made of them in the reflect move, and is
            "useful" where no model did.
        earlier: reflections on trials of the task before this episode, oldest first.

    Raises:
        InvalidInput: a window below 1, a budget of too few tokens, or an overflow that can never happen.
    """

    window: int | None = 3
    tokens: int | None = None
    overflow: Overflow = "newest"
    earlier: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        newest((), self.window)  # refuses a window below 1
        if self.tokens is not None and self.tokens < LEAST:
            raise InvalidInput(f"The budget of tokens for lessons must be at least {LEAST}, not {self.tokens}.")
        if self.overflow != "newest" and self.window is None and self.tokens is None:
            raise InvalidInput(
                f"overflow={self.overflow!r} needs a limit: set a window, or a token budget for the lessons."
            )

    def chosen(self, episode: Episode) -> tuple[Reflection, ...]:
        """The lessons that the next trial is shown, oldest first. They never take more than the budget of tokens."""
        if self.overflow == "newest":
            drawn = episode.newest_reflections(self.window)
            found = newest((*map(Reflection, self.earlier), *drawn), self.window)
            return found if self.tokens is None else self._fitting(found[::-1])
        found = self.candidates(episode)
        if not self.is_exceeded(found):
            return found
        return self._most_useful(found)

    def candidates(self, episode: Episode) -> tuple[Reflection, ...]:
        """Every lesson that could be shown, oldest first; a condensed one in place of those that it stands for."""
        found = [*map(Reflection, self.earlier)]
        condensed = condensed_of(episode) if self.overflow == "condense" else None
        covered = condensed.trials if condensed else ()
        if condensed:
            found = [reflection_of(condensed)] if 0 in covered else [*found, reflection_of(condensed)]
        return (
            *found,
            *(t.reflection for t in episode.trials if t.lesson and t.reflection and t.number not in covered),
        )

    def is_exceeded(self, reflections: Sequence[Reflection]) -> bool:
        """Whether these are too many, or too long."""
        if self.window is not None and len(reflections) > self.window:
            return True
        return self.tokens is not None and size(reflections) > self.tokens

    def _most_useful(self, reflections: Sequence[Reflection]) -> tuple[Reflection, ...]:
        """The newest, which is about the last failure, and the most useful others, one after the other."""
        order, left = [len(reflections) - 1], list(range(len(reflections) - 1))
        while left:
            best = max(left, key=lambda at: (self._use(at, order, reflections), at))
            left.remove(best)
            order.append(best)
        return self._fitting([reflections[at] for at in order], order)

    def _use(self, at: int, chosen: Sequence[int], reflections: Sequence[Reflection]) -> float:
        text = reflections[at].text
        known = max(likeness(text, reflections[other].text) for other in chosen)
        quality = reflections[at].quality
        good = UNKNOWN if quality is None else quality.score
        return good * (1 - known) * AGED ** (len(reflections) - 1 - at)

    def _fitting(self, reflections: Sequence[Reflection], order: Sequence[int] = ()) -> tuple[Reflection, ...]:
        """As many as fit, oldest first. The first is shortened where it alone does not fit; others are left out.

        Args:
            reflections: the most important first.
            order: the place in time of each. Empty: the first is the newest.
        """
        kept: list[tuple[int, Reflection]] = []
        for place, reflection in zip(order or range(len(reflections), 0, -1), reflections, strict=True):
            if self.window is not None and len(kept) == self.window:
                break
            part = reflection if kept or self.tokens is None else shortened(reflection, self.tokens)
            trial = sorted([*kept, (place, part)], key=lambda one: one[0])
            if self.tokens is None or size([each for _, each in trial]) <= self.tokens:
                kept = trial
        return tuple(each for _, each in kept)


def condensed_of(episode: Episode) -> Condensed | None:
    """The newest condensed lesson, which stands for all that were condensed before."""
    found = (reflection.condensed for reflection in reversed(episode.reflections) if reflection.condensed)
    return next(found, None)


def reflection_of(condensed: Condensed) -> Reflection:
    """The condensed lesson as one that a trial is shown."""
    return Reflection(condensed.text, notes=(f"condensed from the lessons of {_named(condensed.trials)}",))


def condensed_by(condensed: Condensed) -> str:
    """What the lesson stands for and who wrote it, in words."""
    by = f" by {condensed.by}" if condensed.by else ""
    return f"the lessons of {_named(condensed.trials)}, condensed{by}"


def _named(trials: Sequence[int]) -> str:
    numbers = ", ".join(str(number) for number in trials if number)
    before = ["before this episode"] if 0 in trials else []
    return " and ".join([*before, *([f"trials {numbers}"] if numbers else [])])


def shortened(reflection: Reflection, tokens: int) -> Reflection:
    """The lesson with a note where its middle was cut; as it is, if it fits."""
    if size([reflection]) <= tokens:
        return reflection
    return replace(reflection, text=" ".join(truncate_text(reflection.text, tokens - 4).split()))
