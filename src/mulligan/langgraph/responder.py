"""Asks a model until what it says can be used, and tells it each time what was wrong."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from mulligan.core.errors import BadAnswer
from mulligan.text.plain import sound

_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
NO_CALL = "There was no tool call in it. Answer with a call of the tool, and nothing else."


class ResponderWithRetries:
    """Asks until the answer is valid, three times at most. One that is not goes back, with what is wrong with it.

    runnable: takes {"messages": …}. validator: a runnable or a function of the answer; it raises (`ValueError`, such as
    pydantic's) for what cannot be used, or gives nothing for it. Both `respond` and `arespond` raise `BadAnswer` after
    the third time.
    """

    TIMES = 3

    def __init__(self, runnable: Any, validator: Any) -> None:
        self.runnable, self.validator = runnable, validator

    def respond(self, state: Sequence[BaseMessage]) -> Any:
        messages, wrong = list(state), ""
        for _ in range(self.TIMES):
            message = self.runnable.invoke({"messages": messages})
            wrong = self._wrong(message)
            if not wrong:
                return message
            messages += said_back(message, wrong)
        raise self._given_up(wrong)

    async def arespond(self, state: Sequence[BaseMessage]) -> Any:
        if not hasattr(self.runnable, "ainvoke"):
            return await asyncio.to_thread(self.respond, state)
        messages, wrong = list(state), ""
        for _ in range(self.TIMES):
            message = await self.runnable.ainvoke({"messages": messages})
            wrong = self._wrong(message)
            if not wrong:
                return message
            messages += said_back(message, wrong)
        raise self._given_up(wrong)

    def _wrong(self, message: Any) -> str:
        """What is wrong with it, in a sentence or several; "" for nothing."""
        for call in getattr(message, "invalid_tool_calls", ()):
            return f"The arguments of {call.get('name') or 'the tool'} are no JSON: {call.get('error') or _cut(call)}"
        try:
            found = getattr(self.validator, "invoke", self.validator)(message)
        except (ValueError, TypeError, LookupError, AssertionError, BadAnswer) as error:
            return str(error) or type(error).__name__
        return "" if found or getattr(message, "tool_calls", ()) else NO_CALL

    def _given_up(self, wrong: str) -> BadAnswer:
        return BadAnswer(f"The model gave nothing that can be used, {self.TIMES} times. The last time: {wrong}")


def said_back(message: Any, wrong: str) -> list[BaseMessage]:
    """The message and what is wrong with it, as the next turns of the conversation: each tool call wants an answer."""
    said = f"That cannot be used. {wrong}"
    calls = [*getattr(message, "tool_calls", ()), *getattr(message, "invalid_tool_calls", ())]
    answers = [ToolMessage(said, tool_call_id=call.get("id") or "", status="error") for call in calls]
    return [message, *(answers or [HumanMessage(said)])]


def one_call(message: AIMessage) -> AIMessage:
    """The message with the first of its tool calls alone: a revision judges one trial, and each call that stays in the
    conversation would want an answer. Queries of the others are kept, behind the first one's own."""
    if len(message.tool_calls) < 2:
        return message
    first, *others = message.tool_calls
    more = [query for call in others if call["name"] == first["name"] for query in proposed(call["args"])]
    arguments = {**first["args"], "search_queries": list(dict.fromkeys([*proposed(first["args"]), *more]))}
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if not _is_call(block) or _id(block) == first["id"]]
    return AIMessage(content, tool_calls=[{**first, "args": arguments}], usage_metadata=message.usage_metadata)


def proposed(arguments: Any) -> list[str]:
    """The queries to run, the best one first; none where the model named none."""
    given: Any = arguments.get("search_queries") or []
    many: list[Any] = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    queries = [arguments.get("revised_query")] if _text(arguments.get("revised_query")) else many
    named = [_text(query) for query in queries if _text(query)]
    return named or ([_text(arguments.get("answer"))] if _text(arguments.get("answer")) else [])


def _text(value: Any) -> str:
    """A query as it can be run: without the code fence that models like to put around it."""
    text = sound(value).strip() if isinstance(value, str) else ""
    fenced = _FENCED.fullmatch(text)
    return fenced[1].strip() if fenced else text


def _cut(call: Any) -> str:
    return repr(call.get("args"))[:200]


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in ("tool_use", "tool_call")  # pyright: ignore


def _id(block: Any) -> Any:
    return block.get("id")
