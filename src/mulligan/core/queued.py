"""Background work as rows of a store: accepted once, done once, by any process on the file, across exits and kills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.records import Json

QueueStatus: TypeAlias = Literal["queued", "running", "done", "failed", "waiting"]
"""waiting: for an answer that a caller thinks of and commits."""


@dataclass(frozen=True)
class Queued:
    """One piece of work. `payload` and `result` are JSON; `error` says why the last attempt failed.

    attempts: how often it was claimed, this time included. payload: None once it is done.
    """

    id: str
    kind: str
    agent_id: str
    payload: Json
    status: QueueStatus = "queued"
    attempts: int = 0
    created: float = 0.0
    finished: float | None = None
    result: Json = None
    error: str = ""


@dataclass(frozen=True)
class Claim:
    """The right to do a piece of work until the lease runs out. `fence` rises with each claim."""

    id: str
    owner: str
    fence: int


@runtime_checkable
class Queue(Protocol):
    """Raises `StoreError`, `NotFound`, `LeaseLost` for a claim that was lost.

    capacity: how many pieces of one agent's work may be pending; `enqueue` refuses more.
    """

    capacity: int

    async def enqueue(
        self,
        kind: str,
        agent_id: str,
        payload: Json,
        *,
        key: str | None = None,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> str:
        """The id of the work, stored when this returns. key: work of this agent and kind with the same key that is
        not failed is not queued again; its id comes back. follows: recalls of this agent (or over all) whose outcome
        this work will tell; one that is not there is passed over. Raises `StoreError` when this agent's queue is full.
        """
        ...

    async def begin(
        self,
        kind: str,
        agent_id: str,
        payload: Json,
        *,
        key: str,
        owner: str | None,
        seconds: float,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> tuple[Queued, Claim | None]:
        """As `enqueue`, with the work as it is now, claimed in the same step for an owner who does it at once. The
        claim is None without an owner, while another holds the work, and when it is done.
        """
        ...

    async def find(self, agent_id: str, kind: str, key: str) -> str | None:
        """The id of the work that was queued with this key, and has not failed."""
        ...

    async def turn(self, agent_id: str, id: str, *, waiting: bool) -> None:
        """Makes it wait for an answer, or else queues it for a process with a model. Raises `LeaseLost` while it is
        claimed, `StoreError` when it is done or has failed.
        """
        ...

    async def due(self, kinds: Sequence[str]) -> float | None:
        """The latest time, in seconds since the epoch, at which work of these kinds can be claimed: claimed work may be
        free before its lease runs out. None: there is no work, except what waits for an answer.
        """
        ...

    async def claim(self, owner: str, seconds: float, kinds: Sequence[str]) -> tuple[Queued, Claim] | None:
        """The oldest work that is due: queued, or running under a lease that ran out. None when there is none.

        Work that waits for an answer is never returned here, even when the process that took it is gone.
        """
        ...

    async def take(self, agent_id: str, id: str, owner: str, seconds: float) -> tuple[Queued, Claim]:
        """A claim on waiting work, for the caller who commits its answer. Raises `LeaseLost` while another has it,
        `StoreError` when it is not waiting (any more).
        """
        ...

    async def renew(self, claim: Claim, seconds: float) -> None: ...

    async def finish(self, claim: Claim, result: Json) -> None: ...

    async def fail(self, claim: Claim, error: str, *, retry_in: float | None) -> None:
        """retry_in: seconds until it is due again (what waited, waits again at once); None: it has failed for good."""
        ...

    async def waits(self, claim: Claim, error: str = "") -> None:
        """Returns claimed work to waiting, such as after an invalid answer."""
        ...

    async def look(self, agent_id: str | None, id: str) -> Queued: ...

    async def pending(
        self, agent_id: str | None = None, limit: int = 50, *, kind: str | None = None
    ) -> Sequence[Queued]:
        """All that is not done, oldest first. kind: None is any."""
        ...
