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
    """Finds loops: an action `repeats` times in a row, or a cycle of 2 or 3 actions repeated as often.

    White space is ignored. Do not pass thoughts (`think: …`).

    Args:
        repeats: how often, at least 2 (Reflexion's code stops ALFWorld at 2 identical ones, the paper after more than
            3).
        periods: lengths of the cycles to look for, each at least 2. Raises `InvalidInput` for less.
    """

    def __init__(self, repeats: int = 3, periods: Sequence[int] = (2, 3)) -> None:
        if repeats < 2 or any(period < 2 for period in periods):
            raise InvalidInput(f"repeats and periods must be 2 or more, not {repeats} and {list(periods)}.")
        self._repeats = repeats
        self._periods = (1, *sorted(periods))
        self._actions: deque[str] = deque(maxlen=repeats * self._periods[-1])

    def add(self, action: str) -> str | None:
        """Adds the next action. Returns why it makes a loop, in words for feedback, as long as the loop continues."""
        self._actions.append(" ".join(action.split()))
        for period in self._periods:
            length = period * self._repeats
            recent = list(self._actions)[-length:]
            if len(recent) == length and recent[period:] == recent[:-period]:
                return self._why(recent[:period])
        return None

    def reset(self) -> None:
        """Forgets all actions: call it before the next try, or after telling the agent about the loop."""
        self._actions.clear()

    def _why(self, cycle: list[str]) -> str:
        quoted = [f"`{action[:SHOWN]}{'…' if len(action) > SHOWN else ''}`" for action in cycle]
        if len(quoted) == 1:
            return f"The same action was taken {self._repeats} times in a row: {quoted[0]}."
        times = f"{self._repeats} times over"
        return f"The same {len(quoted)} actions were taken in turn, {times}: {', then '.join(quoted)}."
