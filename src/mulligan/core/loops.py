"""Detect that an agent goes in circles, from its actions alone.

Works alone, inside somebody else's agent: `if why := detector.add(action): ...`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mulligan.core.errors import InvalidInput

# Characters of an action that the reason quotes.
SHOWN = 120


class LoopDetector:
    """Detects loops: an action, or a cycle of 2 or 3 actions, repeated `repeats` times in a row.

    White space is ignored. Do not pass thoughts (`think: …`).

    Args:
        repeats: the number of repetitions, at least 2. (In ALFWorld, Reflexion's code stops at 2 identical actions, and
            the paper after more than 3.)
        periods: the lengths of the cycles to detect, each at least 2.

    Raises:
        InvalidInput: an argument is too low.
    """

    def __init__(self, repeats: int = 3, periods: Sequence[int] = (2, 3)) -> None:
        if repeats < 2 or any(period < 2 for period in periods):
            raise InvalidInput(f"repeats and each of the periods must be 2 or more, not {repeats} and {list(periods)}.")
        self._repeats = repeats
        self._periods = (1, *sorted(periods))
        self._actions: deque[str] = deque(maxlen=repeats * self._periods[-1])

    def add(self, action: str) -> str | None:
        """Adds the next action. While there is a loop, returns a description of it for the feedback."""
        self._actions.append(" ".join(action.split()))
        for period in self._periods:
            length = period * self._repeats
            recent = list(self._actions)[-length:]
            if len(recent) == length and recent[period:] == recent[:-period]:
                return self._why(recent[:period])
        return None

    def reset(self) -> None:
        """Forgets all actions. Call it before the next try, or after reporting the loop to the agent."""
        self._actions.clear()

    def _why(self, cycle: list[str]) -> str:
        quoted = [f"`{action[:SHOWN]}{'…' if len(action) > SHOWN else ''}`" for action in cycle]
        if len(quoted) == 1:
            return f"The same action was taken {self._repeats} times in a row: {quoted[0]}."
        times = f"{self._repeats} times over"
        return f"The same {len(quoted)} actions were taken in turn, {times}: {', then '.join(quoted)}."
