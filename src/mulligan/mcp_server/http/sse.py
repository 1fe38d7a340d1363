"""The older HTTP transport (SSE): clients post requests, and read the answers from a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from mulligan.app.service import Service
from mulligan.mcp_server import messages
from mulligan.mcp_server.http.admission import Admission, hold_slot, slot_of
from mulligan.mcp_server.http.connections import ByToken, ConnectionStates
from mulligan.mcp_server.inflight import PendingRequests, id_in_use
from mulligan.mcp_server.logs import log_requests
from mulligan.mcp_server.server import make_server
from mulligan.mcp_server.tool import ConnectionState

ENDPOINT, POSTS = "/sse", "/messages/"


class OneStream(ByToken):
    """The connection of one client's stream, with state of its own."""

    def __init__(self, default: str | None, states: ConnectionStates) -> None:
        super().__init__(default)
        self._states = states

    def state(self, context: Any) -> ConnectionState | None:
        return self._states.of(self)


def site(service: Service, which: str, admission: Admission) -> Router:
    """The two endpoints."""
    transport, states = SseServerTransport(POSTS, max_request_body_size=messages.MAX_BYTES), ConnectionStates()

    @asynccontextmanager
    async def one_stream(_: Any) -> AsyncGenerator[OneStream]:
        stream = OneStream(service.served.agent_id, states)
        try:
            yield stream
        finally:
            states.forget(stream)

    server: Server[Any] = make_server(service, which, one_stream)
    server.middleware += [hold_slot, log_requests]

    async def events(scope: Scope, receive: Receive, send: Send) -> None:
        async with transport.connect_sse(scope, receive, send) as (requests, answers):
            pending = PendingRequests()
            counted: Any = CountedRequests(requests, answers, pending)
            sent: Any = CountedAnswers(answers, pending)
            await server.run(counted, sent, server.create_initialization_options())

    return Router(
        [
            Route(ENDPOINT, endpoint=admission.before(events), methods=["GET"]),
            Mount(POSTS, app=admission.before(transport.handle_post_message)),
        ],
        redirect_slashes=False,
    )


class CountedRequests(ObjectReceiveStream[Any]):
    """A client's requests. Each counts as in flight until the stream has taken its answer, so a client that does not
    read fills the room that there is, and no more.
    """

    def __init__(self, requests: Any, answers: Any, pending: PendingRequests) -> None:
        self._requests, self._answers, self._pending = requests, answers, pending

    @property
    def last_context(self) -> Any:
        return self._requests.last_context

    async def receive(self) -> Any:
        while True:
            item = await self._requests.receive()
            if not isinstance(item, SessionMessage) or not isinstance(item.message, types.JSONRPCRequest):
                return item
            id = item.message.id
            if id not in self._pending:
                self._count(item, id)
                return item
            error = messages.error_response(types.INVALID_REQUEST, id_in_use(id), id)
            await self._answers.send(SessionMessage(error))

    def _count(self, item: SessionMessage, id: types.RequestId) -> None:
        if isinstance(item.metadata, ServerMessageMetadata) and (slot := slot_of(item.metadata.request_context)):
            slot.hold()
            self._pending.begin(id, slot)
            item.metadata.on_request_unanswered = partial(self._pending.cancelled, id)

    async def aclose(self) -> None:
        self._pending.end_all()
        await self._requests.aclose()


class CountedAnswers(ObjectSendStream[SessionMessage]):
    """The answers to a client's requests, which end them."""

    def __init__(self, answers: Any, pending: PendingRequests) -> None:
        self._answers, self._pending = answers, pending

    async def send(self, item: SessionMessage) -> None:
        await self._answers.send(item)
        self._pending.sent(item.message)

    async def aclose(self) -> None:
        await self._answers.aclose()
