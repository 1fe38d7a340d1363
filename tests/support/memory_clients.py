"""The memory tools for tests: a service on the test's store, a real client in process, and calls in short.

    async with a_service() as service, a_client(service) as client:
        answer = await good(client, "retrieve_memory", query="…")
        error = await refused(client, "extract_memory", trajectory=[])

`hosted(wire)` makes the loopback provider judge every task a success and draw one lesson from it, named after the task.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, TextContent
from wire_client import Wire

from mulligan.app.service import ServerOptions, Service
from mulligan.mcp_server.server import make_server, one_connection

MODEL = "openai:gpt-4o"
SETTINGS = "[calls]\nattempts = 1\n[memory]\nembedder = 'none'\n"
QUERY = "Find the earliest order date of the user on the shopping website"
TRAJECTORY = [
    {"step": 1, "role": "user", "content": "Find the earliest order"},
    {"step": 2, "role": "assistant", "content": "Click on order history"},
    {"step": 3, "role": "tool", "content": "Successfully found the order from 2020-01-15"},
]
LESSON: dict[str, Any] = {
    "steps": [2, 3],
    "title": "Whole history",
    "description": "When an order is looked for by its age.",
    "content": "Open the full order history: the front page shows recent orders alone.",
    "tags": [],
    "kind": "shopping",
}
EXTRACTED = {"why": "It shows how.", "lessons": [LESSON], "nothing_because": ""}
JUDGED = {"reasoning": "The order was found.", "verdict": "success"}
EXTRACTS, JUDGES = "nothing_because", "verdict"
"""What only a question of that kind holds."""


def hosted(wire: Wire, extracted: Any = EXTRACTED, judged: Any = JUDGED, **more: Any) -> None:
    """From now on the provider answers every question so; more: a delay, for example."""
    wire.plays({"when": EXTRACTS, "answer": extracted, **more}, {"when": JUDGES, "answer": judged, **more})


@asynccontextmanager
async def a_service(**served: Any) -> AsyncGenerator[Service]:
    service = Service(ServerOptions(output_schemas=served.pop("output_schemas", True), **served))
    try:
        yield service
    finally:
        await service.close()


@asynccontextmanager
async def a_client(service: Service, mode: str = "legacy") -> AsyncGenerator[Client]:
    """A connection of its own, which holds answers against the output schemas."""
    bound = service.served.agent_id
    async with Client(make_server(service, "memory", lambda _: one_connection(bound)), mode=mode) as client:
        await client.list_tools()
        yield client


def text_of(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def data_of(result: CallToolResult) -> dict[str, Any]:
    """A good answer, which is the same as structured content and as text, but that the text leaves out of `memories`
    what `formatted_prompt` says; or an error, which is text alone.
    """
    said: dict[str, Any] = json.loads(text_of(result))
    assert text_of(result) == json.dumps(said, ensure_ascii=False, indent=2)
    assert (result.structured_content is None) == bool(result.is_error)
    data: dict[str, Any] = result.structured_content or said
    whole, shown = data.get("memories", []), said.get("memories", [])
    assert {**said, "memories": whole} == {**data, "memories": whole}
    assert all(memory.items() >= part.items() for memory, part in zip(whole, shown, strict=True))
    return data


async def good(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return data_of(result)


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    return data_of(result)


async def settled(client: Client, task: str, seconds: float = 60.0, **arguments: Any) -> dict[str, Any]:
    """What the task comes to in the end."""
    async with asyncio.timeout(seconds):
        while True:
            answer = await good(client, "memory_task", task_id=task, **arguments)
            if answer["status"] != "processing":
                return answer
            await asyncio.sleep(0.02)
