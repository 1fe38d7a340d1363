"""How a bank behaves. Plain values; what each means for a user stands in the docs of mulligan.toml's [memory]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

from mulligan.core.errors import InvalidInput

PRESETS = ("strict", "standard", "lenient")


@dataclass(frozen=True)
class Settings:
    """How a bank behaves; `paper`: whether thinkers ask as the ReasoningBank paper does.

    Each setting is described in its annotation, which the docs show. Raises `InvalidInput` for what can never work.
    """

    top_k: Annotated[
        int,
        "Lessons that one recall gives at most; with the strategy `cosine`, experiences of up to three lessons.",
    ] = 3
    threshold: Annotated[
        float | Literal["strict", "standard", "lenient"] | None,
        "The relevance, 0 to 1, below which a lesson is not given; or `strict`, `standard` or `lenient`. "
        "It is calibrated for each embedder, so that it means the same for all.",
    ] = None
    tokens: Annotated[int, "Tokens that the recalled lessons may take in a prompt."] = 1200
    trajectory_tokens: Annotated[
        int,
        "Tokens that an episode may take in what a judge or an extractor is asked.",
    ] = 8000
    fold: Annotated[bool, "Whether lessons that are equal, letter by letter, become one that counts them."] = True
    near_duplicates: Annotated[
        Literal["link", "skip"],
        "What is done with a new lesson that nearly says what another says: `link` keeps both and links "
        "them, `skip` does not keep the new one.",
    ] = "link"
    auto_merge: Annotated[bool, "Whether lessons that are alike are merged in the background."] = True
    quarantine: Annotated[
        bool,
        "Whether a lesson that tries to instruct its reader is held back until it is released.",
    ] = True
    paper: bool = False
    attempts: Annotated[int, "How often queued work is tried before it has failed."] = 3

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
