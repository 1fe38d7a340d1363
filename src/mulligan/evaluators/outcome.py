"""Judges by the outcome that the environment reports at the end of a trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Episode, Feedback


class FromOutcome:
    """Passes if the attempt's outcome is done with a reward of at least `reward`. The score is the reward.

    If the environment gives feedback itself (`Outcome.feedback`), that is the verdict. `passed` is None for an attempt
    without an outcome. Source: the success bit of ALFWorld and the reward of WebShop, which the agent itself sees.
    """

    expects: Literal["text", "code", "workspace"] = "text"
    replayable = True

    def __init__(self, *, reward: float = 1.0) -> None:
        if reward <= 0:
            raise InvalidInput(f"reward must be greater than 0, not {reward}: otherwise, every attempt would pass.")
        self._reward = reward

    async def evaluate(self, episode: Episode) -> Feedback:
        outcome = episode.trials[-1].attempt.outcome
        if outcome is None:
            return Feedback(
                None, "The attempt has no outcome: the actor did not act in an environment.", source="environment"
            )
        if outcome.feedback is not None:
            feedback = outcome.feedback
            return replace(feedback, score=outcome.reward if feedback.score is None else feedback.score)
        passed = outcome.done and (outcome.reward or 0.0) >= self._reward
        if passed:
            text = "The task was done."
        elif outcome.halted:
            text = f"The task was not done: {outcome.halted}."
        else:
            text = f"The task was not done; the reward was {outcome.reward or 0.0:g}."
        return Feedback(passed, text, outcome.reward, source="environment")
