"""Gives no verdict: the attempt is returned as it is, and the record says that there was no judge."""

from __future__ import annotations

from typing import Literal

from mulligan.core.records import Episode, Feedback


class Unjudged:
    """Always returns `passed=None`, except that an attempt that was halted, as by a step limit, fails."""

    expects: Literal["text", "code", "workspace"] = "text"
    judges = False

    async def evaluate(self, episode: Episode) -> Feedback:
        outcome = episode.trials[-1].attempt.outcome
        if outcome and outcome.halted:
            return Feedback(False, f"The attempt was halted: {outcome.halted}.", source="unjudged")
        return Feedback(None, "There was no judge.", source="unjudged")
