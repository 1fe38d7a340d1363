"""The MCP server for any transport: lists tools, resources and prompts, and runs the tools that are called."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import mcp_types as types
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput, MulliganError
from mulligan.core.operations import acting_as, operation
from mulligan.core.records import Json
from mulligan.mcp_server.messages import LISTEN
from mulligan.mcp_server.prompt_texts import instructions
from mulligan.mcp_server.prompts import Prompts
from mulligan.mcp_server.tasks import EXTENSION, BackgroundTasks, TaskParams, declares_tasks
from mulligan.mcp_server.tokens import bearer
from mulligan.mcp_server.tool import Call, ConnectionState, NeedsPerson, Reply, Tool, coerce
from mulligan.mcp_server.tools import SETS, select_tools
from mulligan.text.arguments import renamed
from mulligan.text.plain import encodable

if TYPE_CHECKING:
    from mulligan.mcp_server.resources import Resources

log = logging.getLogger("mulligan.serve")

AGENT_PARAMETERS = {"agent_id", "agentId"}

MAX_DEPTH = 64
"""Levels of lists and objects that arguments may have."""


STABLE = 300_000
"""Milliseconds for which a client may cache what does not change while this process lives."""

CACHE_HINTS: Mapping[CacheableMethod, CacheHint] = {
    "server/discover": CacheHint(STABLE, "public"),
    "resources/templates/list": CacheHint(STABLE, "public"),
    "tools/list": CacheHint(STABLE, "private"),
    "prompts/list": CacheHint(STABLE, "private"),
    "resources/list": CacheHint(0, "private"),
    "resources/read": CacheHint(0, "private"),
}
"""Tools and prompts depend on whether the caller is bound to an agent. Resources belong to an agent, and change."""

TRACE = ("traceparent", "tracestate")
"""The keys of `_meta` that carry a trace context (W3C, SEP-414)."""


class Connections(Protocol):
    """What a transport knows of a request: the state kept for its connection, and the agent it is bound to."""

    def state(self, context: ServerRequestContext[Any, Any]) -> ConnectionState | None: ...
    def bound(self, context: ServerRequestContext[Any, Any]) -> str | None: ...


class OneConnection:
    """The `Connections` of a transport that has only one, such as stdio."""

    def __init__(self, bound: str | None) -> None:
        self._state, self._bound = ConnectionState(), bound

    def state(self, context: ServerRequestContext[Any, Any]) -> ConnectionState | None:
        return self._state

    def bound(self, context: ServerRequestContext[Any, Any]) -> str | None:
        return self._bound


@asynccontextmanager
async def one_connection(bound: str | None) -> AsyncGenerator[OneConnection]:
    yield OneConnection(bound)


def tools_of(service: Service, which: str) -> Sequence[Tool]:
    """The selected tools that this service offers. Raises `InvalidInput` for an unknown name."""
    files = (name.replace("-", "_") for name in select_tools(which))
    tools: list[Tool] = [import_module(f"mulligan.mcp_server.tools.{file}").TOOL for file in files]
    return tuple(tool for tool in tools if tool.offered(service))


def make_server(
    service: Service, which: str, lifespan: Callable[[Server[Any]], AbstractAsyncContextManager[Connections]]
) -> Server[Connections]:
    """An MCP server with these tools.

    Args:
        service: what the tools work on.
        which: the tools, as in `select_tools`.
        lifespan: yields what the transport knows of its connections.
    """
    tools = {tool.name: tool for tool in tools_of(service, which)}
    listed = {bound: _list_tools(tools.values(), service, bound) for bound in (True, False)}
    prompts, tasks = Prompts(service, which), BackgroundTasks(service, _result)

    async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
        connections: Connections = context.lifespan_context
        return listed[connections.bound(context) is not None]

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
        tool, arguments = tools.get(params.name), params.arguments or {}
        if tool is None:
            return _result(_unknown_tool(params.name, which))
        connections: Connections = context.lifespan_context
        bare = params.arguments is None
        bound, state = connections.bound(context), connections.state(context)
        call = Call(service, bound, state, _progress(context), bare, tools.keys())
        if asks_people(context):
            call = replace(call, decisions=_decisions(params.input_responses), request_state=params.request_state or "")
        token = bearer(context.request.scope) if context.request else None
        with acting_as(f"mcp {token.client_id}" if token else "mcp"):
            try:
                if not (service.thinks and declares_tasks(context)):
                    return _result(await run_tool(tool, arguments, call))
                answer = await tasks.call(call, partial(run_tool, tool, arguments))
            except NeedsPerson as needed:
                return _input_required(needed)
        return _result(answer) if isinstance(answer, Reply) else answer

    @cache
    def reader() -> Resources:
        """Imported when a client first reads, because it imports much of the store and the bank."""
        from mulligan.mcp_server.resources import Resources

        return Resources(service, prompts)

    server = TaskServer(
        "mulligan",
        version=version("mulligan"),
        title="Mulligan",
        instructions=instructions(service, which),
        cache_hints=CACHE_HINTS,
        lifespan=lifespan,
        get_tool_input_schema=lambda name: dict(tools[name].input_schema) if name in tools else None,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
        on_list_resources=lambda context, params: reader().list(context, params),
        on_list_resource_templates=lambda context, params: reader().templates(context, params),
        on_read_resource=lambda context, params: reader().read(context, params),
        on_list_prompts=prompts.list,
        on_get_prompt=prompts.get,
        on_completion=lambda context, params: reader().complete(context, params),
    )
    if service.thinks:
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, tasks.get)
        server.add_request_handler("tasks/update", TaskParams, tasks.update)
        server.add_request_handler("tasks/cancel", TaskParams, tasks.cancel)
        server.add_request_handler(LISTEN, types.SubscriptionsListenRequestParams, tasks.listen)
    server.middleware[:] = [in_client_trace]  # in place of the SDK's tracing, whose spans would double ours
    if "review_lessons" in tools:  # served only over stdio, so no other process has to read the state
        from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

        server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name))
    return server


class TaskServer(Server[Connections]):
    """The SDK's server, which does not announce subscriptions to changes of lists: clients can only listen to tasks."""

    def get_capabilities(
        self, *args: Any, protocol_version: str | None = None, **kwargs: Any
    ) -> types.ServerCapabilities:
        return super().get_capabilities(*args, **kwargs)


