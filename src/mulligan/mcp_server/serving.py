"""The server itself, over any transport: lists what there is, and hands each call to its tool."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any, Protocol

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.records import Json
from mulligan.mcp_server.arguments import fitted
from mulligan.mcp_server.choice import SETS, chosen
from mulligan.mcp_server.completion import Completion
from mulligan.mcp_server.instructions import instructions
from mulligan.mcp_server.prompts import Prompts
from mulligan.mcp_server.resources import Resources
from mulligan.mcp_server.tool import Call, Link, Reply, Tool
from mulligan.text.plain import sound

log = logging.getLogger("mulligan.serve")

AGENT = {"agent_id", "agentId"}
"""What the parameter is called that names an agent."""

DEEPEST = 64
"""Levels of lists and objects that arguments may have."""


class Connections(Protocol):
    """What a transport knows of a request: which connection it came over, and whose token it bore."""

    def link(self, context: ServerRequestContext[Any, Any]) -> Link | None: ...
    def bound(self, context: ServerRequestContext[Any, Any]) -> str | None: ...


class OneConnection:
    """A transport with one connection: stdio, or one stream of SSE."""

    def __init__(self, bound: str | None = None) -> None:
        self._link, self._bound = Link(), bound

    def link(self, context: ServerRequestContext[Any, Any]) -> Link | None:
        return self._link

    def bound(self, context: ServerRequestContext[Any, Any]) -> str | None:
        return self._bound


def tools_of(service: Service, which: str) -> Sequence[Tool]:
    """The tools that this service offers, of those that are named. Raises `InvalidInput` for a name that is none."""
    tools: list[Tool] = [import_module(f"mulligan.mcp_server.tools.{file}").TOOL for file in chosen(which).values()]
    return tuple(tool for tool in tools if tool.offered(service))


def make_server(
    service: Service, which: str, lifespan: Callable[[Server[Any]], AbstractAsyncContextManager[Connections]]
) -> Server[Connections]:
    """The server of these tools. `lifespan` yields what the transport knows of its connections."""
    tools = {tool.name: tool for tool in tools_of(service, which)}
    listed = {bound: _listed(tools.values(), service, bound) for bound in (True, False)}
    resources, prompts = Resources(service), Prompts(service, which)

    async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
        connections: Connections = context.lifespan_context
        return listed[connections.bound(context) is not None]

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool, arguments = tools.get(params.name), params.arguments or {}
        if tool is None:
            return _result(_unknown(params.name, which))
        connections: Connections = context.lifespan_context
        bare = params.arguments is None
        bound, link = connections.bound(context), connections.link(context)
        call = Call(service, bound, link, _teller(context), bare, tools.keys())
        return _result(await answered(tool, arguments, call))

    server: Server[Connections] = Server(
        "mulligan",
        version=version("mulligan"),
        title="Mulligan",
        instructions=instructions(service, which),
        lifespan=lifespan,
        get_tool_input_schema=lambda name: dict(tools[name].input_schema) if name in tools else None,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_resources=resources.list,
        on_list_resource_templates=resources.templates,
        on_read_resource=resources.read,
        on_list_prompts=prompts.list,
        on_get_prompt=prompts.get,
        on_completion=Completion(service, prompts).complete,
    )
    server.middleware.clear()  # the SDK's tracing fails on a trace context that is no text, and nobody reads its spans
    return server


@asynccontextmanager
async def one_connection(bound: str | None) -> AsyncGenerator[OneConnection]:
    yield OneConnection(bound)


async def answered(tool: Tool, arguments: Mapping[str, Json], call: Call) -> Reply:
    """The tool's answer; what was wrong with the call, or went wrong in it, as an answer too."""
    try:
        arguments = fitted(arguments, tool.input_schema)
        if not shallow(arguments):
            raise InvalidInput(f"The arguments are nested more than {DEEPEST} levels deep: flatten them.")
        return await tool.call(arguments, call)
    except MulliganError as error:
        return tool.failed(str(error), arguments)
    except Exception:
        log.exception("the tool %s failed", tool.name)
        return tool.failed("Something in the server failed; its log says what.", arguments)


def shallow(value: Json, most: int = DEEPEST) -> bool:
    """Whether lists and objects are nested at most so deep; level by level, so that no depth can break it."""
    level: list[Json] = [value]
    for _ in range(most + 1):
        level = [child for one in level for child in _within(one)]
        if not level:
            return True
    return False


def _within(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()  # pyright: ignore


def _listed(tools: Iterable[Tool], service: Service, bound: bool) -> types.ListToolsResult:
    listed = [_told(tool, service.served.output_schemas, bound) for tool in tools if tool.listed(service)]
    return types.ListToolsResult(tools=listed)


def _told(tool: Tool, output_schema: bool, bound: bool) -> types.Tool:
    """bound: whether the caller is held to one agent, and so has none to name."""
    fields: Mapping[str, Json] = tool.input_schema["properties"]
    properties = {name: field for name, field in fields.items() if not (bound and name in AGENT)}
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema={**tool.input_schema, "properties": properties},
        output_schema=dict(tool.output_schema) if output_schema else None,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _result(reply: Reply) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=sound(reply.text))]
    if reply.error:
        return types.CallToolResult(content=content, is_error=True)
    written = reply.text if reply.shown is None else json.dumps(reply.data, ensure_ascii=False)
    whole = sound(written)
    data = dict(reply.data) if whole == written else json.loads(whole)
    return types.CallToolResult(content=content, structured_content=data)


def _unknown(name: str, which: str) -> Reply:
    """As the seeds' servers say it: the one in "error", the other in "status" and "message"."""
    said = f"Unknown tool: {name}"
    tools = chosen(which).keys()
    ours = {"error": said} if tools & SETS["reflexion"].keys() else {}
    theirs = {"status": "error", "message": said} if tools & SETS["memory"].keys() else {}
    return Reply({**ours, **theirs}, error=True, indent=2 if theirs else None)


def _teller(context: ServerRequestContext[Any, Any]) -> Callable[[float, float | None, str], Any]:
    async def tell(done: float, total: float | None, message: str) -> None:
        await context.session.report_progress(done, total, sound(message))

    return tell
