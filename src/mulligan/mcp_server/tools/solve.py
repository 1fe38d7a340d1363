"""`solve`: hands a whole task to the server's own model, which tries until an attempt passes."""

from __future__ import annotations

from collections.abc import Mapping

from mulligan.core.records import Json
from mulligan.mcp_server.tool import Call, Reply, Tool, definition, failed


async def call(arguments: Mapping[str, Json], call: Call) -> Reply:
    from mulligan.mcp_server.tools.solving import parse, solve  # what solves imports a good deal

    return await solve(parse(arguments, call), call)


TOOL = Tool(definition("solve"), call, failed, offered=lambda service: service.model is not None)