def asks_people(context: ServerRequestContext[Any, Any]) -> bool:
    """Whether the client can put a question to a person and call again with the answer (SEP-2322)."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return False
    return context.session.check_client_capability(
        types.ClientCapabilities(elicitation=types.ElicitationCapability(form=types.FormElicitationCapability()))
    )


def _decisions(responses: types.InputResponses | None) -> Mapping[str, bool]:
    """The answers of a person who accepted the form. A person who declined or left it has decided nothing."""
    decisions: dict[str, bool] = {}
    for key, response in (responses or {}).items():
        if isinstance(response, types.ElicitResult) and response.action == "accept":
            answer = (response.content or {}).get(ANSWER)
            if isinstance(answer, bool):
                decisions[key] = answer
    return decisions


ANSWER = "yes"
"""The field of the form that a person fills in."""


def _input_required(needed: NeedsPerson) -> types.InputRequiredResult:
    schema = {"type": "object", "properties": {ANSWER: {"type": "boolean", "title": "Yes"}}, "required": [ANSWER]}
    forms = {
        key: types.ElicitRequest(
            params=types.ElicitRequestFormParams(message=encodable(question), requested_schema=schema)
        )
        for key, question in needed.questions.items()
    }
    return types.InputRequiredResult(input_requests={**forms}, request_state=needed.state)


async def in_client_trace(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    """Middleware that makes the client's span the parent of the spans of a request."""
    meta: Mapping[str, Any] = ctx.meta or {}
    carrier = {name: meta[name] for name in TRACE if isinstance(meta.get(name), str)}
    if "traceparent" not in carrier:
        return await call_next(ctx)
    from opentelemetry.context import attach, detach
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    token = attach(TraceContextTextMapPropagator().extract(carrier))
    try:
        return await call_next(ctx)
    finally:
        detach(token)


