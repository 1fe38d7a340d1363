"""The limits of an episode. Each limit has its own stop reason in the record."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from mulligan.core.errors import InvalidInput


@dataclass(frozen=True)
class Limits:
    """The limits of an episode. None means no limit.

    Attributes:
        trials: the maximum number of tries, including the first (Reflexion's max_iters). Stop reason: exhausted.
        tokens: the maximum number of input and output tokens in all model calls. Stop reason: over_budget.
        cost: the maximum cost, in US dollars. Requires models with known prices. Stop reason: over_budget.
        seconds: the maximum working time, excluding pauses. Stop reason: over_budget.
        identical: the number of attempts in a row with the same output and actions; 0 and None disable this limit. Stop
            reason: stuck.

    Raises:
        InvalidInput: a value can never work.
    """

    trials: int = 4
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    identical: int | None = 3

    def __post_init__(self) -> None:
        if self.identical == 0 and not isinstance(self.identical, bool):
            object.__setattr__(self, "identical", None)
        minimums = {"trials": 1, "tokens": 1, "identical": 2}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name != "trials":
                continue
            is_whole = field.name in minimums
            if isinstance(value, bool) or not isinstance(value, int if is_whole else (int, float)):
                kind = "an integer" if is_whole else "a number"
                raise InvalidInput(f"The limit {field.name!r} must be {kind}, not {value!r}.")
            infinite = isinstance(value, float) and not math.isfinite(value)
            if infinite or value < minimums.get(field.name, 0) or (not is_whole and value == 0):
                minimum = f"at least {minimums[field.name]}" if is_whole else "more than 0"
                raise InvalidInput(f"The limit {field.name!r} must be {minimum}, not {value!r}.")
