"""Episodes that a client drives, over minutes or days: the client thinks, and we keep the order and the record.

    led = ClientLed(store)
    taken = await led.begin(ClientStep("act", 1, 3, prompt="Name a prime above 8."))
    taken = await led.take(taken.episode.id, ClientStep("evaluate", 1, 3, output="9"))
    taken = await led.take(taken.episode.id, ClientStep("reflect", 1, 3, output="9", score="3 divides it."))

They are recorded like any other episode, in the same store and by the same state machine.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from mulligan.app.client_led.course import Course
from mulligan.app.client_led.follow import begins_anew, follow
from mulligan.app.client_led.steps import MOST_TRIALS, ClientStep, StepResult
from mulligan.core.errors import NotFound, OutOfOrder
from mulligan.core.protocols import Store
from mulligan.core.records import Episode, Head, Plan, Task
from mulligan.recording.drivers import led_by_client
from mulligan.recording.holders import owner
from mulligan.recording.ledger import Ledger

__all__ = ["MOST_TRIALS", "NO_TASK", "ClientLed", "ClientStep", "StepResult", "led_by_client"]

NO_TASK = "(the client named no task)"

LEASE_SECONDS = 10.0
"""How long a lease lasts after its process died. A call takes milliseconds."""

WAIT = 5.0
"""Seconds that a step waits while another process makes a step of the same episode."""


class ClientLed:
    """Drives any number of episodes on one store. depth: how many of the newest reflections are remembered."""

    def __init__(self, store: Store, depth: int = 3) -> None:
        self._store, self._depth = store, depth
        self._ledger = Ledger(store, owner=owner(), keep_steps=True)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def begin(self, step: ClientStep, agent: str = "") -> StepResult:
        """Begins an episode with the actor step of trial 1. Raises `OutOfOrder` for another step."""
        if (step.kind, step.trial) != ("act", 1):
            raise OutOfOrder("the actor step of trial 1", str(step))
        episode = await self._create(step, step.prompt, agent)
        return await self.take(episode.id, step, agent)

    async def take(self, episode: str, step: ClientStep, agent: str | None = None) -> StepResult:
        """Takes the next step. A repeated step is answered as before, and recorded once.

        agent: the agent that the episode must belong to; None: any. Raises `NotFound` (also for an episode of another
        agent, or one that no client leads), `OutOfOrder`, `LeaseLost`, and `InvalidInput` for a repeated step with
        other values.
        """
        async with self._course(episode, agent) as course:
            return await course.take(step)

    async def follow(self, episode: str | None, step: ClientStep, task: str, agent: str = "") -> Episode:
        """Records a step of a client that keeps no order, in this episode or, if it does not belong there, in a new
        one.

        task: what the client works on, as far as it said. `step.memory`: what it was shown. No step is refused.
        """
        task = _task_or_default(task)
        if episode is not None:
            with suppress(NotFound):  # it was removed meanwhile
                async with self._course(episode, agent) as course:
                    await course.mend()
                    if not begins_anew(course.episode, step, task):
                        await follow(course, step)
                        return course.episode
        new = await self._create(step, task, agent)
        async with self._course(new.id, agent) as course:
            await follow(course, step)
            return course.episode

    async def remembered(self, episode: str, step: ClientStep, task: str, agent: str = "") -> tuple[str, ...] | None:
        """What this episode remembers, if `follow` would record the step in it; None if it would begin another."""
        with suppress(NotFound):
            async with self._course(episode, agent) as course:
                await course.mend()
                return None if begins_anew(course.episode, step, _task_or_default(task)) else course.memory
        return None

    async def _create(self, step: ClientStep, task: str, agent: str) -> Episode:
        run = secrets.token_hex(6)
        settings = {"led_by": "client", "trials": step.trials, "depth": self._depth}
        head = Head(Head.versions_of(), settings=settings)
        episode = Episode(f"{run}.1", Task(task), run, agent, Plan(), head, started=round(time.time(), 3))
        await self._ledger.begin(episode)
        return episode

    @asynccontextmanager
    async def _course(self, id: str, agent: str | None) -> AsyncGenerator[Course]:
        """The course of the episode, for one call of this process at a time."""
        episode = self._ledger.remembered(id) or await self._store.load(id, agent=agent)
        if not led_by_client(episode) or agent not in (None, episode.agent):
            raise NotFound(f"There is no episode {id!r} in this store.")
        async with (
            self._locks.setdefault(id, asyncio.Lock()),
            self._ledger.hold(id, seconds=LEASE_SECONDS, wait=WAIT) as entry,
        ):
            yield Course(entry, self._depth)


def _task_or_default(task: str) -> str:
    return task if task.strip() else NO_TASK
