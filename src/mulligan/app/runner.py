"""Runs and resumes episodes: holds the lease, stores every event, notifies the observers."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from mulligan.app.compose import OBJECT, Composition, Drive, Parts, asks_model, changed, compose
from mulligan.app.plugins import find
from mulligan.app.recipe import Recipe
from mulligan.app.workspaces import DELIVERED, Notice, deliverable, working_in
from mulligan.core.arms import settings_with
from mulligan.core.episode import Forked, advance, due
from mulligan.core.errors import InvalidInput, JournalDiverged, NotFound, RecordLost, StoreError
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, drive
from mulligan.core.operations import operation
from mulligan.core.optional import AdaptingStrategy, with_defaults
from mulligan.core.protocols import Observer, Store
from mulligan.core.records import Episode, Head, Json, Plan, Spec, Stop, Task
from mulligan.core.scaling import MAX_PARALLEL, Scale, worth
from mulligan.recording.journal import AnswerLookup, StepObserver, StoredJournal
from mulligan.recording.ledger import Ledger, inform
from mulligan.text.images import checked_images

log = logging.getLogger("mulligan")

OnStart: TypeAlias = Callable[[Episode, Limits], None]
"""Called with each episode and its limits when it starts or resumes, before any model is called."""


@dataclass(frozen=True)
class _Ready:
    """An episode with its roles, ready to be driven. is_new, fork: whether it was just begun, or just forked."""

    episode: Episode
    ledger: Ledger
    composition: Composition
    journal: StoredJournal
    meter: Meter
    fork: bool = False
    is_new: bool = False


@dataclass(frozen=True)
class Runner:
    """Drives episodes of one recipe on one store.

    agent: the agent that the record belongs to. known: see `StoredJournal`. wait: seconds to wait if another process
    drives the episode.
    """

    store: Store
    recipe: Recipe
    parts: Parts
    observers: Sequence[Observer] = ()
    on_start: OnStart | None = None
    on_step: StepObserver | None = None
    notice: Notice = log.info
    agent: str = ""
    known: AnswerLookup | None = None
    wait: float = 0.0

    async def run(self, task: Task, over: Sequence[Episode] = ()) -> Episode:
        """Runs up to k independent restarts (pass@k of Reflexion's code), until one solves the task.

        over: finished episodes of the run. Returns the best episode: a solved one, else the one whose best attempt
        scored highest, else the newest.
        """
        if not task.prompt.strip():
            raise InvalidInput("The task is empty: describe what to do.")
        try:
            task.prompt.encode()
        except UnicodeEncodeError as error:  # from bytes in another encoding on the command line
            raise InvalidInput(
                f"The task is not valid UTF-8 (character {error.start}), so no model can read it: replace this "
                "character."
            ) from None
        finished, run = list(over), over[-1].run if over else secrets.token_hex(4)
        if self.recipe.grouped:
            return (await self.group(run, run, task))[0]
        while len(finished) < self.recipe.restarts and not any(_final(e) for e in finished):
            number = len(finished) + 1
            seed = restart_seed(self.recipe.seed, number)
            finished.append(await self._drive(await self._begun(f"{run}.{number}", run, task, seed)))
        return max(finished, key=worth)

    async def group(self, prefix: str, run: str, task: Task) -> list[Episode]:
        """The trajectories of a scaled task, the best first, then in their order. The bank learns once all are over.

        At most `MAX_PARALLEL` run at a time, and they are independent. One that is over stays as it is, and one that
        was interrupted resumes at its first unfinished step.

        Args:
            prefix: of the ids of the trajectories, before their number.
            run: the id of the run that they belong to.
            task: that all try.
        """
        assert self.recipe.scale is not None
        scale = Scale.parse(self.recipe.scale)
        semaphore, over = asyncio.Semaphore(MAX_PARALLEL), dict[int, Episode]()

        async def run_one(number: int) -> None:
            async with semaphore:
                over[number] = await self._trajectory(f"{prefix}.{number}", run, task, number)

        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(1, scale.k + 1):
                    tasks.create_task(run_one(number))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        if len(over) < scale.k:  # a TaskGroup ignores a task that its own model or tool cancelled
            raise asyncio.CancelledError
        episodes = [over[number] for number in sorted(over)]
        from mulligan.app.scaling import best_of

        if self.recipe.learns and self.parts.bank is not None:
            from mulligan.app.teaching import teach_group

            await teach_group(self.parts.bank, episodes, self.notice, contrast=scale.kind == "parallel")
        best = await best_of(self.recipe, self.parts, self._ledger(), episodes, self.notice)
        return [best, *(episode for episode in episodes if episode.id != best.id)]

    async def _trajectory(self, id: str, run: str, task: Task, number: int) -> Episode:
        try:
            episode = await self.store.load(id)
        except NotFound:
            return await self.begin(id, run, task, restart_seed(self.recipe.seed, number))
        return episode if episode.over else await self.resume_episode(episode)

    async def begin(self, id: str, run: str, task: Task, seed: int) -> Episode:
        """Starts an episode of this task and drives it to its stop. `id` must be new."""
        return await self._drive(await self._begun(id, run, task, seed))

    async def _begun(self, id: str, run: str, task: Task, seed: int) -> _Ready:
        ready = await self._ready(Episode(id, task, run, self.agent, started=round(time.time(), 3)), seed)
        composition = ready.composition
        composition.check_images(task := checked_images(task))
        episode = replace(ready.episode, task=task, plan=self._plan(composition), head=composition.head)
        await ready.ledger.begin(episode, composition.texts)  # first, so that what is created for it can be found again
        return replace(ready, episode=episode, is_new=True)

    async def _ready(self, episode: Episode, seed: int, recorded: Head | None = None, fork: bool = False) -> _Ready:
        """The episode with its roles. They are composed before the episode is held, so that mistakes are refused
        first."""
        recipe = await self._with_seen(episode.task, recorded)
        journal = StoredJournal(fork=fork, observer=self.on_step, known=self.known)
        drive = Drive(journal, Meter(), seed, self.store)
        return _Ready(episode, self._ledger(), compose(recipe, self.parts, drive), journal, drive.meter, fork)

    async def _with_seen(self, task: Task, recorded: Head | None) -> Recipe:
        """The recipe. If its strategy learns, `seen` has the counts of its arms: the recorded ones, or the current
        ones."""
        recipe, spec = self.recipe, self.recipe.strategy
        if "strategy" in self.parts.objects or spec.name.startswith(OBJECT) or "seen" in spec.settings:
            return recipe
        if not with_defaults(find("strategies", spec.name), AdaptingStrategy).learns:
            return recipe
        recorded_strategy: Json = recorded.settings.get("strategy") if recorded else None
        if recorded_strategy and recorded_strategy["name"] == spec.name and "seen" in recorded_strategy["settings"]:
            settings = {**spec.settings, "seen": recorded_strategy["settings"]["seen"]}
        else:
            uses_model = recipe.model and asks_model("actor", recipe.actor, self.parts.objects)
            actor = self.parts.model(recipe.model).id if uses_model and recipe.model else f"actor {recipe.actor.name}"
            settings = settings_with(spec.settings, await self.store.arms(actor, task.kind), task.kind)
        return replace(recipe, strategy=Spec(spec.name, settings))

    def _ledger(self) -> Ledger:
        return Ledger(self.store, observers=self.observers)

    def _plan(self, composition: Composition) -> Plan:
        return Plan(self.recipe.recalls, composition.roles.reflector is not None, self.recipe.expansion)

    async def _forget(self, ledger: Ledger, episode: Episode) -> None:
        """Removes an episode in which nothing was done because its check cannot judge it."""
        async with ledger.hold(episode.id) as entry:
            if not entry.events and not entry.steps:
                if self.parts.workspace is not None:
                    await self.parts.workspace.discard(episode.id)
                await self.store.remove(entry.lease)

    async def resume(self, run: Sequence[Episode], *, fork: bool = False) -> Episode:
        """Resumes the unfinished episodes of the run (a fork: only the first), then runs the remaining restarts.

        If the run is over, delivers a result that was not delivered; a fork continues only its first episode.

        Raises `JournalDiverged` if what it depends on has changed (`fork` continues under a new id),
        `LeaseLost` while another process drives it, `InvalidInput` if nothing is left to do.
        """
        if self.recipe.grouped:
            if fork:  # a fork continues a single trajectory
                return await replace(self, recipe=replace(self.recipe, scale=None)).resume(run, fork=True)
            return (await self.group(run[0].run, run[0].run, run[0].task))[0]
        over = [e for e in run if e.over]
        paused = [e for e in run if e not in over]
        if fork and not paused:
            return await self.resume_episode(run[0], fork=True)
        restarts_left = self.recipe.restarts - len(run)
        if not paused and (restarts_left <= 0 or any(e.solved for e in over)):
            if self.parts.bank is not None:  # the process may have been killed before it reported the outcome
                from mulligan.app.teaching import tell_outcome

                for episode in over:
                    await tell_outcome(self.parts.bank, episode, self.notice)
            if await self._deliver_missed(over[-1]):
                return max(over, key=worth)
            from mulligan.app.story import run_state

            states = ", ".join(dict.fromkeys(run_state(episode, running=False).word for episode in run))
            raise InvalidInput(
                f"Run {run[0].run} has ended ({states}): there is nothing to resume. To continue from its first "
                "episode as a new run, use fork=True with a higher limit, such as tries=N."
            )
        for episode in paused[:1] if fork else paused:
            over.append(await self.resume_episode(episode, fork=fork))
            if _final(over[-1]):
                break
        return await self.run(run[0].task, over)

    async def resume_episode(self, episode: Episode, *, fork: bool = False) -> Episode:
        """Resumes an episode at its first unfinished step. A fork also continues a finished one, if the limits allow
        it.

        Raises as `resume` does.
        """
        ready = await self._ready(episode, episode.head.seed, episode.head, fork)
        composition, ledger = ready.composition, ready.ledger
        composition.check_images(episode.task)
        differs = changed(episode.head, composition.head)
        if differs and not fork:
            raise JournalDiverged(differs)
        if fork:
            plan = self._plan(composition)
            if isinstance(end := due(advance(episode, Forked(plan)), self.recipe.limits), Stop):
                raise InvalidInput(
                    f"A fork of episode {episode.id} would have nothing to do ({end.reason}: {end.detail}). If a "
                    "limit ended the episode, raise that limit, for example with tries=N."
                )
            ready = replace(ready, episode=await ledger.fork(episode, plan, composition.head, composition.texts))
        return await self._drive(ready)

    async def _drive(self, ready: _Ready) -> Episode:
        """Drives the episode to its stop, holding its lease."""
        episode, ledger, journal = ready.episode, ready.ledger, ready.journal
        facts: dict[str, Json] = {"episode": episode.id, "agent": episode.agent}
        with operation("episode", facts=facts, content={"task": episode.task.prompt}) as done:
            try:
                async with (
                    ledger.hold(episode.id, wait=self.wait) as entry,
                    working_in(self.parts.workspace, entry.episode, self.notice) as workspace,
                ):
                    if all(isinstance(event, Forked) for event in entry.events):
                        await workspace.preflight(ready.composition.judge, entry)
                    if self.on_start:
                        inform(self.on_start, entry.episode, self.recipe.limits)
                    if ready.fork:
                        entry.notify(entry.events[-1])
                    await entry.resume()
                    journal.enter(entry)
                    episode, ready.meter.before = entry.episode, entry.episode.usage
                    roles, limits = ready.composition.roles, self.recipe.limits
                    episode = await drive(episode, roles, limits, entry.append, ready.meter)
                    await workspace.deliver(episode, journal)
                if self.parts.bank is not None and not (self.recipe.learns and self.recipe.grouped):
                    from mulligan.app.teaching import teach

                    await teach(self.parts.bank, episode, self.notice, learns=self.recipe.learns)
            except BaseException as error:
                if isinstance(error, RecordLost):
                    error.episode = episode
                if ready.is_new and isinstance(error, Exception | asyncio.CancelledError):
                    with suppress(StoreError):
                        await self._forget(ledger, episode)
                raise
            done.facts |= {"stop": episode.stop.reason if episode.stop else None, "trials": len(episode.trials)}
            return episode

    async def _deliver_missed(self, episode: Episode) -> bool:
        """Delivers a result that a killed process did not deliver. Returns False if there is none."""
        steps = await self.store.steps(episode.id)
        if not deliverable(self.parts.workspace, episode) or any(s.key == DELIVERED and s.done for s in steps):
            return False
        async with (
            self._ledger().hold(episode.id) as entry,
            working_in(self.parts.workspace, episode, self.notice) as workspace,
        ):
            await workspace.deliver(episode, StoredJournal(entry, observer=self.on_step))
        return True


def restart_seed(seed: int, number: int) -> int:
    """The seed of restart `number`, from 1. No trials of two restarts have the same seed."""
    return seed + 1000 * (number - 1)


def _final(episode: Episode) -> bool:
    """Whether no restart should follow: it is solved, or stopped by an error that the next one would meet, too."""
    return episode.stop is not None and episode.stop.reason in ("solved", "error")
