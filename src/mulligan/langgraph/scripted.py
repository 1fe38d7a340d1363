"""`ScriptedChat`: a LangChain chat model that gives prepared answers, for tests."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from mulligan.pages import count
from mulligan.plugins import InvalidInput, Json, ModelError

Line: TypeAlias = "str | dict[str, Json] | list[dict[str, Json]] | AIMessage | Exception"


class ScriptedChat(BaseChatModel):
    """A chat model for tests that returns prepared answers in order, or the results of a function.

    It counts usage in words, and streams word by word. `asked` contains the messages of each call. The script starts
    again in each process. For an agent that is killed and resumed, pass a function that takes the messages. Raises
    `ModelError` at the end of the script.

    Args:
        answers: Texts, messages or exceptions to raise; arguments for the bound tool (the required one, or else the
            first), {"tool": NAME, "arguments": {...}}, or a list of these for several calls; or a function that returns
            one of these.
        cost: The cost of each call, in US dollars. None: unknown.
    """

    answers: Any
    cost: float | None = 0.0
    model_name: str = "scripted"
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list[Any])
    _turn: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, answers: Iterable[Line] | Callable[[list[BaseMessage]], Line], **given: Any) -> None:
        super().__init__(answers=answers if callable(answers) else list(answers), **given)  # pyright: ignore[reportCallIssue]

    @property
    def asked(self) -> Sequence[Sequence[BaseMessage]]:
        """The messages of each call so far."""
        return self._asked

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], tool_choice=tool_choice, **kwargs)

    def _generate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, named))])

    async def _agenerate(self, messages: list[BaseMessage], *given: Any, **named: Any) -> ChatResult:
        return self._generate(messages, **named)

    def _stream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> Iterator[ChatGenerationChunk]:
        yield from _chunks(self._answer(messages, named))

    async def _astream(self, messages: list[BaseMessage], *given: Any, **named: Any) -> AsyncIterator[Any]:
        for chunk in _chunks(self._answer(messages, named)):
            yield chunk

    def _answer(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> AIMessage:
        with self._turn:
            self._asked.append(list(messages))
            number = len(self._asked)
        given: Any = self.answers
        line: Any = given(messages) if callable(given) else self._line(number, messages)
        if isinstance(line, Exception):
            raise line
        message = _message(line, number, kwargs)
        asked = sum(len(asked.text.split()) for asked in messages)
        generated = len(message.text.split()) + sum(
            len(json.dumps(call["args"]).split()) for call in message.tool_calls
        )
        usage = UsageMetadata(input_tokens=asked, output_tokens=generated, total_tokens=asked + generated)
        metadata = {"model_name": self.model_name, "cost": self.cost, **message.response_metadata}
        return message.model_copy(
            update={"usage_metadata": message.usage_metadata or usage, "response_metadata": metadata}
        )

    def _line(self, number: int, messages: list[BaseMessage]) -> Line:
        if number > len(self.answers):
            last = messages[-1].text[:80] if messages else ""
            raise ModelError(
                f"The script has {count(len(self.answers), 'answer')} but was asked for number {number}. Add one. "
                f"The messages end with {last!r}."
            )
        return self.answers[number - 1]


def _message(line: Line, number: int, kwargs: dict[str, Any]) -> AIMessage:
    if isinstance(line, AIMessage):
        return line
    if isinstance(line, str):
        return AIMessage(line)
    calls: list[dict[str, Any]] = []
    for n, given in enumerate([line] if isinstance(line, dict) else cast(list[dict[str, Any]], line), 1):
        name, arguments = given.get("tool"), given.get("arguments")
        if set(given) != {"tool", "arguments"}:
            name, arguments = _bound(kwargs), given
        calls.append({"name": name, "args": arguments, "id": f"call_{number}_{n}", "type": "tool_call"})
    return AIMessage("", tool_calls=calls)


def _bound(kwargs: dict[str, Any]) -> str:
    tools = [tool["function"]["name"] for tool in kwargs.get("tools") or ()]
    if not tools:
        raise InvalidInput(
            "The script returns a tool call, but no tool is bound. Write a string, or "
            '{"tool": NAME, "arguments": {...}}.'
        )
    return kwargs["tool_choice"] if kwargs.get("tool_choice") in tools else tools[0]


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Yield the message word by word: its text, then its calls, then its usage."""
    for word in re.findall(r"\S+\s*|\s+", message.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    for index, call in enumerate(message.tool_calls):
        name, id = call["name"], call["id"]
        for word in re.findall(r"\S+\s*", json.dumps(call["args"])):
            piece: Any = {"name": name, "args": word, "id": id, "index": index, "type": "tool_call_chunk"}
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece]))
            name = id = None
    last = AIMessageChunk(
        content="", usage_metadata=message.usage_metadata, response_metadata=message.response_metadata
    )
    yield ChatGenerationChunk(message=last)
