"""Journals the environment of an episode: each trial gets a fresh one, and each of its effects is a journal step.

A resumed trial does not act again: observations are taken from the journal, and the environment itself is only created
for the first action that is not recorded. The recorded actions are then repeated in it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from mulligan.app.plugins import short_name
from mulligan.core.codec import from_json, to_json
from mulligan.core.errors import JournalDiverged
from mulligan.core.protocols import Converses, Environment, Journal, Model, Offers, Shows
from mulligan.core.questions import Question, Tool
from mulligan.core.records import Image, Json, Spec, Step
from mulligan.text.images import checked_images


@dataclass(frozen=True)
class EpisodeEnvironment:
    """A `World` that opens a journaled environment for each trial.

    Attributes:
        spec: names the environment and its settings.
        make: builds the environment; called when one is first needed.
        journal: records its effects.
        declares: whether it has a method `critical`.
        partner: answers its questions, if it `Converses`.
    """

    spec: Spec
    make: Callable[[], Environment]
    journal: Journal
    declares: bool = False
    partner: Model | None = None

    @property
    def name(self) -> str:
        return short_name(self.spec.name)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[JournaledEnvironment]:
        world = JournaledEnvironment(self)
        try:
            yield world
        finally:
            await world.close()


class JournaledEnvironment:
    """An environment whose resets and steps are journal steps. The request of a reset contains the spec, so that a
    resume notices a different game."""

    def __init__(self, source: EpisodeEnvironment) -> None:
        self._source = source
        self._inner: Environment | None = None
        self._seen: list[tuple[str | None, Sequence[Json], str]] = []
        """The actions so far (None for the reset), the partner's answers, and the observations."""
        self._made = 0
        """How many of these actions the live environment has performed."""
        self._shown: tuple[Image, ...] = ()

    async def reset(self) -> str:
        self._seen, self._made = [], 0

        async def do() -> Json:
            inner = self._live()
            step = checked_images(Step(observation=await inner.reset(), images=first_images(inner)))
            return to_json(step) if step.images else step.observation

        result = await self._journaled(
            "environment.reset", {"name": self._source.spec.name, **self._source.spec.settings}, do
        )
        beginning = Step(observation=result) if isinstance(result, str) else from_json(Step, result)
        self._shown = beginning.images
        self._seen.append((None, (), beginning.observation))
        return beginning.observation

    def shown(self) -> tuple[Image, ...]:
        return self._shown

    async def offer(self, actions: Sequence[str]) -> Sequence[Tool]:
        inner = self._live()
        return tuple(await inner.offer(actions)) if isinstance(inner, Offers) else ()

    async def step(self, action: str) -> Step:
        answers = await self._answers(action)

        async def do() -> Json:
            await self._catch_up()
            return to_json(checked_images(await self._performed(action, answers)))

        request: dict[str, Json] = {"action": action, **({"answers": list(answers)} if answers else {})}
        step = from_json(Step, await self._journaled("environment.step", request, do))
        self._seen.append((action, answers, step.observation))
        return step

    async def _answers(self, action: str) -> Sequence[Json]:
        """The partner's answers to the questions of the environment about this action."""
        answers: list[Json] = []
        while self._source.partner is not None:

            async def do() -> Json:
                await self._catch_up()
                question = await cast(Converses, self._live()).question(action, answers)
                return None if question is None else to_json(question)

            request: Json = {"action": action, "answers": list(answers)}
            question_json = await self._source.journal.step("environment.question", request, do)
            if question_json is None:
                break
            answers.append((await self._source.partner.ask(from_json(Question, question_json))).content)
        return answers

    async def _performed(self, action: str, answers: Sequence[Json]) -> Step:
        inner = self._live()
        if isinstance(inner, Converses):
            inner.hear(answers)
        return await inner.step(action)

    async def critical(self, action: str) -> bool:
        """Whether the environment declares this action critical in its current state."""
        if not self._source.declares:
            return False

        async def do() -> Json:
            await self._catch_up()
            return bool(cast(Any, self._live()).critical(action))

        return bool(await self._source.journal.step("environment.critical", {"action": action}, do))

    async def close(self) -> None:
        if self._inner is not None:
            inner, self._inner = self._inner, None
            await inner.close()

    async def _journaled(self, name: str, request: Json, do: Callable[[], Awaitable[Json]]) -> Json:
        ran = False

        async def once() -> Json:
            nonlocal ran
            ran = True
            return await do()

        result = await self._source.journal.step(name, request, once)
        if ran:
            self._made = len(self._seen) + 1
        return result

    def _live(self) -> Environment:
        if self._inner is None:
            self._inner = self._source.make()
        return self._inner

    async def _catch_up(self) -> None:
        """Repeats the recorded actions. Raises `JournalDiverged` if an observation differs."""
        for number, (action, answers, observed) in enumerate(self._seen[self._made :], self._made):
            step = None if action is None else await self._performed(action, answers)
            observation = step.observation if step else await self._live().reset()
            if observation != observed:
                raise JournalDiverged(
                    [f"what {self._source.spec.name} answers to action {number} ({action or 'reset'})"]
                )
        self._made = len(self._seen)


def first_images(environment: Environment) -> tuple[Image, ...]:
    """The images right after the reset; none for an environment without images."""
    return tuple(environment.shown()) if isinstance(environment, Shows) else ()
