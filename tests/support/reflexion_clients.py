"""`reflexion-thinking` for tests: a service on the test's store, a real client in process, and calls in short.

async with a_service() as service, a_client(service) as client:
    answer = await good(client, step("actor", 1, 3, actorInputText="…"))
    assert await refused(client, step("evaluator", 2, 3)) == "…"
reply = await told(service, ConnectionState(), step(…))            # without a client: the tool itself, for many calls
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent

from mulligan.app.service import ServerOptions, Service
from mulligan.core.records import Episode
from mulligan.mcp_server.server import make_server, one_connection, run_tool
from mulligan.mcp_server.tool import Call, ConnectionState, Reply
from mulligan.mcp_server.tools.reflexion_thinking import TOOL

NAME = "reflexion-thinking"


@asynccontextmanager
async def a_service(**served: Any) -> AsyncGenerator[Service]:
    service = Service(ServerOptions(output_schemas=served.pop("output_schemas", True), **served))
    try:
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def a_client(service: Service, mode: str = "legacy", tools: str = "reflexion") -> AsyncGenerator[Client]:
    """A connection of its own."""
    bound = service.served.agent_id
    async with Client(make_server(service, tools, lambda _: one_connection(bound)), mode=mode) as client:
        await client.list_tools()  # so that the client holds answers against the output schema
        yield client


def step(kind: str, trial: float, trials: float, **more: Any) -> dict[str, Any]:
    return {"stepType": kind, "trialNumber": trial, "maxTrials": trials, **more}


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def good(client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
    """The answer, which is the same as structured content and as compact text."""
    result = await client.call_tool(NAME, arguments)
    assert not result.is_error, text_of(result)
    answer: dict[str, Any] = result.structured_content
    assert text_of(result) == json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    return answer


async def refused(client: Client, arguments: dict[str, Any]) -> str:
    """What the error says, which stands in the text block alone."""
    result = await client.call_tool(NAME, arguments)
    assert result.is_error, text_of(result)
    assert result.structured_content is None
    (said,) = json.loads(text_of(result)).values()
    return said


async def told(
    service: Service, link: ConnectionState | None, arguments: dict[str, Any], bound: str | None = None
) -> Reply:
    """The tool's reply, as the server asks for it."""
    return await run_tool(TOOL, arguments, Call(service, bound, link))


async def recorded(service: Service) -> list[Episode]:
    """All that is recorded, oldest first."""
    return list(reversed(await service.store.list(limit=1000)))
