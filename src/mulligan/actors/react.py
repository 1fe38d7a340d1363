"""Thinks, acts and observes in turn until the environment is done (ReAct, Yao et al. 2022).

Source: the ReAct actor of Reflexion's HotPotQA experiments, which asks twice for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mulligan.actors._turns import Turns
from mulligan.core.errors import InvalidInput
from mulligan.core.protocols import Model, Prompts, World
from mulligan.core.questions import Question
from mulligan.core.records import Attempt, Episode, Outcome, Past, Step
from mulligan.text.actions import parse_action
from mulligan.text.formatting import TOKENS
from mulligan.text.plain import count_of
from mulligan.text.truncate import estimate


class React:
    """Asks the model for a thought and a named action at each step.

    The prompt is `react.NAME`, with the environment's name. The attempt is the argument of the action that ended it,
    such as the answer of `Finish[answer]`; an attempt that was halted has no output.

    Args:
        steps: actions at most.
        prompt_tokens: what a whole prompt may take, roughly; checked before each step. None sets no limit.
        past_tokens: what an attempt shown by the strategy may take; its longest observations are shortened first.
        temperatures: one for each trial, the last for all later ones.
        max_tokens: of one thought with its action.
        examples: a file of worked examples to show instead of `react.NAME.examples`; "" shows none.
    """

    replayable = True

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        environment: World,
        steps: int = 6,
        prompt_tokens: int | None = 3896,
        past_tokens: int = TOKENS,
        temperatures: Sequence[float] = (0.0,),
        max_tokens: int = 200,
        examples: str | None = None,
    ) -> None:
        if steps < 1:
            raise InvalidInput(f"steps must be at least 1, not {steps}.")
        self._world, self._steps, self._most = environment, steps, prompt_tokens
        self._turns = Turns(
            model,
            prompts,
            f"react.{environment.name}",
            examples,
            temperatures=temperatures,
            max_tokens=max_tokens,
            past=past_tokens,
        )

    async def act(self, episode: Episode, past: Past) -> Attempt:
        async with self._world.open() as world:
            beginning = await world.reset()
            done = list[Step]()
            while True:
                question = self._turns.shown(episode, past, beginning, done)
                if halted := self._halted(question(f"Thought {len(done) + 1}:"), len(done)):
                    return Attempt("", tuple(done), Outcome(halted=halted))
                thought, action = await self._turns.ask(question, episode, past, len(done) + 1)
                step = await world.step(action)
                done.append(replace(step, thought=thought, action=step.action if step.check else action))
                if step.outcome and (step.outcome.done or step.outcome.halted):
                    return Attempt(_answer(done[-1].action) if step.outcome.done else "", tuple(done), step.outcome)

    def _halted(self, question: Question, done: int) -> str | None:
        """Why there is no further step, if there is none."""
        if done >= self._steps:
            return f"{count_of(self._steps, 'step')} used up without an answer"
        tokens = sum(estimate(message.text) for message in question.messages)
        if self._most is not None and tokens > self._most:
            return f"before step {done + 1} the prompt has about {tokens} tokens, but only {self._most} are allowed"
        return None


def _answer(action: str) -> str:
    """The argument of an action by name; of any other the action itself."""
    ended = parse_action(action)
    return ended.argument if ended else action
