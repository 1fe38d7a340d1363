"""Streamable HTTP: one endpoint, with the sessions of the older revisions and without those of the newest."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.routing import Route, Router
from starlette.types import Message, Receive, Scope, Send

from mulligan.app.service import Service
from mulligan.mcp_server.admission import Admission, held
from mulligan.mcp_server.connections import SESSIONS, Sessions
from mulligan.mcp_server.guard import header
from mulligan.mcp_server.logs import told
from mulligan.mcp_server.messages import LONGEST
from mulligan.mcp_server.serving import make_server

ENDPOINT = "/mcp"

IDLE_SECONDS = 30 * 60.0
"""Until a session that nothing is asked in ends."""


def site(service: Service, which: str, admission: Admission) -> Router:
    """The endpoint, served while the router's lifespan is entered."""
    sessions = Sessions(service.served.agent_id)

    @asynccontextmanager
    async def connections(_: Any) -> AsyncGenerator[Sessions]:
        yield sessions

    server: Server[Any] = make_server(service, which, connections)
    server.middleware += [held, told]
    manager = StreamableHTTPSessionManager(
        server, max_request_body_size=LONGEST, session_idle_timeout=IDLE_SECONDS, max_sessions=SESSIONS
    )

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        ended = False

        async def watched(message: Message) -> None:
            nonlocal ended
            ended = ended or (scope["method"] == "DELETE" and message.get("status") == 200)
            await send(message)

        await manager.handle_request(scope, receive, watched)
        if ended:
            sessions.forget(header(scope, b"mcp-session-id"))

    served = admission.before(endpoint)
    paths = (ENDPOINT, f"{ENDPOINT}/")
    return Router([Route(path, endpoint=served) for path in paths], False, lifespan=lambda _: manager.run())
