"""How a bank behaves. Plain values; what each means for a user stands in the docs of mulligan.toml's [memory]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from mulligan.core.errors import InvalidInput

PRESETS = ("strict", "standard", "lenient")


@dataclass(frozen=True)
class Settings:
    """Raises `InvalidInput` for what can never work.

    top_k: lessons (with the strategy cosine, experiences) that a recall gives at most.
    threshold: relevance, 0 to 1, below which a lesson is not given; strict, standard or lenient; None leaves it to the
    strategy.
    tokens: what the formatted prompt may take. trajectory_tokens: what an episode may take in a question.
    fold: whether exact duplicates become one. near_duplicates: "link" keeps both and links them in the background,
    "skip" does not keep the new one.
    auto_merge: whether lessons that are alike are merged in the background.
    quarantine: whether a lesson that tries to instruct its reader is held back.
    paper: whether thinkers ask as the paper does. attempts: how often queued work is tried.
    """

    top_k: int = 3
    threshold: float | Literal["strict", "standard", "lenient"] | None = None
    tokens: int = 1200
    trajectory_tokens: int = 8000
    fold: bool = True
    near_duplicates: Literal["link", "skip"] = "link"
    auto_merge: bool = True
    quarantine: bool = True
    paper: bool = False
    attempts: int = 3

    def __post_init__(self) -> None:
        for name in ("top_k", "tokens", "trajectory_tokens", "attempts"):
            whole_number(name, getattr(self, name))
        checked_threshold(self.threshold)
        if self.near_duplicates not in ("link", "skip"):
            raise InvalidInput(f"near_duplicates is link or skip, not {self.near_duplicates!r}.")

    def as_in_the_paper(self) -> Settings:
        """The preset "paper": nothing is folded, linked or merged, and one experience is recalled."""
        return replace(self, top_k=1, threshold=None, fold=False, near_duplicates="link", auto_merge=False, paper=True)


def whole_number(name: str, value: object) -> int:
    """The value. Raises `InvalidInput` unless it is a whole number of at least 1; 2.0 is one, 2.5 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInput(f"{name} must be a whole number of at least 1, not {value!r}.")
    return value


def checked_threshold(value: object) -> None:
    """Raises `InvalidInput` for what is neither a relevance from 0 to 1, a preset nor None."""
    if value is None or value in PRESETS:
        return
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return
    raise InvalidInput(f"A threshold is a relevance from 0 to 1, or {', '.join(PRESETS)}, not {value!r}.")


def moment(value: object) -> float:
    """The value. Raises `InvalidInput` unless it can be a time: a number of seconds since the epoch."""
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
        return float(value)
    raise InvalidInput(f"A time is in seconds since the epoch, not {value!r}.")
