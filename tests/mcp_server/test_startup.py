"""What `mulligan serve` imports until it has listed its tools; that the rest of the SDK is still to be had; no needless wait."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest
from serving import piped

from mulligan.web.hosts import bind

NEVER = (
    *("numpy", "pydantic_ai", "xllamacpp", "onnxruntime", "rich", "openai", "anthropic", "yaml", "sqlite3"),
    *("mulligan.bank", "mulligan.store", "mulligan.models", "mulligan.sandbox"),
    *("mcp.client", "mcp.server.mcpserver"),
)


def imported(said: str) -> set[str]:
    """The modules that Python's own record of imports names."""
    lines = (line for line in said.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.slow
@pytest.mark.parametrize(
    "tools", ["all", *(pytest.param(tools, marks=pytest.mark.slow) for tools in ("reflexion", "memory"))]
)
def test_a_server_lists_its_tools_without_importing_what_does_the_work(tools: str) -> None:
    with piped("--tools", tools, env={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        server.handshake()
        assert server.ask("tools/list")["result"]["tools"]
        names = imported(server.said())
    assert names > {"mulligan.mcp_server.server", "mcp.server.lowlevel.server"}
    assert [name for name in NEVER if any(one == name or one.startswith(f"{name}.") for one in names)] == []


def ran(script: str) -> str:
    """What the script prints, in a process of its own that has imported nothing of the SDK."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.slow
def test_the_rest_of_the_sdk_is_there_when_it_is_asked_for() -> None:
    script = """
import sys
from mulligan.mcp_server.sdk import import_server
import_server()
from mcp.server.lowlevel import Server
import mcp.server.session
assert mcp.server.session.ServerSession and not hasattr(mcp.server.session, "Client")
assert not [name for name in sys.modules if name.startswith("mcp.client")]
import mcp
assert mcp.Client.__module__ == "mcp.client.client" and mcp.types.Tool
assert mcp.server.Server is Server and mcp.server.MCPServer
from mcp import *
assert ClientSession is mcp.ClientSession
try:
    mcp.nothing
except AttributeError as error:
    print(error)
"""
    assert ran(script) == "module 'mcp' has no attribute 'nothing'"


@pytest.mark.slow
def test_a_client_and_a_server_in_one_process_speak_after_it() -> None:
    script = """
import asyncio
from mulligan.mcp_server.sdk import import_server
import_server()
import mcp_types
from mcp.server.lowlevel import Server
async def listed(context, params):
    return mcp_types.ListToolsResult(tools=[mcp_types.Tool(name="echo", input_schema={"type": "object"})])
async def main():
    import mcp
    async with mcp.Client(Server("one", on_list_tools=listed)) as client:
        print([tool.name for tool in (await client.list_tools()).tools])
asyncio.run(main())
"""
    assert ran(script) == "['echo']"


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["PARTS = ('mcp.server.lowlevel', 'mcp.gone')", "PACKAGES = ('mcp', 'mcp.gone')"])
def test_an_sdk_that_has_changed_is_imported_as_any_other(broken: str) -> None:
    script = f"""
import gc, sys
from mulligan.mcp_server import sdk
sdk.{broken}
sdk.import_server()
assert gc.isenabled() and not [name for name in sys.modules if name.split(".")[0] == "mcp"]
from pydantic import BaseModel
assert "defer_build" not in BaseModel.model_config
import mcp
from mcp.server.lowlevel import Server
print(mcp.server.Server is Server, "mcp.client.client" in sys.modules)
"""
    assert ran(script) == "True True"


@pytest.mark.slow
def test_models_whose_building_was_put_off_are_built_when_they_are_used() -> None:
    script = """
from mulligan.mcp_server.sdk import import_server
import_server()
import mcp_types as types
call = types.CallToolRequestParams.model_validate({"name": "a", "arguments": {"b": 1}})
print(call.name, types.CallToolResult(content=[types.TextContent(type="text", text="t")]).model_dump_json())
"""
    assert ran(script).startswith('a {"')


async def test_what_is_sent_over_http_does_not_wait_for_an_acknowledgement() -> None:
    accepted: asyncio.Queue[int] = asyncio.Queue()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found: socket.socket = writer.get_extra_info("socket")
        await accepted.put(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    bound = bind("127.0.0.1", 0, guarded=False)
    async with asyncio.timeout(20), await asyncio.start_server(meet, sock=bound.listening):
        _, writer = await asyncio.open_connection("127.0.0.1", bound.port)
        assert await accepted.get()
        writer.close()
        await writer.wait_closed()
