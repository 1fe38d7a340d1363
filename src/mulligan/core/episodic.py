"""Episodic memory: the window of reflections that the next trial of the same task is shown."""

from __future__ import annotations

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Reflection


def newest(reflections: tuple[Reflection, ...], window: int | None) -> tuple[Reflection, ...]:
    """Of the newest `window` reflections those that are not withheld, oldest first; None looks at all.

    Raises `InvalidInput` below 1.
    """
    if window is not None and window < 1:
        raise InvalidInput(f"The window of reflections must be at least 1, not {window}; use strategy none for none.")
    of_window = reflections if window is None else reflections[-window:]
    return tuple(reflection for reflection in of_window if not reflection.withheld)
