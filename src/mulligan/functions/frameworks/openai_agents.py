"""Agents of openai-agents. They have no method that runs them, so wrapped ones get `run` and `run_sync`, which call the
`Runner`. Notes follow the instructions of the active agent."""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from mulligan.core.records import Attempt, Usage
from mulligan.functions.frameworks._steps import Called, Returned, Said, steps_of
from mulligan.recording.bridge import portal

PACKAGE = "agents"
ENTRIES = {"run": True, "run_sync": False}
STREAMS = ("run_streamed",)
UNJUDGED = ("as_tool", "clone", "get_system_prompt", "get_prompt")
"""The `Runner` calls the last two if it is given a wrapped agent."""

FILTER = "call_model_input_filter"
"""The field of a run's configuration whose function can change the instructions of each model call."""


def recognises(agent: Any) -> bool:
    return hasattr(agent, "get_system_prompt") and hasattr(agent, "handoffs") and hasattr(agent, "output_type")


def method(agent: Any, name: str) -> Any:
    return partial(getattr(sys.modules[PACKAGE].Runner, name), agent)


def task(agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    input = args[0] if args else kwargs.get("input")
    if isinstance(input, str):
        return input
    items = input if isinstance(input, (list, tuple)) else ()  # otherwise the state of a run to continue
    user_items = [item for item in items if isinstance(item, Mapping) and item.get("role") == "user"]
    return _text(user_items[-1].get("content")) if user_items else ""


def noted(
    agent: Any, args: Sequence[Any], kwargs: Mapping[str, Any], notes: str
) -> tuple[Any, Sequence[Any], Mapping[str, Any]]:
    config = kwargs.get("run_config") or sys.modules[PACKAGE].RunConfig()
    own_filter = config.get(FILTER) if isinstance(config, Mapping) else getattr(config, FILTER)

    async def with_notes(data: Any) -> Any:
        model_data = await portal.settled(own_filter(data)) if own_filter else data.model_data
        return replace(model_data, instructions="\n\n".join(part for part in (model_data.instructions, notes) if part))

    filter_field: dict[str, Any] = {FILTER: with_notes}
    new_config = {**config, **filter_field} if isinstance(config, Mapping) else replace(config, **filter_field)
    return agent, args, {**kwargs, "run_config": new_config}


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
                yield Said(_text(_field(raw, "content")))
            case "reasoning_item":
                yield Said(_text(_field(raw, "summary")))
            case "tool_call_item" | "handoff_call_item":
                name = _field(raw, "name") or _field(raw, "type")  # OpenAI's hosted tools have only a type
                yield Called(_call_id(raw), str(name), _field(raw, "arguments") or "")
            case "tool_call_output_item":
                yield Returned(_call_id(raw), str(item.output))
            case "handoff_output_item":
                yield Returned(_call_id(raw), str(_field(raw, "output")))
            case _:
                pass


def _field(raw: Any, name: str) -> Any:
    """A field of an item, which is an object or a dict."""
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _call_id(raw: Any) -> str:
    return str(_field(raw, "call_id") or _field(raw, "id"))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in content or () if isinstance(text := _field(part, "text"), str))
