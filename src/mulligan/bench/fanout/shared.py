"""What the workers of a cluster share: slots for calls to providers, and on each machine the weights of local models.

Each is an actor of Ray that outlives the worker that created it. It ends when it has been idle for ten minutes, and the
next worker that needs it creates a new one.
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
HEARTBEAT_SECONDS, DEAD_SECONDS = 5.0, 20.0
"""The time between two heartbeats of a worker, and after which a worker without one counts as dead."""
IDLE_SECONDS = 600.0
"""An actor that has been idle for this long ends."""
MAX_CALLS = 10_000
"""The maximum number of concurrent calls of an actor. Nearly all of them wait."""
CALL_TRIES = 3


class Idle:
    """An actor that ends its process when it has been idle for `IDLE_SECONDS`."""

    def __init__(self) -> None:
        self._last_use = time.monotonic()
        self._watch: asyncio.Task[None] | None = None

    def note_use(self) -> None:
        """Each method calls this, within the event loop of the actor."""
        self._last_use = time.monotonic()
        self._watch = self._watch or asyncio.get_running_loop().create_task(self._watching())

    def look(self) -> bool:
        """Called at each heartbeat. Returns whether the actor is busy."""
        return False

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            if not self.look() and time.monotonic() - self._last_use > IDLE_SECONDS:
                os._exit(0)


@dataclass
class _Ticket:
    """A call to a provider. most: the maximum number of calls in flight to it, over all workers."""

    worker: str
    provider: str
    most: int
    granted: asyncio.Event = field(default_factory=asyncio.Event)


class Slots(Idle):
    """The calls in flight to each provider. A worker without a heartbeat for `DEAD_SECONDS` loses its slots."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._heard: dict[str, float] = {}
        self._tickets: dict[str, _Ticket] = {}

    async def take(self, ticket: str, worker: str, provider: str, most: int) -> None:
        """Wait until fewer than `most` calls to the provider are in flight, in the order of the calls."""
        self.note_use()
        self._heard[worker] = self._clock()
        self._tickets[ticket] = new = _Ticket(worker, provider, most)
        self._grant(provider)
        await new.granted.wait()

    async def give(self, ticket: str) -> None:
        """Release the slot of a call that has ended or no longer waits."""
        self._drop(ticket)

    async def hear(self, worker: str) -> None:
        """Note a heartbeat."""
        self.note_use()
        self._heard[worker] = self._clock()

    def look(self) -> bool:
        """Release the slots of dead workers."""
        dead = {worker for worker, heard in self._heard.items() if self._clock() - heard > DEAD_SECONDS}
        for id in [id for id, ticket in self._tickets.items() if ticket.worker in dead]:
            self._drop(id)
        for worker in dead:
            del self._heard[worker]
        return bool(self._tickets)

    def _drop(self, ticket: str) -> None:
        if (released := self._tickets.pop(ticket, None)) is not None:
            released.granted.set()
            self._grant(released.provider)

    def _grant(self, provider: str) -> None:
        tickets = [ticket for ticket in self._tickets.values() if ticket.provider == provider]
        held = sum(ticket.granted.is_set() for ticket in tickets)
        for ticket in tickets:
            if held < ticket.most and not ticket.granted.is_set():
                ticket.granted.set()
                held += 1


class Weights(Idle):
    """The local models that one machine loads for all workers on it.

    Args:
        variables: environment variables with the settings of the worker that created it.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__()
        os.environ.update(variables)
        self._models: dict[str, Model] = {}
        self._running_calls = 0

    async def ask(self, name: str, question: Question, sampling: Sampling) -> dict[str, Json]:
        """The answer of a local model or its error, in the form that `answer_in` reads."""
        self.note_use()
        self._running_calls += 1
        try:
            if name not in self._models:
                self._models[name] = open_model(name)
            return result_of(await self._models[name].ask(question, sampling))
        except Unreadable as error:
            return not_json_row(error)
        except (ModelError, InvalidInput) as error:
            return {"failed": str(error), "input": isinstance(error, InvalidInput)}
        finally:
            self._running_calls -= 1

    def look(self) -> bool:
        return self._running_calls > 0


def answer_in(row: dict[str, Any]) -> Answer:
    """The answer in a row from `Weights.ask`. Raises what the model raised."""
    if "failed" in row:
        raise (InvalidInput if row["input"] else ModelError)(row["failed"])
    return read_result(row, Usage(**row["usage"]))


def _actor(create: Callable[..., Idle], name: str, arguments: Sequence[Any], node: str | None) -> Any:
    """The actor with this name, which is created if there is none. node: the id of its machine. None: any."""
    ray: Any = import_module("ray")
    options: dict[str, Any] = {"name": name, "namespace": NAMESPACE, "get_if_exists": True, "lifetime": "detached"}
    if node is not None:
        options["scheduling_strategy"] = on_node(node)
    return ray.remote(create).options(**options, num_cpus=0, max_concurrency=MAX_CALLS).remote(*arguments)


def on_node(node: str) -> Any:
    """Ray's option for work that has to run on the machine with this id."""
    strategies: Any = import_module("ray.util.scheduling_strategies")
    return strategies.NodeAffinitySchedulingStrategy(node, soft=False)


class _Shared:
    """An actor that workers share. It is found or created at the first call, and again when it has ended."""

    def __init__(self, create: Callable[..., Idle], name: str, *arguments: Any, node: str | None = None) -> None:
        self._find: Callable[[], Any] = lambda: _actor(create, name, arguments, node)
        self._current: Any = None

    async def call(self, ask: Callable[[Any], Awaitable[T]]) -> T:
        """The result of a call. The call is repeated if the actor ended before it could answer."""
        actor_error: Any = import_module("ray.exceptions").RayActorError
        for left in reversed(range(CALL_TRIES)):
            try:
                self._current = self._current or self._find()
                return await ask(self._current)
            except actor_error:
                self._current = None
                if not left:
                    raise
        raise AssertionError("CALL_TRIES must be at least 1")

    def tell(self, tell: Callable[[Any], object]) -> None:
        """Call it without waiting."""
        if self._current is not None:
            tell(self._current)


class ClusterSlots:
    """Slots for the calls of this worker (see `provider_client.slots_from`)."""

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
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self._slots.tell(lambda slots: slots.hear.remote(self._worker))


class SharedModel:
    """A local model that this machine loads once for all its workers."""

    calls_tools = False

    def __init__(self, model: Model, weights: _Shared) -> None:
        self.name, self.id, self.sees = model.name, model.id, getattr(model, "sees", True)
        self._weights = weights

    async def ask(self, question: Question, sampling: Sampling = Sampling()) -> Answer:
        """Raises what the model raises."""
        row = await self._weights.call(lambda weights: weights.ask.remote(self.name, question, sampling))
        return answer_in(row)


class SharedModels:
    """Opens models for a worker. Local models are shared by the workers of a machine; others are not.

    variables: see `Weights`.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        node: str = import_module("ray").get_runtime_context().get_node_id()
        self._weights = _Shared(Weights, f"mulligan-weights-{node}", dict(variables), node=node)

    def __call__(self, name: str, **how: Any) -> Model:
        model = open_model(name, **how)  # loads no weights yet
        return SharedModel(model, self._weights) if name.partition(":")[0] == "local" else model
