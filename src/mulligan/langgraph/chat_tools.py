"""Asks a model of Mulligan with the tools that LangChain binds: their schemas, the required tool, calls as JSON."""

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
"""An extra tool for models that can only answer with a call."""


def tool_schemas(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return pydantic classes, functions, LangChain's tools and schemas as JSON that can be bound to a model.

    Raises `InvalidInput` for tools that run at a provider, which Mulligan does not support.
    """
    found: list[dict[str, Any]] = []
    for tool in tools:
        try:
            schema = convert_to_openai_tool(tool)
        except ValueError as error:
            raise InvalidInput(f"{tool!r} is not a tool: {str(error).splitlines()[0]}.") from None
        if schema.get("type") != "function" or "function" not in schema:
            raise InvalidInput(
                f"The tool {schema.get('type')!r} runs at its provider and cannot be used here. Give functions, "
                "pydantic classes, LangChain's tools or JSON schemas."
            )
        found.append(schema)
    return found


def chosen_tool(choice: Any, tools: Sequence[Mapping[str, Any]]) -> str | None:
    """Return `tool_choice` as it is bound: "any", "none" or the name of a tool; None if the model may choose.

    Raises `UnknownName`.
    """
    names = [tool["function"]["name"] for tool in tools]
    match choice:
        case None | "auto" | False:
            return None
        case "any" | "required" | True:
            return ANY
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            choice = name
        case {"type": str(kind)}:
            return chosen_tool(kind, tools)
        case _:
            pass
    if choice == "none" or choice in names:
        return choice
    raise UnknownName("tool", str(choice), names)


def tools_of(bound: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Return the result of `tool_schemas` as `Tool`s. Raises `InvalidInput` for two tools with the same name."""
    empty: Json = {"type": "object", "properties": {}}
    names = [each["function"]["name"] for each in bound]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"Two tools have the name {', '.join(twice)}. Give each its own name.")
    return tuple(
        Tool(told["name"], told.get("description") or "", told.get("parameters") or empty)
        for told in (each["function"] for each in bound)
    )


@dataclass(frozen=True)
class ToolRequest:
    """One question to a model. choice: a result of `chosen_tool`. parallel: whether an answer may have many calls."""

    model: Model
    sampling: Sampling
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    choice: str | None = None
    parallel: bool = True

    async def answer(self) -> Answer:
        """Return the model's answer. Raises what the model raises, and `NotJson` for a call that cannot be read.

        Without tools, earlier calls become text: some providers refuse calls of tools that are not bound.
        """
        if not self.tools or self.choice == "none":
            return await self.model.ask(in_json(Question(self.messages)), self.sampling)
        if self.choice is not None:
            return await self._as_json(self.required)
        if not await asyncio.to_thread(getattr, self.model, "calls_tools", True):  # it may have to load its client
            reply = _reply(self.tools)
            return _replied(await self._as_json([*self.tools, reply]), reply)
        answer = await self.model.ask(Question(self.messages, tools=self.tools), self.sampling)
        return answer if self.parallel else replace(answer, calls=answer.calls[:1])

    @property
    def required(self) -> list[Tool]:
        """The tools of which one must be called."""
        return [tool for tool in self.tools if self.choice in (ANY, tool.name)]

    async def _as_json(self, tools: Sequence[Tool]) -> Answer:
        """Request a call of one of these tools as JSON of a schema, which local models and most providers enforce."""
        answer = await self.model.ask(in_json(Question(self.messages, tools=tuple(tools))), self.sampling)
        return replace(answer, content="", calls=(_call_in(answer, tools),))


def _call_in(answer: Answer, tools: Sequence[Tool]) -> ToolCall:
    """Return the call in an answer. If there is only one tool, an answer may hold its arguments alone.

    Raises `NotJson` that tells what is wrong.
    """
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
    """Return the answer, with a call of `reply` turned into its text."""
    (call,) = answer.calls
    if call.name != reply.name:
        return answer
    return replace(answer, content=str(cast(dict[str, Json], call.arguments).get("text", "")), calls=())
