"""Streamable HTTP: one endpoint, with sessions in the older protocol revisions and without in the newest."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from mulligan.app.service import Service
from mulligan.mcp_server.http.admission import Admission, hold_slot
from mulligan.mcp_server.http.connections import MAX_SESSIONS, Sessions
from mulligan.mcp_server.http.guard import header
from mulligan.mcp_server.logs import log_requests
from mulligan.mcp_server.messages import MAX_BYTES
from mulligan.mcp_server.server import make_server

ENDPOINT = "/mcp"

IDLE_SECONDS = 30 * 60.0
"""When a session without requests ends."""


def site(service: Service, which: str, admission: Admission) -> Router:
    """The endpoint, served while the router's lifespan is entered."""
    sessions = Sessions(service.served.agent_id)

    @asynccontextmanager
    async def connections(_: Any) -> AsyncGenerator[Sessions]:
        yield sessions

    server: Server[Any] = make_server(service, which, connections)
    server.middleware += [hold_slot, log_requests]
    manager = StreamableHTTPSessionManager(
        server, max_request_body_size=MAX_BYTES, session_idle_timeout=IDLE_SECONDS, max_sessions=MAX_SESSIONS
    )

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        ended = False

        async def watch(message: Message) -> None:
            nonlocal ended
            ended = ended or (scope["method"] == "DELETE" and message.get("status") == 200)
            await send(message)

        await manager.handle_request(scope, receive, watch)
        if ended:
            sessions.forget(header(scope, b"mcp-session-id"))

    admitted = admission.before(endpoint)
    paths = (ENDPOINT, f"{ENDPOINT}/")
    return Router([Route(path, endpoint=admitted) for path in paths], False, lifespan=lambda _: manager.run())
