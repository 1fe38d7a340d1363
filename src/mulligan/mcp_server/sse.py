"""The older transport of the seed: a stream of events for the answers, and posts for what is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from starlette.routing import Mount, Route, Router
from starlette.types import Receive, Scope, Send

from mulligan.app.service import Service
from mulligan.mcp_server import messages
from mulligan.mcp_server.admission import Admission, held, ticket_of
from mulligan.mcp_server.connections import ByToken, Links
from mulligan.mcp_server.load import Calls, taken
from mulligan.mcp_server.logs import told
from mulligan.mcp_server.serving import make_server
from mulligan.mcp_server.tool import Link

ENDPOINT, POSTS = "/sse", "/messages/"


class OneStream(ByToken):
    """One client's stream: it has a memory of its own."""

    def __init__(self, otherwise: str | None, links: Links) -> None:
        super().__init__(otherwise)
        self._links = links

    def link(self, context: Any) -> Link | None:
        return self._links.of(self)


def site(service: Service, which: str, admission: Admission) -> Router:
    """The two endpoints."""
    transport, links = SseServerTransport(POSTS, max_request_body_size=messages.LONGEST), Links()

    @asynccontextmanager
    async def one_stream(_: Any) -> AsyncGenerator[OneStream]:
        stream = OneStream(service.served.agent_id, links)
        try:
            yield stream
        finally:
            links.forget(stream)

    server: Server[Any] = make_server(service, which, one_stream)
    server.middleware += [held, told]

    async def events(scope: Scope, receive: Receive, send: Send) -> None:
        async with transport.connect_sse(scope, receive, send) as (heard, said):
            counted: Any = Counted(heard, said)
            await server.run(counted, counted.answers, server.create_initialization_options())

    return Router(
        [
            Route(ENDPOINT, endpoint=admission.before(events), methods=["GET"]),
            Mount(POSTS, app=admission.before(transport.handle_post_message)),
        ],
        redirect_slashes=False,
    )


class Counted:
    """What a client asks over its stream. A request counts until its answer was taken by the stream: a client that
    reads nothing uses up the room that there is, and no more.
    """

    def __init__(self, heard: Any, said: Any) -> None:
        self._heard, self._said, self._calls = heard, said, Calls()
        self.answers = _Answers(said, self._calls)

    @property
    def last_context(self) -> Any:
        return self._heard.last_context

    async def receive(self) -> Any:
        while True:
            one = await self._heard.receive()
            if not isinstance(one, SessionMessage) or not isinstance(one.message, types.JSONRPCRequest):
                return one
            id = one.message.id
            if id not in self._calls:
                self._count(one, id)
                return one
            error = messages.answered_with(types.INVALID_REQUEST, taken(id), id)
            await self._said.send(SessionMessage(error))

    def _count(self, one: SessionMessage, id: types.RequestId) -> None:
        ticket = ticket_of(one.metadata.request_context) if isinstance(one.metadata, ServerMessageMetadata) else None
        if ticket is None or not isinstance(one.metadata, ServerMessageMetadata):
            return
        ticket.hold()
        self._calls.begin(id, ticket)
        one.metadata.on_request_unanswered = partial(self._dropped, id)

    async def _dropped(self, id: types.RequestId) -> None:
        self._calls.end(id)

    async def aclose(self) -> None:
        self._calls.end_all()
        await self._heard.aclose()

    def __aiter__(self) -> Counted:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Counted:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Answers:
    def __init__(self, said: Any, calls: Calls) -> None:
        self._said, self._calls = said, calls

    async def send(self, item: SessionMessage, /) -> None:
        await self._said.send(item)
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._calls.end(item.message.id)

    async def aclose(self) -> None:
        await self._said.aclose()

    async def __aenter__(self) -> _Answers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
