"""An MCP server for tests, made with the official package: over stdio, or over HTTP on loopback.

    python tests/support/mcp_example_server.py stdio|http

"http" prints its port and wants the header `authorization: Bearer sesame`.
"""

import os
import socket
import sys
from typing import Any

import anyio
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

LONG = "a_tool_whose_name_is_longer_than_what_the_providers_of_models_take_for_one"

server = MCPServer("example")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def environment(name: str) -> str:
    return os.environ.get(name, "(not set)")


@server.tool()
def where() -> str:
    return os.getcwd()


@server.tool()
def process() -> int:
    return os.getpid()


@server.tool()
def fail() -> str:
    raise ToolError("the moon is too far away")


@server.tool(structured_output=False)
def picture() -> list[Any]:
    return ["A picture:", Image(data=b"\x89PNG", format="png")]


@server.tool()
async def hang() -> str:
    await anyio.sleep(3600)
    return "never"


@server.tool(name="dotted.name")
def dotted() -> str:
    return "dotted"


@server.tool(name="dotted_name")
def underscored() -> str:
    return "underscored"


@server.tool(name=LONG)
def long() -> str:
    return "long"


def serve_http() -> None:
    import uvicorn

    inner: Any = server.streamable_http_app()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and (b"authorization", b"Bearer sesame") not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"who are you?"})
            return
        await inner(scope, receive, send)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="critical")).run([listening])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        serve_http()
