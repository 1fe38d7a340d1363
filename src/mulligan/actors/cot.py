"""Asks for one chain of thought that ends in `Finish[answer]` (Wei et al. 2022; the CoT actor of Reflexion's code)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mulligan.actors._turns import Turns
from mulligan.core.protocols import Model, Prompts
from mulligan.core.records import Attempt, Episode, Outcome, Past, Step
from mulligan.text.actions import parse_action
from mulligan.text.formatting import TOKENS


class Cot:
    """Asks for a thought and the answer in one completion. The attempt is the answer alone.

    If the action is not `Finish[answer]`, the attempt is empty and halted.

    Args:
        prompt: "question" if the model must know the answer itself, "context" if the task brings a text to read.
        past_tokens: what an attempt shown by the strategy may take.
        temperatures: one for each trial, the last for all later ones.
        max_tokens: of the thought with its action.
        examples: a file of worked examples to show instead of `cot.PROMPT.examples`; "" shows none.
    """

    replayable = True

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        prompt: Literal["question", "context"] = "question",
        past_tokens: int = TOKENS,
        temperatures: Sequence[float] = (0.0,),
        max_tokens: int = 250,
        examples: str | None = None,
    ) -> None:
        self._turns = Turns(
            model,
            prompts,
            f"cot.{prompt}",
            examples,
            temperatures=temperatures,
            max_tokens=max_tokens,
            past=past_tokens,
        )

    async def act(self, episode: Episode, past: Past) -> Attempt:
        thought, action = await self._turns.ask(self._turns.shown(episode, past, "", ()), episode, past, 1)
        done = parse_action(action)
        if done and done.name == "finish":
            outcome = Outcome(done=True)
            return Attempt(done.argument, (Step(thought, action, outcome=outcome),), outcome)
        halted = "the action was not Finish[answer]"
        seen = f"{halted[0].upper()}{halted[1:]}, which gives the answer."
        return Attempt("", (Step(thought, action, seen),), Outcome(halted=halted))
