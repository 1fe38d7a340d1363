"""Scaling: trying one task in several trajectories, and choosing the best (MaTTS of the ReasoningBank paper)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode

Kind = Literal["parallel", "vanilla", "sequential"]
MAX_K = 64
"""The most trajectories of one task."""
MAX_PARALLEL = 4
"""How many trajectories of one task run at the same time."""
DEFAULT_TEMPERATURE = 0.7
"""The temperature of trajectories whose actor names none: at 0 they would be copies of each other."""
_TEXT = re.compile(r"(\w+):(\d{1,4})(:judge)?")


@dataclass(frozen=True)
class Scale:
    """How a task is scaled.

    Attributes:
        kind: "parallel": k episodes that know nothing of each other, of which the bank learns by contrast. "vanilla":
            the same, and the bank learns from each alone. "sequential": one episode whose attempt is checked and
            refined, k attempts in all.
        k: how many trajectories.
        judge: whether a model compares the trajectories to choose the best. False: the verdicts of the evaluator do.
    """

    kind: Kind
    k: int
    judge: bool = False

    @classmethod
    def parse(cls, text: str) -> Scale:
        """The scale that a text such as "parallel:5", "parallel:5:judge" or "sequential:3" names.

        Raises `InvalidInput`.
        """
        match = _TEXT.fullmatch(text.strip())
        if match is None or match[1] not in get_args(Kind) or not 1 <= int(match[2]) <= MAX_K:
            kinds = ", ".join(f"{kind}:K" for kind in get_args(Kind))
            raise InvalidInput(f"A scale must be {kinds}, with K from 1 to {MAX_K} (parallel:5), not {text!r}.")
        if match[3] and match[1] == "sequential":
            raise InvalidInput(
                f"{text!r}: omit :judge, because with sequential, only the evaluator judges the attempts."
            )
        return cls(cast(Kind, match[1]), int(match[2]), match[3] is not None)

    @property
    def siblings(self) -> int:
        """How many episodes a run has."""
        return 1 if self.kind == "sequential" else self.k


def scale_of(text: str | None) -> Scale | None:
    """The scale of a recipe; None if it has none. Raises `InvalidInput`."""
    return None if text is None else Scale.parse(text)


def worth(episode: Episode) -> tuple[bool, float]:
    """The key by which episodes are compared: solved ones are best, then those whose best attempt scored higher."""
    best = episode.best
    score = best.feedback.score if best and best.feedback else None
    return episode.solved, float("-inf") if score is None else score


def tied(episodes: Sequence[Episode]) -> list[int]:
    """The indices of the best episodes, by the evaluator's verdicts."""
    best = max(map(worth, episodes))
    return [index for index, episode in enumerate(episodes) if worth(episode) == best]
