"""The port to a queue of work that is done in the background, or waits for a caller's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.records import Json

QueueStatus: TypeAlias = Literal["queued", "running", "done", "failed", "waiting"]
"""Work that is "waiting" waits for a caller's answer, or for what its `remark` says."""

QUOTA = "quota"
"""The kind of the entry that holds how much of its quota an agent has used. It only waits: nobody claims it."""


@dataclass(frozen=True)
class Queued:
    """A piece of work.

    Attributes:
        payload: JSON; None once the work is done.
        attempts: how often it was claimed, including now.
        result: JSON.
        error: why the last attempt failed.
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

    @property
    def remark(self) -> str:
        """Why the last attempt failed; else what the work waits for, if that is not an answer (`why`)."""
        waiting: Mapping[str, Any] = self.payload if self.status == "waiting" else {}  # pyright: ignore[reportAssignmentType]
        return self.error or str(waiting.get("why", ""))


@dataclass(frozen=True)
class Claim:
    """The right to do a piece of work until the lease runs out. `fence` rises with each claim."""

    id: str
    owner: str
    fence: int


@runtime_checkable
class Queue(Protocol):
    """Stores work and gives it to one process at a time. Raises `StoreError`, `NotFound`, and `LeaseLost` for a lost
    claim.

    capacity: how many pieces of one agent's work may be pending; `enqueue` refuses more. Questions that wait for
        somebody's answer do not count: without a model each episode leaves one.
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
        """Stores the work, and returns its id.

        key: if this agent has work of this kind with the same key that has not failed, nothing is stored, and the id
        of that work is returned. follows: recalls of this agent (or over all agents) whose outcome this work will
        report; unknown ids are ignored. Raises `StoreError` when this agent's queue is full.
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
        """As `enqueue`, but returns the work, and a claim on it for an owner who does it at once. The claim is None
        without an owner, while another process holds the work, and once the work is done.
        """
        ...

    async def find(self, agent_id: str, kind: str, key: str) -> str | None:
        """The id of the work with this key, unless it has failed; None if there is none."""
        ...

    async def turn(self, agent_id: str, id: str, *, waiting: bool) -> None:
        """Makes the work wait for an answer, or queues it for a process with a model. Raises `LeaseLost` while it is
        claimed, and `StoreError` when it is done or has failed.
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
        """Claims waiting work for the caller who commits its answer. Raises `LeaseLost` while another caller holds it,
        and `StoreError` when it is not waiting.
        """
        ...

    async def renew(self, claim: Claim, seconds: float) -> None: ...

    async def keep(self, claim: Claim, payload: Json) -> None:
        """Replaces the payload of claimed work, for example with a model's answer."""
        ...

    async def finish(self, claim: Claim, result: Json) -> None: ...

    async def fail(self, claim: Claim, error: str, *, retry_in: float | None) -> None:
        """Records a failed attempt. retry_in: seconds until the work is due again (work that waited for an answer waits
        again at once); None: it has failed for good."""
        ...

    async def waits(self, claim: Claim, error: str = "") -> None:
        """Returns claimed work to waiting, for example after an invalid answer."""
        ...

    async def look(self, agent_id: str | None, id: str) -> Queued: ...

    async def pending(
        self, agent_id: str | None = None, limit: int = 50, *, kind: str | None = None
    ) -> Sequence[Queued]:
        """All work that is not done, oldest first. kind: None is any."""
        ...

    async def accepted_since(self, agent_id: str | None, at: float) -> Sequence[Queued]:
        """All work that was accepted since this time (seconds since the epoch), done or not, oldest first."""
        ...

    async def depth(self) -> Mapping[str, Mapping[QueueStatus, int]]:
        """How much work of all agents is not done, by kind and status."""
        ...
