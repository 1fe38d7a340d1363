"""Fails every attempt with the same feedback and runs nothing: the agent reflects without execution.

Source: the ablation "immediate-reflexion" of Reflexion's code.
"""

from __future__ import annotations

from typing import Literal

from mulligan.core.records import Episode, Feedback

TEXT = "No tests were run, so it is not known whether the program is right. Look for mistakes by reading it."


class Untested:
    """Never passes, so that all trials are made. There is no score, as nothing is measured. text: the feedback."""

    expects: Literal["text", "code", "workspace"] = "code"

    def __init__(self, *, text: str = TEXT) -> None:
        self._text = text

    async def evaluate(self, episode: Episode) -> Feedback:
        return Feedback(False, self._text, source="untested")
