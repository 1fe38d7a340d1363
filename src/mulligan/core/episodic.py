"""Episodic memory: the window of reflections that the next trial of the same task is shown."""

from __future__ import annotations

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Reflection


def newest(reflections: tuple[Reflection, ...], window: int | None) -> tuple[Reflection, ...]:
    """The newest `window` reflections, oldest first; None keeps all. Raises `InvalidInput` below 1."""
    if window is None:
        return reflections
    if window < 1:
        raise InvalidInput(f"The window of reflections must be at least 1, not {window}; use strategy none for none.")
    return reflections[-window:]
