"""What the workers of a cluster share: the slots of providers, one actor for all, and local weights, one per machine.

Each is an actor of Ray that outlives the worker that made it. It ends itself when it has had nothing to do for ten
minutes; the next worker that needs it makes a new one.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar

from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.protocols import Model
from mulligan.core.questions import Answer, Question, Sampling
from mulligan.core.records import Json, Usage
from mulligan.models.catalog import open_model
from mulligan.models.failures import Unreadable
from mulligan.models.gate import not_json_row, read_result
from mulligan.models.requests import result_of

T = TypeVar("T")
NAMESPACE = "mulligan"
BEAT, SILENT = 5.0, 20.0
"""Seconds between two signs of life of a worker, and after which one that gives none is taken for dead."""
IDLE = 600.0
"""Seconds without anything to do after which an actor ends itself."""
WAITING = 10_000
"""The most calls of an actor at once; nearly all of them wait."""
TRIES = 3
"""How often an actor is made anew for one call."""


class Idle:
    """Ends its process when nobody has needed it for `IDLE` seconds."""

    def __init__(self) -> None:
        self._needed = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    def needed(self) -> None:
        """Called in each method, within the event loop of the actor."""
        self._needed = time.monotonic()
        self._watch = self._watch or asyncio.get_running_loop().create_task(self._watching())

    def look(self) -> bool:
        """Called every few seconds. Returns whether there is something to do, so that the process has to stay."""
        return False

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            if not self.look() and time.monotonic() - self._needed > IDLE:
                os._exit(0)


@dataclass
class _Ticket:
    """One call to a provider, of which this worker wants so many at most in flight, over all workers."""

    worker: str
    provider: str
    most: int
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class Slots(Idle):
    """The calls in flight to each provider. A worker without a sign of life for `SILENT` seconds loses its slots."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._heard: dict[str, float] = {}
        self._tickets: dict[str, _Ticket] = {}

    async def take(self, ticket: str, worker: str, provider: str, most: int) -> None:
        """Wait until fewer than `most` calls to the provider are in flight; those who came first go first."""
        self.needed()
        self._heard[worker] = self._clock()
        self._tickets[ticket] = taken = _Ticket(worker, provider, most)
        self._grant(provider)
        await taken.granted.wait()

    async def give(self, ticket: str) -> None:
        """The call has ended, or waits no longer."""
        self._drop(ticket)

    async def hear(self, worker: str) -> None:
        """The worker lives."""
        self.needed()
        self._heard[worker] = self._clock()

    def look(self) -> bool:
        """Free the slots of workers that are silent."""
        silent = {worker for worker, at in self._heard.items() if self._clock() - at > SILENT}
        for ticket in [ticket for ticket, of in self._tickets.items() if of.worker in silent]:
            self._drop(ticket)
        for worker in silent:
            del self._heard[worker]
        return bool(self._tickets)

    def _drop(self, ticket: str) -> None:
        if (given := self._tickets.pop(ticket, None)) is not None:
            given.granted.set()
            self._grant(given.provider)

    def _grant(self, provider: str) -> None:
        tickets = [ticket for ticket in self._tickets.values() if ticket.provider == provider]
        held = sum(ticket.granted.is_set() for ticket in tickets)
        for ticket in tickets:
            if held < ticket.most and not ticket.granted.is_set():
                ticket.granted.set()
                held += 1


