"""The smallest server that the SDK allows: lowlevel, over stdio, one trivial tool. Mulligan's is compared with it."""

import asyncio
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="echo", input_schema={"type": "object"}, output_schema={"type": "object"})


async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[TOOL])


async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    text = types.TextContent(type="text", text=str(params.arguments))
    return types.CallToolResult(content=[text], structured_content=params.arguments)


async def main() -> None:
    server: Server[Any] = Server("bare", on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
