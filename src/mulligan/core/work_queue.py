"""The port to a queue of work that is done in the background, or waits for a caller's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from mulligan.core.records import Json

QueueStatus: TypeAlias = Literal["queued", "running", "done", "failed", "waiting"]
"""waiting: for an answer that a caller thinks of and commits."""


QUOTA = "quota"
"""The kind of work that holds what an agent has used of its quota. It waits, and nobody does it."""


@dataclass(frozen=True)
class Queued:
    """One piece of work.

    Attributes:
        payload: JSON; None once the work is done.
        attempts: how often it was claimed, this time included.
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
        """Why the last attempt failed, or what it waits for where that is no answer (`why` in its payload)."""
        table: Mapping[str, Any] = self.payload if self.status == "waiting" else {}  # pyright: ignore[reportAssignmentType]
        return self.error or str(table.get("why", ""))


@dataclass(frozen=True)
class Claim:
    """The right to do a piece of work until the lease runs out. `fence` rises with each claim."""

    id: str
    owner: str
    fence: int


@runtime_checkable
class Queue(Protocol):
    """Raises `StoreError`, `NotFound`, `LeaseLost` for a claim that was lost.

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
        `StoreError` when it is not, or no longer, waiting.
        """
        ...

    async def renew(self, claim: Claim, seconds: float) -> None: ...

    async def keep(self, claim: Claim, payload: Json) -> None:
        """Puts this in place of the payload of claimed work, such as with a model's answer in it."""
        ...

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

    async def accepted_since(self, agent_id: str | None, at: float) -> Sequence[Queued]:
        """All that was accepted since then (seconds since the epoch), done or not, oldest first."""
        ...

    async def depth(self) -> Mapping[str, Mapping[QueueStatus, int]]:
        """How much work of all agents is not done: by kind and status."""
        ...
