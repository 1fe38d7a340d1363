"""Acts in an environment line by line: the model sees the actions and observations so far and writes the next action.

Source: the actor of Reflexion's ALFWorld and WebShop experiments.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mulligan.actors._turns import checked_temperatures
from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Environment, Model, Offers, Prompts, Shows, World
from mulligan.core.questions import Answer, Message, Question, Sampling, Tool
from mulligan.core.records import Attempt, Episode, Image, Outcome, Past, Step
from mulligan.models.steps import shown
from mulligan.models.tool_answers import tool_text
from mulligan.text.actions import refused
from mulligan.text.formatting import layers_text, observed_text, past_text, task_text
from mulligan.text.images import checked_count
from mulligan.text.plain import count, count_of

SLOTS = ("task", "recall", "past", "examples", "tools", "trajectory")
_FORM = 'Calls have the form name(first="text", second=2), with commas between several. The functions (?: optional):'
_KIND = re.compile(r"^===[ \t]*(.+?)[ \t]*$\n?", re.MULTILINE)


class Interact:
    """Asks the model for one line after another until the environment is done.

    Where actions are calls of tools, several calls in one line are one action.

    The prompt is `interact.NAME`, with the environment's name. The first step of an attempt has no action: it holds
    the first observation, so that reflectors see it too.

    Args:
        steps: actions at most, thoughts included.
        temperatures: tried in this order until a line has `shortest` characters and, with `anew`, is no action that was
            refused before.
        max_tokens: of one line.
        shortest: characters that a line needs.
        anew: ask again, warmer, where the line repeats an action that this trial has seen refused.
        characters: what the steps may take of the prompt; the oldest are left out beyond it. None keeps all.
        examples: a file of worked examples for the slot of that name; "" shows none.
        images: of those that the environment has shown, how many of the newest go with each question.
        calls: let the model call the tools that the environment offers, instead of describing them to it in the prompt.
        kind: the part of that file to show, of those that begin with a line `=== KIND`; "" shows the whole file.
    """

    replayable = True

    def __init__(
        self,
        *,
        model: Model,
        prompts: Prompts,
        environment: World,
        steps: int = 49,
        temperatures: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        max_tokens: int = 100,
        shortest: int = 2,
        anew: bool = True,
        characters: int | None = None,
        examples: str = "",
        images: int = 1,
        kind: str = "",
        calls: bool = False,
    ) -> None:
        if steps < 1 or (characters is not None and characters < 1):
            raise InvalidInput(f"steps and characters must be at least 1, not {steps} and {characters}.")
        self._model, self._world = model, environment
        self._prompt = prompts.get(f"interact.{environment.name}").check(*SLOTS)
        self._examples = part_of(prompts.text(examples), kind) if examples else ""
        self._steps, self._temperatures, self._shortest = steps, checked_temperatures(temperatures), shortest
        self._characters, self._images, self._anew = characters, checked_count(images), anew
        self._calls = calls
        self._sampling = Sampling(max_tokens=max_tokens, stop=() if calls else ("\n",))

    async def act(self, episode: Episode, past: Past) -> Attempt:
        async with self._world.open() as world:
            beginning = await world.reset()
            first = world.shown() if isinstance(world, Shows) else ()
            done = list[Step]()
            outcome = Outcome()
            while not outcome.done and not outcome.halted:
                seen = (*first, *(image for step in done for image in step.images))
                tools = await self._tools(world, done)
                action = await self._line(episode, past, (beginning, seen), done, tools)
                step = await world.step(action)
                done.append(step)
                outcome = step.outcome or Outcome()
                if not outcome.done and len(done) >= self._steps:
                    outcome = replace(outcome, halted=f"{count_of(self._steps, 'step')} used up")
            return Attempt(done[-1].action, (Step(observation=beginning, images=first), *done), outcome)

    async def _tools(self, world: Environment, done: Sequence[Step]) -> Sequence[Tool]:
        if isinstance(world, Offers) and (self._calls or "tools" in self._prompt.slots):
            return await world.offer([step.action for step in done if not step.refused])
        return ()

    async def _line(
        self,
        episode: Episode,
        past: Past,
        first: tuple[str, Sequence[Image]],
        done: Sequence[Step],
        tools: Sequence[Tool],
    ) -> str:
        """first: what was observed at the beginning, and all images seen so far."""
        beginning, seen = first
        *before, last = self._messages(episode, past, beginning, done, () if self._calls else tools)
        images = (*episode.task.images, *seen[max(0, len(seen) - self._images) :])
        question = Question((*before, replace(last, images=images)), tools=tuple(tools) if self._calls else ())
        line, failed = "", {" ".join(step.action.split()) for step in done if self._anew and refused(step.observation)}
        ladder = self._temperatures if past.temperature is None else (past.temperature,) * len(self._temperatures)
        for number, temperature in enumerate(ladder, len(episode.trials) + 1):
            sampling = replace(self._sampling, temperature=temperature, seed=episode.head.seed + number)
            text = _said(await self._model.ask(question, sampling))
            line = text.splitlines()[0] if text else ""
            if len(text) >= self._shortest and " ".join(line.split()) not in failed:
                break
        return line

    def _messages(
        self, episode: Episode, past: Past, beginning: str, done: Sequence[Step], tools: Sequence[Tool]
    ) -> tuple[Message, ...]:
        steps = self._newest([f"> {step.action}\n{observed_text(step)}" for step in done])
        lines = [beginning, *steps, ">"]
        return self._prompt.render(
            task=task_text(episode.task),
            recall=past.recall.formatted_prompt if past.recall else "",
            past=plans_text(past),
            examples=self._examples,
            tools="\n".join([_FORM, *map(tool_text, tools)]) if tools else "",
            trajectory="\n".join(lines),
        )

    def _newest(self, steps: list[str]) -> list[str]:
        """As many of the newest steps as there is room for, and at least one."""
        room = self._characters
        if room is None or sum(map(len, steps)) <= room:
            return steps
        kept = list[str]()
        for step in reversed(steps):
            room -= len(step)
            if kept and room < 0:
                break
            kept.append(step)
        left = len(steps) - len(kept)
        note = f"({count(left, 'earlier step')} {'is' if left == 1 else 'are'} left out here.)"
        return [note, *reversed(kept)]


def _said(answer: Answer) -> str:
    """The calls in an answer in one line; if there are none, its text."""
    if answer.calls:
        return ", ".join(map(shown, answer.calls))
    return str(answer.content or "").strip().removeprefix(">").strip()


def plans_text(past: Past) -> str:
    """The previous trial, if the strategy shows it, and the plans of earlier trials, oldest first.

    The plans are numbered from 1, whatever their trials were. Reflexion's code does the same, from 0.
    """
    texts = [layers_text(each.layers) or each.text for each in past.reflections]
    plans = [f"Trial {number}: {' '.join(text.split())}" for number, text in enumerate(texts, 1)]
    header = "Your plans from earlier trials at this task, oldest first:"
    parts = (past_text(replace(past, reflections=())), "\n".join([header, *plans]) if plans else "")
    return "\n\n".join(part for part in parts if part)


def part_of(text: str, kind: str) -> str:
    """The part of a file of worked examples for this kind; "" takes the whole file. Raises `UnknownName`."""
    pieces = _KIND.split(text)
    parts = dict(zip(pieces[1::2], (piece.strip() for piece in pieces[2::2]), strict=True))
    if kind and kind not in parts:
        raise UnknownName("kind of worked examples", kind, parts)
    return parts[kind] if kind else text.strip()
