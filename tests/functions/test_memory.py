"""`memory`: the bank for a program with a loop of its own; messages of every kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import mulligan
from mulligan.app.transcripts import read_messages
from mulligan.core.errors import InvalidInput
from mulligan.core.turns import Turn


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


CHAT = [{"role": "user", "content": "Write the total of 5 and 7."}, {"role": "assistant", "content": "12"}]


def said(messages: Sequence[Any]) -> list[tuple[str, str, str]]:
    return [(turn.role, turn.tool, turn.text) for turn in read_messages(messages).turns]


async def test_why_a_task_failed_comes_back_for_one_like_it() -> None:
    async with mulligan.memory("billing") as memory:
        assert str(await memory.notes("Write the total of 3 and 4.")) == ""
        learned = await memory.learn(CHAT, success=False, why="no currency behind the total")
        assert len(learned.facts) == 1
        notes = await memory.notes("Write the total of 3 and 4.")
        assert "no currency behind the total" in notes
        assert [lesson.confirmed for lesson in notes.lessons] == [False]
    async with mulligan.memory("shipping") as memory:
        assert str(await memory.notes("Write the total of 3 and 4.")) == ""


async def test_the_outcome_of_a_task_goes_to_the_notes_that_it_was_given() -> None:
    async with mulligan.memory("billing") as memory:
        await memory.learn(CHAT, success=False, why="no currency behind the total")
        notes = await memory.notes("Write the total of 3 and 4.")
        done = [{"role": "user", "content": "Write the total of 3 and 4."}, {"role": "assistant", "content": "7 EUR"}]
        learned = await memory.learn(done, success=True, why="as it should be", notes=notes)
        assert "rules find nothing" in learned.nothing_because
        receipt = await memory.bank.receipt(notes.receipt)
        assert [outcome.success for outcome in receipt.outcomes] == [True]


async def test_what_memory_cannot_take_is_refused_with_its_name() -> None:
    with pytest.raises(InvalidInput, match=r"No option of mulligan.memory is called 'modle'. Did you mean 'model'"):
        mulligan.memory("billing", modle="x")
    with pytest.raises(InvalidInput, match="agent_id must be a string, not 3"):
        mulligan.memory(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidInput, match="must be a name, or an object with `ask`, not 3"):
        async with mulligan.memory("billing", model=3):  # pyright: ignore[reportArgumentType]
            pass
    async with mulligan.memory("billing") as memory:
        with pytest.raises(InvalidInput, match="the task as a string, not None"):
            await memory.notes(None)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="success must be True, False, or None"):
            await memory.learn(CHAT, success="yes")  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="task must be a string, not 3"):
            await memory.learn(CHAT, task=3)  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="There are no messages"):
            await memory.learn([])


async def test_errors_say_what_is_missing() -> None:
    closed = mulligan.memory("billing")
    with pytest.raises(InvalidInput, match="not open"):
        await closed.notes("x")
    async with mulligan.memory("billing") as memory:
        with pytest.raises(InvalidInput, match="so `success` is needed"):
            await memory.learn(CHAT, why="no currency")
        with pytest.raises(InvalidInput, match="message 2 is of type int"):
            await memory.learn([CHAT[0], 7], success=False)
        with pytest.raises(InvalidInput, match="message 2: role must be"):
            await memory.learn([CHAT[0], {"role": "judge", "content": "x"}], success=False)


def test_messages_of_langchain_as_objects() -> None:
    call: Any = {"name": "look", "args": {"line": 5}, "id": "c1"}
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("The total?"),
        AIMessage("I look.", tool_calls=[call]),
        ToolMessage("no such line", tool_call_id="c1", status="error"),
        AIMessage("12"),
    ]
    turns = read_messages(messages).turns
    assert turns == (
        Turn("system", "Be brief."),
        Turn("user", "The total?"),
        Turn("assistant", "I look."),
        Turn("assistant", '{"line": 5}', "look", "c1"),
        Turn("tool", "no such line", "look", "c1", failed=True),
        Turn("assistant", "12"),
    )


async def test_messages_of_pydantic_ai_as_objects() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse([TextPart("I look."), ToolCallPart("look", {"line": 5}, "c1")])
        return ModelResponse([TextPart("12")])

    agent = Agent(FunctionModel(answer), system_prompt="Be brief.")

    @agent.tool_plain
    def look(line: int) -> dict[str, int]:
        return {"found": line}

    result = await agent.run("The total?")
    assert said(result.all_messages()) == [
        ("system", "", "Be brief."),
        ("user", "", "The total?"),
        ("assistant", "", "I look."),
        ("assistant", "look", '{"line": 5}'),
        ("tool", "look", '{"found": 5}'),
        ("assistant", "", "12"),
    ]
