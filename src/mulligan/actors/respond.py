"""Answers each observation of an environment with a new question that does not contain the earlier ones.

For environments whose observations hold everything that an answer needs, such as Mind2Web's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from mulligan.actors._turns import checked_temperatures, temperature_of
from mulligan.core.errors import InvalidInput
from mulligan.core.prompts import Prompt
from mulligan.core.protocols import Model, Prompts, World
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Attempt, Episode, Outcome, Past, Step
from mulligan.text.formatting import past_text
from mulligan.text.plain import count_of

SLOTS = ("recall", "past", "observation")


class Respond:
    """Asks the model one question for each observation, until the environment is done.

    Args:
        steps: answers at most.
        temperatures: one for each trial, the last for all later ones.
        max_tokens: of one answer.
        template: a file in place of the prompt `respond.NAME`, with the environment's name: a prompt file, or a JSON
            list of messages (`role`, `content`), the last of which the observation replaces.
    """

    replayable = True

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        environment: World,
        steps: int = 50,
        temperatures: Sequence[float] = (0.0,),
        max_tokens: int = 100,
        template: str | None = None,
    ) -> None:
        if steps < 1:
            raise InvalidInput(f"steps must be at least 1, not {steps}.")
        self._model, self._world, self._steps = model, environment, steps
        self._temperatures, self._max_tokens = checked_temperatures(temperatures), max_tokens
        name = template or f"respond.{environment.name}"
        parse = _from_messages if name.endswith(".json") else Prompt.parse
        self._prompt = parse(name, prompts.text(name)).check(*SLOTS)
        if "observation" not in self._prompt.slots:
            raise InvalidInput(f"Prompt {name} must contain {{{{observation}}}}, the observation to answer.")

    async def act(self, episode: Episode, past: Past) -> Attempt:
        sampling = self._sampling(episode, past)
        async with self._world.open() as world:
            observed = await world.reset()
            done = [Step(observation=observed)]
            outcome = Outcome()
            while not outcome.done and not outcome.halted:
                answer = await self._model.ask(Question(self._messages(past, observed)), sampling)
                step = await world.step(str(answer.content).strip())
                done.append(step)
                observed, outcome = step.observation, step.outcome or Outcome()
                if not outcome.done and len(done) > self._steps:
                    outcome = replace(outcome, halted=f"{count_of(self._steps, 'answer')} used up")
            return Attempt(done[-1].action, tuple(done), outcome)

    def _sampling(self, episode: Episode, past: Past) -> Sampling:
        trial = len(episode.trials) + 1
        temperature = temperature_of(self._temperatures, past, trial)
        return Sampling(temperature, self._max_tokens, episode.head.seed + trial)

    def _messages(self, past: Past, observed: str) -> tuple[Message, ...]:
        recall = past.recall.formatted_prompt if past.recall else ""
        return self._prompt.render(recall=recall, past=past_text(past), observation=observed)


def _from_messages(name: str, text: str) -> Prompt:
    """The prompt in a JSON list of messages, with the recall and the past before the observation.

    Raises `InvalidInput`.
    """
    try:
        given: Any = json.loads(text)
        messages = [(str(one["role"]), str(one["content"])) for one in cast(list[Any], given)]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"{name} must be a JSON list of messages, each with role and content: {error}.") from error
    if not messages or messages[-1][0] != "user":
        raise InvalidInput(f"{name} must end with a user message, which the observation replaces.")
    if unknown := [role for role, _ in messages if role not in ("system", "user", "assistant")]:
        raise InvalidInput(f"{name}: the role of a message must be system, user or assistant, not {unknown[0]!r}.")
    asked = Prompt.parse(name, "[[user]]\n{{recall}}\n\n{{past}}\n\n{{observation}}")
    return asked.with_examples(replace(asked, parts=tuple(messages[:-1])))
