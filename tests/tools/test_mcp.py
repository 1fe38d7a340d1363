"""Tools of MCP servers: real ones, over stdio and over HTTP, that work, die, hang or never start."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from each_row import each_row
from mcp_example_server import LONG

from mulligan.core.errors import InvalidInput, ToolError
from mulligan.tools.mcp import Mcp

SUPPORT = Path(__file__).parent.parent / "support"
SERVER = str(SUPPORT / "mcp_example_server.py")
EXAMPLE = (sys.executable, SERVER, "stdio")
"""A server made with the official package, which takes a second to start."""
PLAIN = (sys.executable, str(SUPPORT / "mcp_plain_server.py"))


@asynccontextmanager
async def started(command: Sequence[str], seconds: float = 30, **table: Any) -> AsyncGenerator[Mcp]:
    tools = Mcp(server={"command": list(command), **table}, name="ex", seconds=seconds)
    try:
        yield tools
    finally:
        await tools.close()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = subprocess.Popen([sys.executable, SERVER, "http"], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        with server.stdout as said:
            yield int(said.readline())
    finally:
        server.kill()
        server.wait(10)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_over_stdio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESAME", "open")
    async with started(EXAMPLE, env={"WORD": "${SESAME}, please"}, cwd=str(tmp_path)) as tools:
        offered = {tool.name: tool for tool in await tools.offer()}
        assert offered["ex_add"].description == "Add two numbers."
        assert set(offered["ex_add"].parameters["properties"]) == {"a", "b"}
        assert [name for name, tool in offered.items() if tool.repeatable] == ["ex_add", "ex_environment"]
        assert not any(tool.changes for tool in offered.values())
        assert await tools.call("ex_add", {"a": 20, "b": 22}) == "42"
        assert await tools.call("ex_environment", {"name": "WORD"}) == "open, please"
        assert await tools.call("ex_environment", {"name": "SESAME"}) == "(not set)"
        assert await tools.call("ex_where", {}) == str(tmp_path)
        picture = await tools.call("ex_picture", {})
        assert picture == "A picture:\n[image, which is not text: image/png]"
        with pytest.raises(ToolError, match="the moon is too far away"):
            await tools.call("ex_fail", {})
        assert await tools.call("ex_add", {"a": 1, "b": 1}) == "2"  # its own word ends no connection
        with pytest.raises(ToolError, match="has no tool 'ex_nope'"):
            await tools.call("ex_nope", {})
        pid = int(await tools.call("ex_process", {}))
    assert is_gone(pid)


@pytest.mark.slow
async def test_names_fit_every_provider_and_differ() -> None:
    async with started(EXAMPLE) as tools:
        names = [tool.name for tool in await tools.offer()]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
        assert "ex_dotted_name" in names
        (other,) = (name for name in names if name.startswith("ex_dotted_name_"))
        (cut,) = (name for name in names if name.startswith(f"ex_{LONG[:40]}"))
        answers = [await tools.call(name, {}) for name in ("ex_dotted_name", other, cut)]
        assert answers == ["dotted", "underscored", "long"]


@pytest.mark.slow
async def test_over_http(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "sesame")
    url = f"http://127.0.0.1:{port}/mcp"
    tools = Mcp(server={"url": url, "headers": {"Authorization": "Bearer ${WORD}"}}, name="far", seconds=30)
    try:
        assert await tools.call("far_add", {"a": 2, "b": 3}) == "5"
    finally:
        await tools.close()
        await tools.close()


async def test_a_server_that_echoes_what_it_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORD", "open sesame, please")
    env = {"A": "${WORD}", "API_KEY": "abc123def456", "MODE": "readonly mode"}
    async with started((*PLAIN, str(tmp_path / "notes")), env=env) as tools:
        said = "open sesame, please; abc123def456; YWJjMTIzZGVmNDU2; readonly mode"
        text = await tools.call("ex_note", {"text": said})
        assert text == "noted [secret masked]; [secret masked]; [secret masked]; readonly mode"


async def test_over_http_without_the_right_key(port: int) -> None:
    tools = Mcp(server={"url": f"http://127.0.0.1:{port}/mcp"}, name="far", seconds=30)
    for _ in range(2):
        with pytest.raises(ToolError) as error:
            await tools.offer()
        assert str(error.value).startswith("the MCP server far did not list its tools: ")
        assert str(error.value).endswith("\nIt said:\nHTTP 401 Unauthorized")
    await tools.close()


async def test_nobody_listens() -> None:
    tools = Mcp(server={"url": "http://127.0.0.1:9/mcp"}, name="far", seconds=10)
    for _ in range(2):
        with pytest.raises(ToolError, match=r"^the MCP server far did not list its tools: "):
            await tools.offer()
    await tools.close()


async def test_one_that_dies_in_a_call_says_why_and_is_started_anew() -> None:
    async with started(PLAIN) as tools:
        before = await tools.call("ex_process", {})
        with pytest.raises(ToolError) as error:
            await tools.call("ex_die", {})
        assert str(error.value) == ("the MCP server ex failed in ex_die: it ended, or hung up\nIt said:\nout of cheese")
        assert await tools.call("ex_process", {}) != before


async def test_one_that_was_killed_between_two_calls() -> None:
    async with started(PLAIN) as tools:
        os.kill(int(await tools.call("ex_process", {})), signal.SIGKILL)
        with pytest.raises(ToolError, match="it ended, or hung up"):
            await tools.call("ex_add", {"a": 1, "b": 1})
        assert await tools.call("ex_add", {"a": 1, "b": 1}) == "2"


@pytest.mark.slow
async def test_a_call_that_hangs(port: int) -> None:
    server = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"authorization": "Bearer sesame"}}
    tools = Mcp(server=server, name="far", seconds=2)
    with pytest.raises(ToolError, match="failed in far_hang: it did not answer within 2 seconds"):
        await tools.call("far_hang", {})
    assert await tools.call("far_add", {"a": 1, "b": 1}) == "2"
    await tools.close()


async def test_one_that_never_answers() -> None:
    async with started(("sh", "-c", "cat > /dev/null"), seconds=0.5) as tools:
        with pytest.raises(ToolError, match=r"did not list its tools: it did not answer within 0\.5 seconds"):
            await tools.offer()


async def test_one_that_ends_at_once_says_why() -> None:
    async with started(("sh", "-c", "echo 'no such database: /var/lib/example' >&2; exit 1")) as tools:
        with pytest.raises(ToolError, match=r"did not list its tools(.|\n)*no such database: /var/lib/example$"):
            await tools.offer()


async def test_a_program_that_there_is_not() -> None:
    tools = Mcp(server={"command": ["./no-such-program"]}, name="ex")
    with pytest.raises(ToolError, match=r"No such file or directory: '\./no-such-program'"):
        await tools.offer()
    await tools.close()


async def test_a_cancelled_call_leaves_no_server_behind() -> None:
    async with started(PLAIN) as tools:
        pid = int(await tools.call("ex_process", {}))
        hanging = asyncio.create_task(tools.call("ex_hang", {}))
        done, _ = await asyncio.wait({hanging}, timeout=0.1)
        assert not done
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
    assert is_gone(pid)


@pytest.mark.slow
async def test_closing_takes_a_bounded_time_while_it_still_connects() -> None:
    tools = Mcp(server={"command": ["sleep", "3600"]}, name="ex")
    connecting = asyncio.create_task(tools.offer())
    await asyncio.wait({connecting}, timeout=0.1)
    began = time.monotonic()
    await tools.close()
    assert time.monotonic() - began < 8
    with pytest.raises(ToolError):
        await connecting


async def test_closing_before_it_begins_to_connect_lets_go_of_who_waits() -> None:
    tools = Mcp(server={"command": ["sleep", "3600"]}, name="ex")
    offering = tools.offer()
    with pytest.raises(ToolError, match="it was closed while connecting"):
        async with asyncio.timeout(8):
            await asyncio.gather(offering, tools.close())


@each_row(
    ("table", "why"),
    [
        ({}, "needs either a command"),
        ({"command": ["x"], "url": "http://x"}, "needs either a command"),
        ({"command": "npx x"}, "command must be a list of strings, not 'npx x'"),
        ({"command": []}, "command must be a list of strings"),
        ({"command": ["x"], "env": {"A": 1}}, "env must be a table of strings"),
        ({"command": ["x"], "env": {"A": "${MULLIGAN_NOT_SET}"}}, "needs \\${MULLIGAN_NOT_SET}, which is not set"),
        ({"url": "ftp://x"}, "url must begin with http"),
        ({"url": "http://x", "header": {}}, "Did you mean 'headers'"),
    ],
)
def test_a_table_that_is_none(table: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        Mcp(server=table, name="ex")
