"""What a bank is made of: the store, the mind and the embedder if there are any, and the strategies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from mulligan.bank.recall.vectors import Vectors
from mulligan.bank.settings import Settings
from mulligan.core.errors import InvalidInput, MulliganError, StoreError
from mulligan.core.lessons import Memory
from mulligan.core.protocols import Model, Prompts
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.queued import Claim, Queued
from mulligan.core.ranking import Deduplication, Merging, Retrieval
from mulligan.core.records import Usage

T = TypeVar("T")

LEASE = 60.0
"""Seconds for which work is claimed; renewed while it is done."""

_backs: set[asyncio.Task[None]] = set()
"""What is just being given back: nothing else holds on to it."""


@dataclass(frozen=True)
class Ports:
    """`agent_id` None: all agents are read, and the unnamed one is written. owner: who claims work, as a store's lease
    names it. strategy: what that of retrieval is called. project: the one that is worked on, "" where none is known."""

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
        """The agent whose lessons are written."""
        return self.agent_id or ""

    async def taken(self, agent_id: str, work: str) -> tuple[Queued, Claim]:
        """Waiting work, to be done or given back. Where the caller is cancelled meanwhile, it waits again."""
        taking = asyncio.ensure_future(self.memory.queue.take(agent_id, work, self.owner, LEASE))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError as error:
            _backs.add(back := asyncio.create_task(self._back(taking, error)))
            back.add_done_callback(_backs.discard)
            raise

    async def _back(self, taking: asyncio.Future[tuple[Queued, Claim]], error: BaseException) -> None:
        with suppress(MulliganError):  # it was not taken at all
            await self.given_back((await taking)[1], error)

    async def given_back(self, claim: Claim, error: BaseException) -> None:
        """The work waits again, for another answer or another try."""
        with suppress(StoreError):  # the claim was lost or settled, or the store is what failed
            await self.memory.queue.waits(claim, str(error) or "it was stopped")

    async def held(self, claim: Claim, do: Callable[[], Awaitable[T]]) -> T:
        """`do`, while the claim is renewed. A claim that was lost is noticed by the write that settles the work."""

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


class Counting:
    """A model whose usage is counted. Raises `InvalidInput` when there is none."""

    def __init__(self, model: Model | None) -> None:
        if model is None:
            raise InvalidInput("No model was named for the bank: set one in [memory], or think yourself and commit.")
        self.model = model
        self.usage = Usage()

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        answer = await self.model.ask(question, sampling)
        self.usage += answer.usage
        return answer
