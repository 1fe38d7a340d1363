"""The parts that a server's clients share: one store, a bank for each agent, and a model if one was named."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mulligan.app.config import Config, choose_model, load
from mulligan.app.quotas import Quota, Quotas
from mulligan.core.errors import InvalidInput, MulliganError

if TYPE_CHECKING:
    from mulligan.app.client_led import ClientLed
    from mulligan.app.memory import Bank
    from mulligan.app.model_roles import Models
    from mulligan.core.lesson_store import Memory
    from mulligan.core.protocols import Store

PENDING = ("extract", "merge")
"""Kinds of queued work for which a bank is opened. Other work is done when the bank is opened anyway."""

OPEN_BANKS = 64
"""How many banks stay open; the least recently used is closed first. After a recall, each has an index in memory."""

log = logging.getLogger("mulligan")


@dataclass(frozen=True)
class ServerOptions:
    """The options with which a server was started.

    Attributes:
        agent_id: the only agent that it serves. None: the agent that the client specifies.
        model: the model that judges, extracts and solves. None: the model from MULLIGAN_MODEL or mulligan.toml, if any.
        embedder: the embedder, which overrides the one in [memory].
        preset: "paper".
        depth: the number of reflections that a client's episode sees, at least 1.
        output_schemas: whether the list of tools includes the schemas of their results.
        quota: the maximum usage of each agent per day.
    """

    agent_id: str | None = None
    model: str | None = None
    embedder: str | None = None
    preset: str | None = None
    depth: int = 3
    output_schemas: bool = False
    quota: Quota = Quota()

    def __post_init__(self) -> None:
        if self.depth < 1:
            raise InvalidInput(f"The memory depth must be at least 1, not {self.depth}.")
        if self.agent_id is not None and not self.agent_id.strip():
            raise InvalidInput("The agent_id is empty: set it, or omit it.")


@dataclass
class Service:
    """The parts of a server. Each is opened on first use, so that the server starts quickly. Close it after use."""

    served: ServerOptions = ServerOptions()
    config: Config = field(default_factory=load)
    work: set[asyncio.Task[object]] = field(default_factory=set[asyncio.Task[object]])
    """Tasks that continue after their caller was answered, until `close` cancels them."""
    _store: Store | None = None
    _models: Models | None = None
    _client_led: ClientLed | None = None
    _quotas: Quotas | None = None
    _banks: OrderedDict[str | None, Bank] = field(default_factory=OrderedDict[str | None, "Bank"])
    _closing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def model(self) -> str | None:
        """The name of the model. None: the caller must answer the questions."""
        return choose_model(self.served.model, self.config)

    @property
    def thinks(self) -> bool:
        """Whether the banks have a model: the service's model or the one in [memory]."""
        return self.model is not None or bool(self.config.table("memory").get("model"))

    @property
    def store(self) -> Store:
        """The configured store."""
        if self._store is None:
            from mulligan.store import open_store

            self._store = open_store(self.config.store)
        return self._store

    @property
    def models(self) -> Models:
        """The configured models."""
        if self._models is None:
            from mulligan.app.model_roles import Models

            self._models = Models(self.config)
        return self._models

    @property
    def quotas(self) -> Quotas | None:
        """Counts agents' calls, and rejects those above the quota; None without a quota."""
        if self._quotas is None and self.served.quota:
            self._quotas = Quotas(self.served.quota, self.store.memory.queue)
        return self._quotas

    @property
    def client_led(self) -> ClientLed:
        """Returns the episodes that clients drive."""
        if self._client_led is None:
            from mulligan.app.client_led import ClientLed

            self._client_led = ClientLed(self.store, self.served.depth)
        return self._client_led

    def bank(self, agent_id: str | None) -> Bank:
        """Returns this agent's bank, always the same object. "": the unnamed agent. None: reads all agents' banks."""
        if agent_id in self._banks:
            self._banks.move_to_end(agent_id)
            return self._banks[agent_id]
        from mulligan.app.memory import open_bank

        bank = open_bank(
            agent_id,
            store=SharedMemory(self.store.memory),
            model=self.served.model,
            embedder=self.served.embedder,
            preset=self.served.preset,
            config=self.config,
            models=self.models,
        )
        if bank.notice and not self._banks:
            log.warning(bank.notice)
        self._banks[agent_id] = bank
        while len(self._banks) > OPEN_BANKS:
            _, old = self._banks.popitem(last=False)
            closing = asyncio.create_task(old.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        return bank

    async def finish_pending(self) -> None:
        """Start, in the background, learning jobs that another process did not finish, if this service has a model.

        This does not create a store, and opens a bank only if there is something to do. Errors are logged.
        """
        from mulligan.store import file_of

        try:
            file = file_of(self.config.store)
            if not self.thinks or (file and not file.is_file()):
                return
            if await self.store.memory.queue.due(PENDING) is not None:
                self.bank(self.served.agent_id).wake()
        except MulliganError as error:
            log.warning("the learning jobs of earlier processes could not be finished: %s", error)

    async def close(self, seconds: float = 5.0) -> None:
        """Closes all parts. Queued work continues for up to `seconds`; the rest is kept for the next process."""
        try:
            for task in self.work:
                task.cancel()
            if self.work:
                await asyncio.wait(self.work, timeout=seconds)
            await asyncio.gather(*self._closing, *(bank.close(seconds) for bank in self._banks.values()))
            if self._quotas is not None:
                await self._quotas.save()
        finally:
            if self._store is not None:
                await self._store.close()


class SharedMemory:
    """A memory that several banks share: closing one of them leaves it open."""

    def __init__(self, memory: Memory) -> None:
        self.lessons, self.queue = memory.lessons, memory.queue

    async def close(self) -> None:
        return None
