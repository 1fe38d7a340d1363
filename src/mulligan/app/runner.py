"""Runs and resumes: opens the store, holds the lease, keeps every event, tells the observers."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from mulligan.app.compose import Composition, Drive, Parts, changed, compose
from mulligan.app.leases import LEASE_SECONDS, leased
from mulligan.app.places import DELIVERED, Notice, Place, deliverable, working_in
from mulligan.app.recipe import Recipe
from mulligan.app.teaching import teach
from mulligan.core.episode import RESUMABLE, Event, Forked, Resumed, advance, due
from mulligan.core.errors import InvalidInput, JournalDiverged, RecordLost, StoreError
from mulligan.core.journal import Known, StoredJournal, Told
from mulligan.core.limits import Limits
from mulligan.core.loop import Meter, drive
from mulligan.core.protocols import Evaluator, Lease, Observer, Store
from mulligan.core.records import Episode, Plan, Stop, Task
from mulligan.store.leases import owner

log = logging.getLogger("mulligan")

OnStart: TypeAlias = Callable[[Episode, Limits], None]
"""Is told of each episode and its limits as it is begun or gone on with, before anything is asked of a model."""


@dataclass(frozen=True)
class Runner:
    """Drives episodes of one recipe on one store.

    agent: the tenant whose record it is. known: see `StoredJournal`.
    """

    store: Store
    recipe: Recipe
    parts: Parts
    observers: Sequence[Observer] = ()
    on_start: OnStart | None = None
    on_step: Told | None = None
    notice: Notice = log.info
    agent: str = ""
    known: Known | None = None

    async def run(self, task: Task) -> Episode:
        """k restarts at most, memory reset between them (pass@k of the reference); stops at the first solved one.

        The best episode: a solved one, else the one whose best attempt scored highest, else the newest.
        """
        if not task.prompt.strip():
            raise InvalidInput("The task is empty: say what is to be done.")
        try:
            task.prompt.encode()
        except UnicodeEncodeError as error:  # bytes of another encoding on the command line
            raise InvalidInput(
                f"The task is no text in UTF-8 (character {error.start}): no model could read it."
            ) from None
        return await self._restarts(secrets.token_hex(4), task, [])

    async def _restarts(self, run: str, task: Task, done: list[Episode]) -> Episode:
        while len(done) < self.recipe.restarts and not any(_final(e) for e in done):
            number = len(done) + 1
            done.append(await self.begin(f"{run}.{number}", run, task, restart_seed(self.recipe.seed, number)))
        return max(done, key=_worth)

    async def begin(self, id: str, run: str, task: Task, seed: int) -> Episode:
        """A new episode of this task, from its first trial to its stop. `id` has to be new."""
        composition = compose(self.recipe, self.parts, Drive(seed=seed))
        plan, began = self._plan(composition), round(time.time(), 3)
        episode = Episode(id, task, run, self.agent, plan, composition.head, started=began)
        await self.store.create(episode, composition.texts)  # first, so that whatever is made for it can be found again
        try:
            return await self._drive(episode, composition.judge)
        except (Exception, asyncio.CancelledError):
            with suppress(StoreError):
                await self._forget(episode)
            raise

    def _plan(self, composition: Composition) -> Plan:
        return Plan(self.recipe.recalls, composition.roles.reflector is not None, self.recipe.expansion)

    async def _forget(self, episode: Episode) -> None:
        """An episode of which nothing was done, as its check cannot judge it, leaves nothing behind."""
        if await self.store.events(episode.id) or await self.store.steps(episode.id):
            return
        lease = await self.store.acquire(episode.id, owner(), LEASE_SECONDS)
        if self.parts.workspace is not None:
            await self.parts.workspace.discard(episode.id)
        await self.store.remove(lease)

    async def resume(self, run: Sequence[Episode], *, fork: bool = False) -> Episode:
        """Goes on with the episodes of the run that are not over (a fork: with the first), then with the restarts left.
        Of a run that is over, a result that was not handed over is; a fork goes on with its first episode, alone.

        Raises `JournalDiverged` when what it rests on has changed (`fork` goes on under a new id from there),
        `LeaseLost` while another process drives it, `InvalidInput` when there is nothing left to do.
        """
        over = [e for e in run if e.stop and e.stop.reason not in RESUMABLE]
        paused = [e for e in run if e not in over]
        if fork and not paused:
            return await self.go_on(run[0], fork=True)
        left = self.recipe.restarts - len(run)
        if not paused and (left <= 0 or any(e.solved for e in over)):
            if await self._delivered_late(over[-1]):
                return max(over, key=_worth)
            raise InvalidInput(
                f"Run {run[0].run} is over ({_ends(run)}): there is nothing to resume. To try on from its first "
                "episode, as a new run: --fork with a higher limit, such as --trials N."
            )
        for episode in paused[:1] if fork else paused:
            over.append(await self.go_on(episode, fork=fork))
            if _final(over[-1]):
                break
        return await self._restarts(over[-1].run, run[0].task, over)

    async def go_on(self, episode: Episode, *, fork: bool = False) -> Episode:
        """Resume an episode at its first step that is not done; a fork also resumes one that is over, where the limits
        allow more. Raises as `resume` does."""
        composition = compose(self.recipe, self.parts, Drive(seed=episode.head.seed))
        differs = changed(episode.head, composition.head)
        if differs and not fork:
            raise JournalDiverged(differs)
        event = Forked(self._plan(composition)) if fork else None
        if event:
            run = secrets.token_hex(4)
            if isinstance(end := due(advance(episode, event), self.recipe.limits), Stop):
                raise InvalidInput(
                    f"A fork of episode {episode.id} would have nothing to do ({end.reason}: {end.detail}). Where a "
                    "limit ended it, raise that one: --trials N, for example."
                )
            episode = await self.store.copy(episode.id, f"{run}.1", run, composition.head, composition.texts, event)
        return await self._drive(episode, composition.judge, event)

    async def _drive(self, episode: Episode, judge: Evaluator, fork: Forked | None = None) -> Episode:
        try:
            async with (
                leased(self.store, episode.id) as lease,
                working_in(self.parts.workspace, episode, self.notice) as place,
            ):
                episode = await self._driven(episode.id, lease, place, judge, fork)
            if self.recipe.learns and self.parts.bank is not None:
                await teach(self.parts.bank, episode, self.notice)
        except RecordLost as error:
            error.episode = episode
            raise
        return episode

    async def _driven(self, id: str, lease: Lease, place: Place, judge: Evaluator, fork: Forked | None) -> Episode:
        """fork: the event by which the episode has just become one."""
        episode = await self.store.load(id)  # as it is now that nobody else can change it
        events = await self.store.events(id)
        seq = len(events)
        if all(isinstance(event, Forked) for event in events):
            await place.tried_out(judge)

        def told(after: Episode, event: Event) -> None:
            for observer in self.observers:
                _tell(observer, after, event)

        async def keep(after: Episode, event: Event) -> None:
            nonlocal seq
            await self.store.append(lease, seq, event)
            seq += 1
            told(after, event)

        if self.on_start:
            _tell(self.on_start, episode, self.recipe.limits)
        if fork:
            told(episode, fork)
        if episode.stop and episode.stop.reason in RESUMABLE:
            event = Resumed()
            episode = advance(episode, event)
            await keep(episode, event)
        meter = Meter()
        fresh = not await self.store.steps(id)  # then it reads nothing any more, whatever becomes of the file
        journal = StoredJournal(
            self.store, lease, fork=fork is not None, told=self.on_step, fresh=fresh, known=self.known
        )
        parts = compose(self.recipe, self.parts, Drive(journal, meter, episode.usage, seed=episode.head.seed))
        episode = await drive(episode, parts.roles, self.recipe.limits, keep, meter)
        await place.delivered(episode, journal)
        return episode

    async def _delivered_late(self, episode: Episode) -> bool:
        """Hands over what a process that was killed between the episode's end and that has not. False: it was."""
        steps = await self.store.steps(episode.id)
        if not deliverable(self.parts.workspace, episode) or any(s.key == DELIVERED and s.done for s in steps):
            return False
        async with (
            leased(self.store, episode.id) as lease,
            working_in(self.parts.workspace, episode, self.notice) as place,
        ):
            await place.delivered(episode, StoredJournal(self.store, lease, told=self.on_step))
        return True


def restart_seed(seed: int, number: int) -> int:
    """Of the restart of this number, from 1: far enough apart that no trial of one has the seed of another's."""
    return seed + 1000 * (number - 1)


def _tell(who: Callable[..., None], *what: Any) -> None:
    try:
        who(*what)
    except Exception:
        log.exception("an observer failed; the episode goes on")


def _final(episode: Episode) -> bool:
    """Solved, or stopped by an error that the next restart would meet too."""
    return episode.stop is not None and episode.stop.reason in ("solved", "error")


def _worth(episode: Episode) -> tuple[bool, float]:
    best = episode.best
    score = best.feedback.score if best and best.feedback else None
    return (episode.solved, float("-inf") if score is None else score)


def _ends(run: Sequence[Episode]) -> str:
    return ", ".join(e.stop.reason for e in run if e.stop)
