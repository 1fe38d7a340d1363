"""The official Python client walks the seeds' examples, over every transport, in the new protocol and the old one."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from serving import by_stdio, over, served
from walks import SEEDS, Step, check, memory_walk, reflexion_walk, walked

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


@pytest.mark.parametrize("name", SEEDS)
async def test_a_configuration_of_the_seeds_with_another_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All calls of the seed's document, from a client that hands on its home and the variables of the file only."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    entry = {**SEEDS[name], "command": "mulligan", "args": ["serve"]}
    with (tmp_path / "said.txt").open("w") as said:
        server = stdio_client(StdioServerParameters.model_validate(entry), errlog=said)
        await walk(server, "legacy", reflexion_walk() if name == "reflexion-thinking" else memory_walk())
    stores = [file for _, _, files in os.walk(tmp_path) for file in files if file == "mulligan.db"]
    assert len(stores) == 1, "its store is in the home that it was given"
    assert ("DASHSCOPE_API_KEY" in (tmp_path / "said.txt").read_text()) == ("env" in SEEDS[name])
