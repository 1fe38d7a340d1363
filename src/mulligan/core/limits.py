"""The limits of an episode. Each limit has its own stop reason in the record."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from mulligan.core.errors import InvalidInput


@dataclass(frozen=True)
class Limits:
    """The limits of an episode. None means no limit. Raises `InvalidInput` for what can never work.

    Attributes:
        trials: attempts at most, the first included (Reflexion's max_iters). Stop: exhausted.
        tokens: input and output tokens of all model calls together. Stop: over_budget.
        cost: US dollars; needs models of known price. Stop: over_budget.
        seconds: time spent working, without pauses between resumes. Stop: over_budget.
        identical: attempts in a row with the same output and the same actions; 0, like None, never stops. Stop: stuck.
    """

    trials: int = 4
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    identical: int | None = 3

    def __post_init__(self) -> None:
        if self.identical == 0 and not isinstance(self.identical, bool):
            object.__setattr__(self, "identical", None)
        least = {"trials": 1, "tokens": 1, "identical": 2}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name != "trials":
                continue
            whole = field.name in least
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
                kind = "a whole number" if whole else "a number"
                raise InvalidInput(f"The limit {field.name!r} must be {kind}, not {value!r}.")
            endless = isinstance(value, float) and not math.isfinite(value)
            if endless or value < least.get(field.name, 0) or (not whole and value == 0):
                floor = f"at least {least[field.name]}" if whole else "more than 0"
                raise InvalidInput(f"The limit {field.name!r} must be {floor}, not {value!r}.")
