"""What a bank is given: the store, a model and an embedder if there are any, the strategies and the settings."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from mulligan.bank.recall.embedding import Vectors
from mulligan.bank.settings import Settings
from mulligan.core.errors import InvalidInput, MulliganError, StoreError
from mulligan.core.lessons import Memory
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.queued import Claim, Queued
from mulligan.core.ranking import Deduplication, Merging, Retrieval
from mulligan.core.records import Json, Usage

T = TypeVar("T")
C = TypeVar("C", Claim, "Claim | None")

LEASE = 60.0
"""Seconds for which work is claimed; renewed while it is done."""

_returning: set[asyncio.Task[None]] = set()
"""Tasks that give claims back; nothing else refers to them."""


@dataclass(frozen=True)
class Ports:
    """The parts of a bank.

    agent_id: whose lessons; None reads those of all agents and writes those of the unnamed one. owner: the name under
    which this process claims work. strategy: the name of the retrieval strategy. project: the current project, "" if
    unknown.
    """

    memory: Memory
    agent_id: str | None
    vectors: Vectors
    retrieval: Retrieval
    deduplication: Deduplication
    merging: Merging
    model: Model | None
    prompts: Prompts
    settings: Settings
    owner: str
    strategy: str = ""
    project: str = ""

    @property
    def writes(self) -> str:
        """The agent that new lessons belong to."""
        return self.agent_id or ""

    async def begun(
        self,
        kind: str,
        payload: Json,
        *,
        key: str,
        claim: bool,
        waiting: bool = False,
        follows: Sequence[str] = (),
    ) -> tuple[Queued, Claim | None]:
        """Accepts work, and claims it at once where `claim`. If the caller is cancelled meanwhile, it is given back."""
        begin = self.memory.queue.begin
        return await self._unless_cancelled(
            begin(
                kind,
                self.writes,
                payload,
                key=key,
                owner=self.owner if claim else None,
                seconds=LEASE,
                waiting=waiting,
                follows=follows,
            )
        )

    async def taken(self, agent_id: str, work: str) -> tuple[Queued, Claim]:
        """Claims waiting work, to be done or given back. If the caller is cancelled meanwhile, it waits again."""
        return await self._unless_cancelled(self.memory.queue.take(agent_id, work, self.owner, LEASE))

    async def _unless_cancelled(self, claiming: Coroutine[Any, Any, tuple[Queued, C]]) -> tuple[Queued, C]:
        task = asyncio.ensure_future(claiming)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError as error:
            _returning.add(back := asyncio.create_task(self._return(task, error)))
            back.add_done_callback(_returning.discard)
            raise

    async def _return(self, task: asyncio.Future[tuple[Queued, C]], error: BaseException) -> None:
        with suppress(MulliganError):  # it was not claimed at all
            _, claim = await task
            if claim is not None:
                await self.given_back(claim, error)

    async def given_back(self, claim: Claim, error: BaseException) -> None:
        """Puts the work back to waiting, for another answer or another try."""
        with suppress(StoreError):  # the claim was lost or settled, or the store is what failed
            await self.memory.queue.waits(claim, str(error) or "it was stopped")

    async def held(self, claim: Claim, do: Callable[[], Awaitable[T]]) -> T:
        """Runs `do` while the claim is renewed. The write that settles the work notices a lost claim."""

        async def beat() -> None:
            while True:
                await asyncio.sleep(LEASE / 3)
                await self.memory.queue.renew(claim, LEASE)

        heart = asyncio.create_task(beat())
        try:
            return await do()
        finally:
            heart.cancel()
            await asyncio.gather(heart, return_exceptions=True)


class CountingModel:
    """A model, with the usage of its calls summed up. Raises `InvalidInput` when there is no model."""

    def __init__(self, model: Model | None) -> None:
        if model is None:
            raise InvalidInput("No model was named for the bank: set one in [memory], or think yourself and commit.")
        self.model = model
        self.usage = Usage()

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        answer = await self.model.ask(question, sampling)
        self.usage += answer.usage
        return answer
