"""Agents of openai-agents, which have no method that runs them: wrapped, they get `run` and `run_sync`, which call the
`Runner`. Notes are instructions of the run, behind those of the agent whose turn it is."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mulligan.core.records import Attempt, Usage
from mulligan.functions.calls import settled_value
from mulligan.functions.frameworks._steps import Called, Returned, Said, steps_of

PACKAGE = "agents"
ENTRIES = {"run": True, "run_sync": False}
STREAMS = ("run_streamed",)
UNJUDGED = ("as_tool", "clone", "get_system_prompt", "get_prompt")
"""The last two are what the `Runner` calls when it is handed a wrapped agent."""

FILTER = "call_model_input_filter"
"""The part of a run's configuration that sees the instructions of each model call."""


def recognises(agent: Any) -> bool:
    return hasattr(agent, "get_system_prompt") and hasattr(agent, "handoffs") and hasattr(agent, "output_type")


def method(agent: Any, name: str) -> Any:
    return partial(getattr(sys.modules[PACKAGE].Runner, name), agent)


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    given = args[0] if args else kwargs.get("input")
    if isinstance(given, str):
        return given
    items = given if isinstance(given, (list, tuple)) else ()  # else a run that goes on
    asked = [one for one in items if isinstance(one, Mapping) and one.get("role") == "user"]
    return _text(asked[-1].get("content")) if asked else ""


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    own = kwargs.get("run_config") or sys.modules[PACKAGE].RunConfig()
    inner = own.get(FILTER) if isinstance(own, Mapping) else getattr(own, FILTER)

    async def with_notes(data: Any) -> Any:
        given = await settled_value(inner(data)) if inner else data.model_data
        return replace(given, instructions="\n\n".join(part for part in (given.instructions, notes) if part))

    changed: dict[str, Any] = {FILTER: with_notes}
    config = {**own, **changed} if isinstance(own, Mapping) else replace(own, **changed)
    return agent, args, {**kwargs, "run_config": config}


def answer(result: Any) -> Any:
    return result.final_output


def attempt(result: Any) -> Attempt:
    used = result.context_wrapper.usage
    usage = Usage(used.input_tokens, used.output_tokens, used.requests, None)
    return Attempt(str(result.final_output), steps_of(_parts(result.new_items)), usage=usage)


def _parts(items: Sequence[Any]) -> Iterator[Said | Called | Returned]:
    for item in items:
        raw = item.raw_item
        match item.type:
            case "message_output_item":
                yield Said(_text(_of(raw, "content")))
            case "reasoning_item":
                yield Said(_text(_of(raw, "summary")))
            case "tool_call_item" | "handoff_call_item":
                name = _of(raw, "name") or _of(raw, "type")  # a tool of OpenAI's own has a type alone
                yield Called(_id(raw), str(name), _of(raw, "arguments") or "")
            case "tool_call_output_item":
                yield Returned(_id(raw), str(item.output))
            case "handoff_output_item":
                yield Returned(_id(raw), str(_of(raw, "output")))
            case _:
                pass


def _of(raw: Any, name: str) -> Any:
    """A part of an item, which is an object or a dict."""
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _id(raw: Any) -> str:
    return str(_of(raw, "call_id") or _of(raw, "id"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in content or () if isinstance(text := _of(part, "text"), str))
