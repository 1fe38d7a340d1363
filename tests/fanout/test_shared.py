"""What workers of a cluster share, without a cluster: who gets a slot of a provider, and answers from another process."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mulligan.bench.fanout.shared import DEAD_SECONDS, Slots, Weights, answer_in
from mulligan.core.errors import InvalidInput, ModelError
from mulligan.core.questions import Answer, Message, Question, Sampling
from mulligan.models.failures import Unreadable


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Door:
    """Slots, the tasks that wait for one, and who has one."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.slots = Slots(self.clock)
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, ticket: str, worker: str = "w", provider: str = "p", most: int = 2) -> None:
        self.tasks[ticket] = asyncio.create_task(self.slots.take(ticket, worker, provider, most))

    async def held(self) -> set[str]:
        for _ in range(3):  # so that each task is at its wait, or over
            await asyncio.sleep(0)
        return {ticket for ticket, task in self.tasks.items() if task.done()}


@pytest.fixture
async def door() -> AsyncGenerator[Door]:
    made = Door()
    yield made
    for task in made.tasks.values():
        task.cancel()
    await asyncio.gather(*made.tasks.values(), return_exceptions=True)


async def test_the_first_get_a_slot_and_the_next_when_one_is_free(door: Door) -> None:
    for ticket in "abcd":
        door.ask(ticket)
    assert await door.held() == {"a", "b"}
    await door.slots.give("b")
    assert await door.held() == {"a", "b", "c"}
    await door.slots.give("d")  # it waited, and does so no longer
    await door.slots.give("a")
    door.ask("e")
    assert await door.held() == {"a", "b", "c", "d", "e"}


async def test_providers_do_not_wait_for_each_other(door: Door) -> None:
    for ticket, provider in zip("abcd", "ppqq", strict=True):
        door.ask(ticket, provider=provider, most=1)
    assert await door.held() == {"a", "c"}


async def test_a_worker_with_a_lower_limit_waits_longer(door: Door) -> None:
    door.ask("a")
    door.ask("b", most=1)
    door.ask("c", most=2)
    assert await door.held() == {"a", "c"}
    await door.slots.give("a")
    assert await door.held() == {"a", "c"}
    await door.slots.give("c")
    assert await door.held() == {"a", "b", "c"}


async def test_the_slots_of_a_silent_worker_are_free(door: Door) -> None:
    door.ask("a", worker="dies")
    door.ask("b", worker="lives")
    door.ask("c", worker="lives")
    assert await door.held() == {"a", "b"}
    door.clock.now = DEAD_SECONDS - 1
    await door.slots.hear("lives")
    assert door.slots.look()
    assert await door.held() == {"a", "b"}
    door.clock.now = DEAD_SECONDS + 1
    assert door.slots.look()
    assert await door.held() == {"a", "b", "c"}
    await door.slots.give("a")  # it was not dead, only slow: nothing is free twice
    door.ask("d")
    assert "d" not in await door.held()
    await door.slots.give("b")
    await door.slots.give("c")
    await door.slots.give("d")
    assert not door.slots.look()


class Elsewhere:
    """A model of another process, with these answers."""

    def __init__(self, folder: Path, *answers: str) -> None:
        file = folder / "said.json"
        file.write_text(json.dumps(answers))
        self.name = f"scripted:{file}"
        self.weights = Weights({})

    async def ask(self, schema: object = None) -> Answer:
        question = pickle.loads(pickle.dumps(Question((Message("user", "Well?"),), schema)))
        return answer_in(pickle.loads(pickle.dumps(await self.weights.ask(self.name, question, Sampling()))))


async def test_answers_and_errors_of_a_model_cross_over(tmp_path: Path) -> None:
    model = Elsewhere(tmp_path, "right", "{broken")
    answer = await model.ask()
    assert (answer.content, answer.usage.calls, answer.usage.output_tokens) == ("right", 1, 1)
    with pytest.raises(Unreadable) as bad:
        await model.ask({"type": "object"})
    assert (bad.value.text, bad.value.usage.calls) == ("{broken", 1)
    with pytest.raises(ModelError, match="has 2 answers but was asked for number 3"):
        await model.ask()
    model.name = "local:nothing"
    with pytest.raises(InvalidInput, match="'nothing'"):
        await model.ask()
    assert not model.weights.look()
