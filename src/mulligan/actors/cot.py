"""One chain of thought, then the answer: `Finish[answer]` (Wei et al. 2022; the reference's CoT actor, 1.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from mulligan.actors._turns import Turns
from mulligan.core.protocols import Model, Prompts
from mulligan.core.records import Attempt, Episode, Outcome, Past, Step
from mulligan.text.actions import parse_action
from mulligan.text.formatting import TOKENS


class Cot:
    """prompt: "question" where the model must know for itself, "context" where the task brings what to read.

    The attempt is the answer alone; where the action is no Finish[answer], it is empty and halted, whatever an earlier
    trial answered. past_tokens: what the attempt which a strategy shows may take. temperatures: one for each trial, the
    last for all that follow. max_tokens: of the thought with its action.
    examples: a file of worked examples to show instead of `cot.PROMPT.examples`; "" for none.
    """

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
