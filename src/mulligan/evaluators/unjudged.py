"""Nobody judges: what a single step answers stands as it is, and the record says that there was no verdict."""

from __future__ import annotations

from typing import Literal

from mulligan.core.records import Episode, Feedback


class Unjudged:
    """`passed` is None, and False for an attempt that was halted, such as by a step limit, with the reason."""

    expects: Literal["text", "code", "workspace"] = "text"

    async def evaluate(self, episode: Episode) -> Feedback:
        outcome = episode.trials[-1].attempt.outcome
        if outcome and outcome.halted:
            return Feedback(False, f"The attempt was halted: {outcome.halted}.", source="unjudged")
        return Feedback(None, "Nobody was asked to judge.", source="unjudged")
