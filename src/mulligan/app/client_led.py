"""Episodes that a client drives, over minutes or days: the client thinks, we keep the order and the record.

    led = ClientLed(store)
    taken = await led.begin(ClientStep("act", 1, 3, prompt="Name a prime above 8."))
    taken = await led.take(taken.episode.id, ClientStep("evaluate", 1, 3, output="9"))
    taken = await led.take(taken.episode.id, ClientStep("reflect", 1, 3, output="9", score="3 divides it."))

They are recorded like any other, in the same store, and taken by the same state machine.
"""

from __future__ import annotations

import asyncio
import platform
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.metadata import version
from typing import Any
from weakref import WeakValueDictionary

from mulligan.app.client_led_course import Course, places
from mulligan.app.client_led_follow import begins_anew, follow
from mulligan.app.client_led_steps import MOST_TRIALS, ClientStep, Taken
from mulligan.app.leases import leased
from mulligan.core.errors import InvalidInput, NotFound, OutOfOrder
from mulligan.core.protocols import Lease, Store
from mulligan.core.records import Episode, Head, Plan, Task
from mulligan.store.leases import owner

__all__ = ["MOST_TRIALS", "NO_TASK", "ClientLed", "ClientStep", "Taken", "led_by_client"]

NO_TASK = "(the client named no task)"

LEASE_SECONDS = 10.0
"""A call takes milliseconds; the lease of a machine that died is gone after this."""

PATIENCE = 5.0
"""Seconds that a step waits for another process's step of the same episode."""

AT_HAND = 10_000_000
"""Characters, about, of episodes that are kept at hand between two steps, so that they need not be read again."""


def led_by_client(episode: Episode) -> bool:
    """Whether a client drives it, so that nobody else can go on with it."""
    return episode.head.settings.get("led_by") == "client"


class ClientLed:
    """Any number of episodes on one store, for one process. depth: reflections that are remembered, newest first."""

    def __init__(self, store: Store, depth: int = 3) -> None:
        self._store, self._depth = store, depth
        self._owner = owner()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._kept: OrderedDict[str, tuple[int, Course]] = OrderedDict()
        self._weight = 0

    async def begin(self, step: ClientStep, agent: str = "") -> Taken:
        """A new episode, and its first step: the actor's of trial 1. Raises `OutOfOrder` for another."""
        if (step.kind, step.trial) != ("act", 1):
            raise OutOfOrder("the actor step of trial 1", str(step))
        episode = await self._create(step, step.prompt, agent)
        return await self.take(episode.id, step, agent)

    async def take(self, episode: str, step: ClientStep, agent: str | None = None) -> Taken:
        """The step, in its order. One that was taken already is answered as it was then, and recorded once.

        agent: whose episode it has to be; None: anybody's. Raises `NotFound` (also for another agent's, and for one
        that no client leads), `OutOfOrder`, `InvalidInput` for a step that was taken in other words, `LeaseLost`.
        """
        async with self._course(episode, agent) as course:
            return await course.take(step)

    async def follow(self, episode: str | None, step: ClientStep, task: str, agent: str = "") -> Episode:
        """Takes down a step of a client that keeps to no order, into this episode or, where it is not its, a new one.

        task: what the client works on, as far as it said. `step.memory` is what it was shown. Refuses nothing.
        """
        task = _named(task)
        if episode is not None:
            with suppress(NotFound):  # removed meanwhile
                async with self._course(episode, agent) as course:
                    await course.mend()
                    if not begins_anew(course.episode, step, task):
                        await follow(course, step)
                        return course.episode
        begun = await self._create(step, task, agent)
        async with self._course(begun.id, agent) as course:
            await follow(course, step)
            return course.episode

    async def remembered(self, episode: str, step: ClientStep, task: str, agent: str = "") -> tuple[str, ...] | None:
        """What this episode remembers, where `follow` would take the step down in it; None: it would begin another."""
        with suppress(NotFound):
            async with self._course(episode, agent) as course:
                await course.mend()
                return None if begins_anew(course.episode, step, _named(task)) else course.memory
        return None

    async def _create(self, step: ClientStep, task: str, agent: str) -> Episode:
        run = secrets.token_hex(6)
        settings = {"led_by": "client", "trials": step.trials, "depth": self._depth}
        head = Head(_versions(), settings=settings)
        episode = Episode(f"{run}.1", Task(task), run, agent, Plan(), head, started=round(time.time(), 3))
        await self._store.create(episode)
        none_yet = Lease(episode.id, self._owner, 0)
        self._keep(none_yet, Course(self._store, none_yet, episode, {}, self._depth))
        return episode

    @asynccontextmanager
    async def _course(self, id: str, agent: str | None) -> AsyncGenerator[Course]:
        """The episode, to be gone on with by one at a time; what this process read of it last is good while no other
        has held its lease since.
        """
        async with self._locks.setdefault(id, asyncio.Lock()):
            fence, course = self._taken_out(id)
            if course is None or (agent is not None and agent != course.episode.agent):
                episode = await self._store.load(id, agent=agent)
                if not led_by_client(episode):
                    raise NotFound(f"There is no episode {id!r} in this store.")
            async with leased(self._store, id, owner=self._owner, seconds=LEASE_SECONDS, patience=PATIENCE) as lease:
                if course is None or lease.fence != fence + 1:
                    episode, rows = await self._store.load(id, agent=agent), await self._store.steps(id)
                    course = Course(self._store, lease, episode, places(rows), self._depth)
                course.held(lease)
                yield course
                self._keep(lease, course)

    def _keep(self, lease: Lease, course: Course) -> None:
        if course.episode.stop is None:
            self._kept[lease.episode] = (lease.fence, course)
            self._weight += course.weight
            while self._weight > AT_HAND:
                self._taken_out(next(iter(self._kept)))

    def _taken_out(self, id: str) -> tuple[int, Course | None]:
        fence, course = self._kept.pop(id, (-1, None))
        self._weight -= course.weight if course else 0
        return fence, course


def _named(task: str) -> str:
    return task if task.strip() else NO_TASK


def refuse_resume(run: str) -> None:
    """Raises `InvalidInput` that says how an episode of a client's is gone on with."""
    raise InvalidInput(
        f"Run {run} is led by a client over MCP, which does the thinking itself: only that client can go on with it, "
        f"by calling reflexion-thinking with its episodeId. See how far it came: mulligan runs show {run}"
    )


@cache
def _versions() -> dict[str, Any]:
    return {"mulligan": version("mulligan"), "python": platform.python_version(), "platform": platform.platform()}
