"""Asks a foresight before the actions of an episode: those in its environment, and calls of tools.

The actor's ports are wrapped, so an actor need not know about it. Without a foresight, nothing is wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from mulligan.app.environments import EpisodeEnvironment, JournaledEnvironment
from mulligan.app.tasks import plugin_beside
from mulligan.core.errors import BadAnswer, InvalidInput
from mulligan.core.foresight import Ahead, Foresight
from mulligan.core.loop import Meter
from mulligan.core.optional import LimitedForesight, with_defaults
from mulligan.core.protocols import Actor, Environment, Journal, Toolbox, ToolResult, Tools
from mulligan.core.questions import Tool
from mulligan.core.records import Artifact, Attempt, Check, Episode, Json, Past, Spec, Step
from mulligan.evaluators.human import Terminal, printable
from mulligan.models.steps import call_of
from mulligan.text.formatting import refusal_text
from mulligan.text.plain import count

DEFAULT = "premortem"

_YES = frozenset({"y", "yes", "ok", "go on", "go"})

Person: TypeAlias = Callable[[str], Awaitable[str]]
"""Shows a text to a person and returns the answer. Raises `EOFError` if there is none."""


def foresight_of(setting: str | Mapping[str, Json], folder: Path | None = None) -> Spec:
    """The foresight of a setting: its name, or a table of its settings and (unless it is the default) its `name`.

    folder: to which the path of a plug-in file is relative. None: the working folder. Raises `InvalidInput`.
    """
    table: Mapping[str, Json] = {"name": setting} if isinstance(setting, str) else setting
    name = table.get("name", DEFAULT)
    if not isinstance(name, str):
        raise InvalidInput(f"The name of a foresight must be a string, not {name!r}.")
    spec = plugin_beside("foresights", folder or Path.cwd(), name)
    return spec.with_settings(**{key: value for key, value in table.items() if key != "name"})


def person_at_terminal() -> Person | None:
    """Asks at the terminal. None if standard input is not a terminal, so that a run in the background does not wait."""
    try:
        return Terminal.found("No person can be asked.").ask if sys.stdin is not None and sys.stdin.isatty() else None
    except (InvalidInput, ValueError):  # a closed descriptor
        return None


@dataclass
class Lookout:
    """Asks the foresight before the actions of one drive of an episode, at most as often as it allows.

    person: asks a person; None: nobody can be asked.
    """

    foresight: Foresight
    journal: Journal
    meter: Meter
    person: Person | None = None
    _episode: Episode = field(init=False)
    _past: Past = field(init=False)
    _made: list[Check] = field(default_factory=list[Check], init=False)

    def begin(self, episode: Episode, past: Past) -> None:
        """Begins a trial of this episode with what it is shown of the past."""
        self._episode, self._past, self._made = episode, past, []

    def made(self) -> Sequence[Check]:
        """The checks of this trial so far."""
        return self._made

    async def check(
        self, action: str, steps: Sequence[Step], *, declared: bool, tools: Sequence[Tool] = ()
    ) -> Check | None:
        """The foresight's check of this action. None: the action is not checked.

        A refused action stays refused in its trial. Raises what the foresight, the model and the journal raise.
        """
        ahead = Ahead(self._episode, self._past, action, tuple(steps), declared, tuple(tools))
        because = self.foresight.critical(ahead)
        if not because:
            return None
        refused = next((check for check in self._made if check.action == action and not check.performed), None)
        before, limit = self.meter.usage, with_defaults(self.foresight, LimitedForesight).checks
        if refused is not None:
            check = replace(refused, asked=False, notes=("The same action was refused before.",))
        elif self._count() >= limit:
            if because == "model":  # only the model would say whether it is critical
                return None
            check = Check(action, asked=False, notes=(f"The episode's limit of {count(limit, 'check')} is reached.",))
        else:
            check = self._valid(await self.foresight.check(ahead, because), ahead)
            if check.decision == "ask":
                check = await self._put_to_person(check)
        check = replace(check, action=action, because=because, usage=self.meter.usage - before)
        self._made.append(check)
        return check

    def _count(self) -> int:
        """How many checks of the episode were asked for so far."""
        recorded = (step.check for trial in self._episode.trials for step in trial.attempt.steps)
        return sum(check is not None and check.asked for check in (*recorded, *self._made))

    def _valid(self, check: object, ahead: Ahead) -> Check:
        """The check itself. Raises `InvalidInput` if it cannot be carried out."""
        name = type(self.foresight).__name__
        if not isinstance(check, Check):
            raise InvalidInput(f"{name}.check must return a Check, not {check!r}.")
        if check.decision != "change":
            return replace(check, change="")
        if not check.change.strip():
            raise InvalidInput(f"{name}.check replaced the action {ahead.action!r} with an empty one.")
        if ahead.tools:
            try:
                call_of(check.change)
            except BadAnswer as error:
                raise InvalidInput(f"{name}.check replaced a call with {check.change!r}. {error}") from error
        return check

    async def _put_to_person(self, check: Check) -> Check:
        async def ask() -> Json:
            if self.person is None or not with_defaults(self.foresight, LimitedForesight).attended:
                return None
            try:
                return (await self.person(_question_text(check))).strip() or "no"
            except EOFError:
                return None

        answer = await self.journal.step("person", {"action": check.action, "question": check.question}, ask)
        if answer is None:
            return replace(check, performed=False, answer="")
        return replace(check, performed=answer.lower().rstrip(".!") in _YES, answer=answer)


def _question_text(check: Check) -> str:
    risk = f"What could go wrong: {check.risk}\n" if check.risk else ""
    return printable(
        f"\nThe agent is about to do this:\n\n    {check.action}\n\n{risk}{check.question}\n"
        "yes, no, or what to do instead: "
    )


@dataclass(frozen=True)
class CheckedActor:
    """An actor whose attempts contain every check that was made during them."""

    actor: Actor
    lookout: Lookout

    async def act(self, episode: Episode, past: Past) -> Attempt:
        self.lookout.begin(episode, past)
        attempt = await self.actor.act(episode, past)
        recorded = [step.check for step in attempt.steps if step.check]
        # A user's actor may have built its steps without the checks.
        missing = [check for check in self.lookout.made() if check not in recorded]
        steps = [Step(action=check.change or check.action, check=check) for check in missing]
        return replace(attempt, steps=(*attempt.steps, *steps))


@dataclass(frozen=True)
class CheckedTools:
    """`Tools` whose calls are checked."""

    tools: Tools
    lookout: Lookout

    @asynccontextmanager
    async def open(self, episode: Episode) -> AsyncGenerator[Toolbox]:
        async with self.tools.open(episode) as toolbox:
            yield _CheckedToolbox(toolbox, self.lookout)


class _CheckedToolbox:
    def __init__(self, toolbox: Toolbox, lookout: Lookout) -> None:
        self._inner, self._lookout = toolbox, lookout

    async def offer(self, source: str) -> Sequence[Tool]:
        return await self._inner.offer(source)

    async def call(self, source: str, tool: str, arguments: Mapping[str, Json]) -> ToolResult:
        return await self._inner.call(source, tool, arguments)

    def saw(self, result: ToolResult) -> None:
        self._inner.saw(result)

    async def check(self, action: str, tool: Tool, tools: Sequence[Tool], steps: Sequence[Step]) -> Check | None:
        return await self._lookout.check(action, steps, declared=tool.critical, tools=tools)

    async def artifacts(self, trial: int) -> tuple[Artifact, ...]:
        return await self._inner.artifacts(trial)


@dataclass(frozen=True)
class CheckedWorld:
    """A `World` whose actions are checked."""

    world: EpisodeEnvironment
    lookout: Lookout

    @property
    def name(self) -> str:
        return self.world.name

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Environment]:
        async with self.world.open() as environment:
            yield _CheckedEnvironment(environment, self.lookout)


class _CheckedEnvironment:
    def __init__(self, environment: JournaledEnvironment, lookout: Lookout) -> None:
        self._inner, self._lookout = environment, lookout
        self._steps = list[Step]()

    async def reset(self) -> str:
        text = await self._inner.reset()
        self._steps = [Step(observation=text)]
        return text

    async def offer(self, actions: Sequence[str]) -> Sequence[Tool]:
        return await self._inner.offer(actions)

    async def step(self, action: str) -> Step:
        declared = await self._inner.critical(action)
        check = await self._lookout.check(action, self._steps, declared=declared)
        if check is not None and not check.performed:
            step = Step(action=action, observation=refusal_text(check), check=check)
        else:
            step = replace(await self._inner.step((check and check.change) or action), check=check)
        self._steps.append(step)
        return step

    async def close(self) -> None:
        await self._inner.close()
