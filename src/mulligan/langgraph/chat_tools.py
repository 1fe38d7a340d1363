"""What LangChain binds to a model as tools, in our words; which of them has to be called; and a call made as JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.utils.function_calling import convert_to_openai_tool

from mulligan.core.errors import InvalidInput, UnknownName
from mulligan.core.protocols import Model
from mulligan.core.questions import Answer, Message, Question, Sampling, Tool, ToolCall
from mulligan.core.records import Json
from mulligan.models.failures import NotJson
from mulligan.models.tool_answers import call_of, in_json

ANY = "any"
REPLY = Tool(
    "reply",
    "Say something to the user, such as the answer, instead of calling another tool.",
    {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "What you say."}},
        "required": ["text"],
        "additionalProperties": False,
    },
)
"""Offered beside the tools to a model that can answer with nothing but a call."""


def described(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Pydantic classes, functions, LangChain's tools and schemas, as JSON that can be bound to a model. Raises
    `InvalidInput` for tools that run at a provider: none of them is spoken to directly."""
    found: list[dict[str, Any]] = []
    for tool in tools:
        try:
            told = convert_to_openai_tool(tool)
        except ValueError as error:
            raise InvalidInput(f"{tool!r} is no tool: {str(error).splitlines()[0]}.") from None
        if told.get("type") != "function" or "function" not in told:
            raise InvalidInput(
                f"The tool {told.get('type')!r} runs at its provider, and cannot be used here: give functions, "
                "pydantic classes, LangChain's tools or JSON schemas."
            )
        found.append(told)
    return found


def wanted(choice: Any, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """`tool_choice` as it is bound: "any", "none", the name of a tool; None where the model may choose. Raises
    `UnknownName`."""
    names = [tool["function"]["name"] for tool in tools]
    match choice:
        case None | "auto" | False:
            return None
        case "any" | "required" | True:
            return ANY
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            choice = name
        case {"type": str(kind)}:
            return wanted(kind, tools)
        case _:
            pass
    if choice == "none" or choice in names:
        return choice
    raise UnknownName("tool", str(choice), names)


def tools_of(bound: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """What `described` made, as our tools. Raises `InvalidInput` for two of one name."""
    empty: Json = {"type": "object", "properties": {}}
    names = [each["function"]["name"] for each in bound]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"Two tools are called {', '.join(twice)}: give each a name of its own.")
    return tuple(
        Tool(told["name"], told.get("description") or "", told.get("parameters") or empty)
        for told in (each["function"] for each in bound)
    )


@dataclass(frozen=True)
class Asking:
    """One question to a model. choice: as of `wanted`. parallel: False: one call in an answer, and no more."""

    model: Model
    sampling: Sampling
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: str | None = None
    parallel: bool = True

    async def answer(self) -> Answer:
        """Raises what the model raises; `NotJson` for a call that cannot be read.

        Without tools, earlier calls are worded: some providers refuse calls of tools that are not there.
        """
        if not self.tools or self.choice == "none":
            return await self.model.ask(in_json(Question(self.messages)), self.sampling)
        if self.choice is not None:
            return await self._as_json(self.demanded)
        if not await asyncio.to_thread(getattr, self.model, "calls_tools", True):  # its client may have to be loaded
            reply = _reply(self.tools)
            return _replied(await self._as_json([*self.tools, reply]), reply)
        answer = await self.model.ask(Question(self.messages, tools=self.tools), self.sampling)
        return answer if self.parallel else replace(answer, calls=answer.calls[:1])

    @property
    def demanded(self) -> list[Tool]:
        """The tools of which one has to be called."""
        return [tool for tool in self.tools if self.choice in (ANY, tool.name)]

    async def _as_json(self, tools: Sequence[Tool]) -> Answer:
        """A call of one of these tools, as JSON of a schema that local models and most providers are held to."""
        answer = await self.model.ask(in_json(Question(self.messages, tools=tuple(tools))), self.sampling)
        return replace(answer, content="", calls=(_call_in(answer, tools),))


def _call_in(answer: Answer, tools: Sequence[Tool]) -> ToolCall:
    """The call that the answer stands for; a model that no schema holds may give the arguments alone, where there is
    one tool only. Raises `NotJson` that says what is wrong with it."""
    content: Json = answer.content
    given = cast(dict[str, Json], content) if isinstance(content, dict) else {}
    if len(tools) == 1 and "tool" not in given and not ("name" in given and "arguments" in given):
        return ToolCall(tools[0].name, given)
    text = json.dumps(given, ensure_ascii=False)
    try:
        call = call_of(text)
        if call.name not in [tool.name for tool in tools]:
            raise ValueError(f"there is no tool called {call.name!r}")
    except ValueError as error:
        raise NotJson(str(error), text=text, model=answer.model, usage=answer.usage) from None
    return call


def _reply(tools: Sequence[Tool]) -> Tool:
    taken = {tool.name for tool in tools}
    return replace(REPLY, name=next(name for name in (REPLY.name, "say", "say_to_user") if name not in taken))


def _replied(answer: Answer, reply: Tool) -> Answer:
    """The answer, whose call of `reply` is its text."""
    (call,) = answer.calls
    if call.name != reply.name:
        return answer
    return replace(answer, content=str(cast(dict[str, Json], call.arguments).get("text", "")), calls=())
