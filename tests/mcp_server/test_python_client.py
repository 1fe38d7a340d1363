"""The official Python client walks the seeds' examples, over every transport, in the new protocol and the old one."""

from typing import Any

import pytest
from mcp import Client
from serving import by_stdio, over, served
from walks import Step, check, memory_walk, reflexion_walk, walked

pytestmark = pytest.mark.slow
REVISIONS = {"auto": "2026-07-28", "legacy": "2025-11-25"}


async def walk(server: Any, mode: str, steps: list[Step]) -> None:
    async with Client(server, mode=mode, read_timeout_seconds=60) as client:
        report = await walked(client, steps)
    check(report, steps)
    assert report["revision"] == REVISIONS[mode]
    assert report["instructions"]


@pytest.mark.parametrize("mode", REVISIONS)
async def test_stdio(mode: str) -> None:
    await walk(by_stdio(), mode, [*reflexion_walk(), *memory_walk()])
    await walk(by_stdio(), mode, reflexion_walk(file="conic"))


@pytest.mark.parametrize("mode", REVISIONS)
async def test_sse(mode: str) -> None:
    with served(transport="sse") as server:
        await walk(over(server.url), mode, [*reflexion_walk(), *memory_walk()])


@pytest.mark.parametrize("mode", REVISIONS)
async def test_http(mode: str) -> None:
    """In the new protocol there is no session, and the client names its episode."""
    with served() as server:
        await walk(over(server.url), mode, [*reflexion_walk(named=mode == "auto"), *memory_walk()])


@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_two_connections_keep_apart(transport: str) -> None:
    """Each walks from an empty memory, on one server."""
    with served(transport=transport) as server:
        await walk(over(server.url), "legacy", reflexion_walk())
        await walk(over(server.url), "legacy", reflexion_walk())
