"""Gives no verdict: the attempt is handed out as it is, and the record says that nobody judged it."""

from __future__ import annotations

from typing import Literal

from mulligan.core.records import Episode, Feedback


class Unjudged:
    """The verdict is `passed=None`. An attempt that was halted, for example by a step limit, fails with the reason."""

    expects: Literal["text", "code", "workspace"] = "text"
    judges = False

    async def evaluate(self, episode: Episode) -> Feedback:
        outcome = episode.trials[-1].attempt.outcome
        if outcome and outcome.halted:
            return Feedback(False, f"The attempt was halted: {outcome.halted}.", source="unjudged")
        return Feedback(None, "There was no judge.", source="unjudged")
