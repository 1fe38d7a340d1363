"""Shared by the actors `react` and `cot`: asks a model for one thought and one action at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Message, Question, Sampling
from mulligan.core.records import Episode, Past, Step
from mulligan.text.actions import Turn, first_line, parse_turn
from mulligan.text.formatting import past_text, task_text, trajectory_text

SLOTS = ("task", "recall", "past", "trajectory")
OBSERVATION = "\nObservation"
"""A completion is cut here, because the model must not write the observation itself."""


def checked_temperatures(temperatures: Sequence[float]) -> tuple[float, ...]:
    """The temperatures as a tuple: one for each trial, the last for all later ones.

    Raises `InvalidInput` if there is none, or one is not from 0 to 2.
    """
    if not temperatures or any(not 0 <= t <= 2 for t in temperatures):
        raise InvalidInput(f"temperatures must be one or more numbers from 0 to 2, not {list(temperatures)}.")
    return tuple(temperatures)


def temperature_of(temperatures: Sequence[float], past: Past, trial: int) -> float:
    """The sampling temperature of this trial: the strategy's, else the one from `temperatures`."""
    return temperatures[min(trial, len(temperatures)) - 1] if past.temperature is None else past.temperature


class Turns:
    """Asks a model for one thought and one action at a time.

    Args:
        prompt: the name of the prompt.
        examples: a file of worked examples, shown as turns before the case. None takes the file named after the
            prompt, if there is one; "" shows none.
        temperatures: one for each trial, the last for all later ones.
        max_tokens: of one completion.
        past: tokens that an attempt shown by the strategy may take.
    """

    def __init__(
        self,
        model: Model,
        prompts: Prompts,
        prompt: str,
        examples: str | None,
        *,
        temperatures: Sequence[float],
        max_tokens: int,
        past: int,
    ) -> None:
        self._model, self._past = model, past
        self._prompt = prompts.get(prompt).check(*SLOTS)
        if examples is None:
            with suppress(UnknownName):
                self._prompt = self._prompt.with_examples(prompts.get(f"{prompt}.examples"))
        elif examples:
            self._prompt = self._prompt.with_examples(prompts.get(examples))
        self._temperatures = checked_temperatures(temperatures)
        self._sampling = Sampling(max_tokens=max_tokens)

    def shown(self, episode: Episode, past: Past, beginning: str, done: Sequence[Step]) -> Callable[[str], Question]:
        """Returns a function that makes the question after these steps, given the label that the model continues."""
        lines = [part for part in (beginning.strip(), trajectory_text(done)) if part]

        def question(label: str) -> Question:
            *before, last = self._prompt.render(
                task=task_text(episode.task),
                recall=past.recall.formatted_prompt if past.recall else "",
                past=past_text(past, tokens=self._past),
                trajectory="\n".join([*lines, label]),
            )
            return Question((*before, Message(last.role, last.text, episode.task.images)))

        return question

    async def ask(self, question: Callable[[str], Question], episode: Episode, past: Past, number: int) -> Turn:
        """The thought and the action of a step, counted from 1. If the first completion has no action, asks for it."""
        trial = len(episode.trials) + 1
        temperature = temperature_of(self._temperatures, past, trial)
        sampling = replace(self._sampling, temperature=temperature, seed=episode.head.seed + trial)
        stops = (OBSERVATION, f"\nThought {number + 1}")
        turn = parse_turn(await self._text(question(f"Thought {number}:"), replace(sampling, stop=stops)))
        if turn.action:
            return turn
        label = f"Thought {number}: {turn.thought}\nAction {number}:"
        stops = (OBSERVATION, "\nThought")
        return Turn(turn.thought, first_line(await self._text(question(label), replace(sampling, stop=stops))))

    async def _text(self, question: Question, sampling: Sampling) -> str:
        return str((await self._model.ask(question, sampling)).content)