class Weights(Idle):
    """The local models that one machine holds for all workers there.

    Args:
        variables: settings in the environment, of the worker that made it.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__()
        os.environ.update(variables)
        self._models: dict[str, Model] = {}
        self._asked = 0

    async def ask(self, name: str, question: Question, sampling: Sampling) -> dict[str, Json]:
        """The answer, or what went wrong, as `answer_in` reads it. name: of a local model."""
        self.needed()
        self._asked += 1
        try:
            if name not in self._models:
                self._models[name] = open_model(name)
            return result_of(await self._models[name].ask(question, sampling))
        except Unreadable as bad:
            return not_json_row(bad)
        except (ModelError, InvalidInput) as error:
            return {"failed": str(error), "input": isinstance(error, InvalidInput)}
        finally:
            self._asked -= 1

    def look(self) -> bool:
        return self._asked > 0


def answer_in(row: dict[str, Any]) -> Answer:
    """The answer in a row that `Weights.ask` gave. Raises what the model raised."""
    if "failed" in row:
        raise (InvalidInput if row["input"] else ModelError)(row["failed"])
    return read_result(row, Usage(**row["usage"]))


def _actor(made: Callable[..., Idle], name: str, arguments: Sequence[Any], node: str | None) -> Any:
    """The actor of this name, which is made where there is none. node: the id of the machine that it has to be on."""
    ray: Any = import_module("ray")
    options: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "get_if_exists": True, "lifetime": "detached"}
    if node is not None:
        options["scheduling_strategy"] = on_node(node)
    return ray.remote(made).options(**options, num_cpus=0, max_concurrency=WAITING).remote(*arguments)


def on_node(node: str) -> Any:
    """Ray's way to say that something has to run on the machine of this id."""
    strategies: Any = import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=False)


class _Shared:
    """An actor as one worker calls it: found or made at the first call, and again when it has ended."""

    def __init__(self, made: Callable[..., Idle], name: str, *arguments: Any, node: str | None = None) -> None:
        self._make: Callable[[], Any] = lambda: _actor(made, name, arguments, node)
        self._found: Any = None

    async def call(self, ask: Callable[[Any], Awaitable[T]]) -> T:
        """What the call gives. It is made again where the actor has ended before it could answer."""
        gone: Any = import_module("ray.exceptions").RayActorError
        for left in reversed(range(TRIES)):
            try:
                self._found = self._found or self._make()
                return await ask(self._found)
            except gone:
                self._found = None
                if not left:
                    raise
        raise AssertionError("TRIES must be at least 1")

    def tell(self, tell: Callable[[Any], object]) -> None:
        """Call it without waiting."""
        if self._found is not None:
            tell(self._found)


class ClusterSlots:
    """Gives the calls of this worker their slots (see `provider_client.slots_from`)."""

    def __init__(self) -> None:
        self._worker = secrets.token_hex(8)
        self._slots = _Shared(Slots, "mulligan-slots")
        self._beating: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def slot(self, provider: str, parallel: int) -> AsyncGenerator[None]:
        self._beating = self._beating or asyncio.get_running_loop().create_task(self._beat())
        ticket = secrets.token_hex(8)
        try:
            await self._slots.call(lambda slots: slots.take.remote(ticket, self._worker, provider, parallel))
            yield
        finally:
            self._slots.tell(lambda slots: slots.give.remote(ticket))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT)
            self._slots.tell(lambda slots: slots.hear.remote(self._worker))


class SharedModel:
    """A local model that this machine holds once, for all workers here."""

    calls_tools = False

    def __init__(self, model: Model, weights: _Shared) -> None:
        self.name, self.id, self.sees = model.name, model.id, getattr(model, "sees", True)
        self._weights = weights

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises as the model itself does."""
        row = await self._weights.call(lambda weights: weights.ask.remote(self.name, question, sampling))
        return answer_in(row)


class SharedModels:
    """Opens models for a worker. Questions to a local model go to the process that holds its weights on this machine;
    other models are opened in the worker.

    variables: see `Weights`.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        node: str = import_module("ray").get_runtime_context().get_node_id()
        self._weights = _Shared(Weights, f"mulligan-weights-{node}", dict(variables), node=node)

    def __call__(self, name: str, **how: Any) -> Model:
        model = open_model(name, **how)  # loads no weights yet
        return SharedModel(model, self._weights) if name.partition(":")[0] == "local" else model
