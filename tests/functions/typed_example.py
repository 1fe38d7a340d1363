"""What a type checker says of `retry`: `make check` reads this file."""

from typing import Any, assert_type

import mulligan
from mulligan import Notes
from mulligan.functions.wrap import Runs


def right(task: str, answer: str) -> bool:
    return answer.endswith("EUR")


@mulligan.retry(judge=right, tries=3, bank="billing")
async def bill(task: str, notes: Notes) -> str:
    return f"{task}{notes}"


@mulligan.retry(judge=lambda answer: answer > 3)
def number(notes: Notes, n: int = 3) -> int:
    return n


@mulligan.retry(judge=right, notes="prompt")
def plain(prompt: str, times: int = 2) -> str:
    return prompt * times


@mulligan.retry(judge=right)
def of_any(of: object, notes: Notes) -> str:
    return f"{of}"


class Desk:
    @mulligan.retry(judge=right)
    def bill(self, task: str, notes: Notes) -> str:
        return task


class Agent:
    """Such as a framework's."""

    async def run(self, task: str) -> str:
        return task


class OfRunner:
    """As openai-agents has them."""

    handoffs: list[Any]

    async def get_system_prompt(self, run_context: Any) -> str | None: ...


async def with_memory(messages: list[dict[str, str]]) -> None:
    async with mulligan.memory("billing") as memory:
        notes = await memory.notes("x")
        assert_type(notes, Notes)
        learned = await memory.learn(messages, task="x", success=False, why="no currency", notes=notes)
        assert_type(learned.nothing_because, str)


async def main() -> None:
    agent = mulligan.wrap(Agent(), judge=right, tries=2)
    assert_type(agent, Agent)
    assert_type(await agent.run("x"), str)
    of_runner = mulligan.wrap(OfRunner(), judge=right)
    assert_type(of_runner, Runs)
    assert_type(await of_runner.run("x"), Any)
    try:
        number(n=4)
    except mulligan.NotSolved as error:
        assert_type(error.episode, mulligan.Episode)
    assert_type(await bill("x"), str)
    result = await bill.run("x")
    assert_type(result.value, str)
    assert_type(number(n=4), int)
    assert_type(number(4), int)
    assert_type(plain("x", times=2), str)
    assert_type(of_any([1]), str)
    assert_type(Desk().bill("x"), str)
    assert_type(plain.run("x").value, str)
    await bill(1)  # pyright: ignore[reportArgumentType]
