"""The seam to environments: worlds that an actor acts in, action by action."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from mulligan.core.records import Step


@runtime_checkable
class Environment(Protocol):
    """A world to act in, one per trial. Resuming is `reset` and the recorded actions, observations compared.

    Making one refuses settings that cannot work, and starts nothing: it is also done only to check them.
    """

    async def reset(self) -> str:
        """Back to the beginning; the first observation."""
        ...

    async def step(self, action: str) -> Step:
        """Does one action. The step's `outcome` says when the world is done, and the reward (higher is better).

        An action that means nothing here is answered by an observation that says so: it never raises.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class World(Protocol):
    """The way to the environment of this episode. `name`: of the environment, such as "alfworld"."""

    @property
    def name(self) -> str: ...

    def open(self) -> AbstractAsyncContextManager[Environment]:
        """A fresh one, for one trial; every reset and step is journaled, and made up for on a resume."""
        ...