async def run_tool(tool: Tool, arguments: Mapping[str, Json], call: Call) -> Reply:
    """Runs the tool and returns its answer. Errors become answers as well."""
    with operation("call", tool.name, {"result": "cancelled"}) as done:
        try:
            arguments = coerce(arguments, tool.input_schema)
            if not shallow(arguments):
                raise InvalidInput(f"The arguments are nested more than {MAX_DEPTH} levels deep: flatten them.")
            if not tool.input_schema.get("additionalProperties"):
                arguments = renamed(arguments, tool.input_schema["properties"], tool.name)
            reply = await _within_quota(tool, arguments, call)
            done.facts["result"] = "refused" if reply.error else "answered"
        except MulliganError as error:
            done.facts["result"], done.error = "refused", type(error).__name__
            reply = tool.failed(str(error), arguments)
        except NeedsPerson:
            done.facts["result"] = "answered"
            raise
        except Exception as error:
            done.facts["result"], done.error = "failed", type(error).__name__
            log.exception("the tool %s failed", tool.name)
            reply = tool.failed("The server failed; see its log.", arguments)
        return reply


async def _within_quota(tool: Tool, arguments: Mapping[str, Json], call: Call) -> Reply:
    """Calls the tool. Raises `QuotaExceeded` if the agent has used up its quota."""
    if (quotas := call.service.quotas) is None:
        return await tool.call(arguments, call)
    named = next((arguments[name] for name in AGENT_PARAMETERS if arguments.get(name)), None)
    async with quotas.call(call.agent(named) or ""):
        return await tool.call(arguments, call)


def shallow(value: Json, depth: int = MAX_DEPTH) -> bool:
    """Whether lists and objects are nested at most this deep. It goes level by level, so no depth fills the stack."""
    level: list[Json] = [value]
    for _ in range(depth + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return True
    return False


def _children(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()  # pyright: ignore


def _list_tools(tools: Iterable[Tool], service: Service, bound: bool) -> types.ListToolsResult:
    output = service.served.output_schemas
    return types.ListToolsResult(tools=[_describe(tool, output, bound) for tool in tools if tool.listed(service)])


def _describe(tool: Tool, output_schema: bool, bound: bool) -> types.Tool:
    """The tool as clients see it. If the caller is bound to an agent, it has no parameters that name one."""
    fields: Mapping[str, Json] = tool.input_schema["properties"]
    properties = {name: field for name, field in fields.items() if not (bound and name in AGENT_PARAMETERS)}
    schemas: dict[str, Json] = {"inputSchema": {**tool.input_schema, "properties": properties}}
    if not output_schema:
        schemas["outputSchema"] = None
    return types.Tool.model_validate({**tool.definition, **schemas})


def _result(reply: Reply) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=encodable(reply.text))]
    if reply.error:
        return types.CallToolResult(content=content, is_error=True)
    text = reply.text if reply.shown is None else json.dumps(reply.data, ensure_ascii=False)
    clean = encodable(text)
    data = dict(reply.data) if clean == text else json.loads(clean)
    return types.CallToolResult(content=content, structured_content=data)


def _unknown_tool(name: str, which: str) -> Reply:
    """The error for an unknown tool, in the formats of both sets: one has "error", the other "status" and "message"."""
    message = f"Unknown tool: {name}"
    tools = set(select_tools(which))
    reflexion = {"error": message} if tools & set(SETS["reflexion"]) else {}
    memory = {"status": "error", "message": message} if tools & {*SETS["memory"], *SETS["scaling"]} else {}
    return Reply({**reflexion, **memory}, error=True, indent=2 if memory else None)


def _progress(context: ServerRequestContext[Any, Any]) -> Callable[[float, float | None, str], Any]:
    async def report(done: float, total: float | None, message: str) -> None:
        await context.session.report_progress(done, total, encodable(message))

    return report
