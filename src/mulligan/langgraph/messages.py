"""Converts LangChain's messages for the journal: requests without ids that differ in each run, and whole answers.

It also makes LangChain's messages of rendered prompts, and reads their usage.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from mulligan.core.questions import Message
from mulligan.core.records import Json, Usage

_LEFT_OUT = object()
_ASKED = ("content", "name", "tool_calls", "status", "role")
"""The attributes of a message that a model gets. It does not see ids, metadata and a provider's extras."""
_ANSWERED = ("tool_calls", "invalid_tool_calls", "usage_metadata", "response_metadata", "additional_kwargs", "name")

_KINDS: Mapping[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}


def as_messages(rendered: Sequence[Message]) -> list[BaseMessage]:
    """Return the messages of a rendered prompt as LangChain's."""
    return [_KINDS[message.role](message.text) for message in rendered]


def plain(message: BaseMessage) -> Json:
    """Return a message of a request as JSON without ids, which differ from run to run."""
    said: dict[str, Json] = {"type": message.type}
    for name in _ASKED:
        value = getattr(message, name, None)
        if name == "tool_calls":
            value = [{"name": call["name"], "args": call["args"]} for call in value or ()]
        elif name == "content" and isinstance(value, list):
            value = [_without_id(block) for block in cast(list[Any], value)]
        if value not in (None, [], ""):
            said[name] = jsonable(value)
    return said


def said(message: AIMessage) -> Json:
    """Return a model's answer as JSON: the whole message except its id, and its usage."""
    parts = {name: jsonable(getattr(message, name, None)) for name in _ANSWERED}
    kept = {name: value for name, value in parts.items() if value not in (None, [], {})}
    used = usage_of(message)
    usage = {name: getattr(used, name) for name in ("input_tokens", "output_tokens", "calls", "cost")}
    return {"message": {"content": jsonable(message.content), **kept}, "usage": usage}


def message_of(row: Json) -> AIMessage:
    """Return the message that `said` converted."""
    return AIMessage(**row["message"])


def usage_of(message: AIMessage) -> Usage:
    """Return the usage of one call. Unknown tokens count as 0, and an unknown cost is None. An answer from LangChain's
    cache costs nothing."""
    used = cast(dict[str, Any], message.usage_metadata or {})
    cost = used.get("total_cost", message.response_metadata.get("cost"))
    known = float(cost) if isinstance(cost, int | float) and math.isfinite(cost) else None
    return Usage(used.get("input_tokens", 0), used.get("output_tokens", 0), 1, known)


def jsonable(value: Any) -> Json:
    """Return the value as strict JSON. What JSON cannot express is left out of lists and objects, or becomes None."""
    found = _json(value)
    return None if found is _LEFT_OUT else found


def _json(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return value if math.isfinite(value) else _LEFT_OUT
    if isinstance(value, Mapping):
        pairs = ((str(key), _json(item)) for key, item in cast(Mapping[Any, Any], value).items())
        return {key: item for key, item in pairs if item is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [item for item in map(_json, cast(list[Any], value)) if item is not _LEFT_OUT]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return _LEFT_OUT


def _without_id(block: Any) -> Any:
    """Return a content block without ids: providers repeat those of tool calls there."""
    if not isinstance(block, Mapping):
        return block
    return {key: value for key, value in cast(Mapping[str, Any], block).items() if key not in ("id", "call_id")}
