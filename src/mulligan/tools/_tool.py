"""What the plug-ins that offer a single tool share."""

from __future__ import annotations

from collections.abc import Sequence

from mulligan.core.questions import Tool
from mulligan.core.records import Json


class OneTool:
    """A toolset of one tool, which holds nothing open. A subclass sets `_tool` and has `call`."""

    _tool: Tool

    async def offer(self) -> Sequence[Tool]:
        return (self._tool,)

    async def close(self) -> None:
        pass


def parameters(*, optional: Sequence[str] = (), **properties: Json) -> Json:
    """The JSON Schema of a tool's arguments: these and no others, each required unless it is among the optional."""
    required = [name for name in properties if name not in optional]
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}
