"""A server in this process and a client of it, over a store with episodes and lessons of the agents a and b.

async with surface(bound="a") as (client, service): ...
code, message = await refused(client.read_resource("mulligan://episodes/none"))
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mulligan.app.service import ServerOptions, Service
from mulligan.core.episode import Acted, Evaluated, Event, Reflected, Stopped
from mulligan.core.lesson_history import Addition
from mulligan.core.protocols import Store
from mulligan.core.records import Attempt, Episode, Feedback, Lesson, Reflection, Stop, Task
from mulligan.mcp_server.server import make_server, one_connection

NEW, OLD = "2026-07-28", "legacy"
"""The protocol's current revision, and the handshake of the older ones."""


@asynccontextmanager
async def surface(
    bound: str | None = None, which: str = "all", mode: Any = OLD, **served: Any
) -> AsyncGenerator[tuple[Client, Service]]:
    """bound: the agent that the caller is held to. served: settings of the service."""
    service = Service(ServerOptions(output_schemas=served.pop("output_schemas", True), **served))
    try:
        async with Client(make_server(service, which, lambda _: one_connection(bound)), mode=mode) as client:
            yield client, service
    finally:
        await service.close()


async def refused(asked: Awaitable[Any]) -> tuple[int, str]:
    with pytest.raises(MCPError) as error:
        await asked
    return error.value.code, error.value.message


async def code_of(asked: Awaitable[Any]) -> int | None:
    """The code of the error that was answered; None: there was none."""
    try:
        await asked
    except MCPError as error:
        return error.code
    return None


async def text_of(client: Client, uri: str) -> str:
    """The one text of a resource."""
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    assert content.uri == uri
    return content.text


async def play(store: Store, id: str, agent: str, *outputs: str, prompt: str = "Add two numbers.") -> None:
    """An episode whose attempts fail, with a reflection on each, but for the last, which passes."""
    await store.create(Episode(id, Task(prompt), run=id, agent=agent, started=1_700_000_000.0))
    lease, seq = await store.acquire(id, "me", 60), 0
    for number, output in enumerate(outputs, 1):
        last = number == len(outputs)
        events: list[Event] = [
            Acted(number, Attempt(output)),
            Evaluated(number, Feedback(last, f"said of {output[:20]}")),
        ]
        events.append(Stopped(Stop("solved")) if last else Reflected(number, Reflection(f"learned from {output}")))
        for event in events:
            await store.append(lease, seq, event)
            seq += 1


async def teach(store: Store, id: str, agent: str, **fields: Any) -> None:
    title = fields.pop("title", f"Title of {id}")
    fields = {"description": f"When {id}.", "created": 1_700_000_000.0, **fields}
    lesson = Lesson(id, title, fields.pop("content", f"Content of {id}."), "success", **fields)
    await store.memory.lessons.add(agent, [Addition(lesson, f"print of {id}")])


async def listed(client: Client) -> list[types.Resource]:
    """All pages, one after the other."""
    found, cursor = list[types.Resource](), None
    for _ in range(1000):
        page = await client.list_resources(cursor=cursor)
        found += page.resources
        cursor = page.next_cursor
        if cursor is None:
            return found
    raise AssertionError("the pages do not end")
