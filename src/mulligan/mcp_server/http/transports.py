"""The two HTTP transports, and what they know of a request: its agent, and the state kept for its connection."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.routing import Mount, Route, Router
from starlette.types import Message, Receive, Scope, Send

from mulligan.app.service import Service
from mulligan.mcp_server import messages
from mulligan.mcp_server.client_config import PATHS
from mulligan.mcp_server.http.admission import Admission, hold_slot, slot_of
from mulligan.mcp_server.http.guard import header
from mulligan.mcp_server.inflight import PendingRequests, id_in_use
from mulligan.mcp_server.logs import log_requests
from mulligan.mcp_server.server import make_server
from mulligan.mcp_server.tokens import bearer
from mulligan.mcp_server.tool import ConnectionState

MAX_SESSIONS = 1000
"""Sessions that may be open, and connections whose state is kept."""

MAX_WEIGHT = 64_000_000
"""Characters that the states of all connections may hold together."""


class ConnectionStates:
    """The state of each connection. Over a limit, the least recently used is forgotten."""

    def __init__(self) -> None:
        self._states: OrderedDict[object, ConnectionState] = OrderedDict()

    def of(self, connection: object) -> ConnectionState:
        state = self._states.setdefault(connection, ConnectionState())
        self._states.move_to_end(connection)
        while len(self._states) > MAX_SESSIONS or (len(self._states) > 1 and self._weight > MAX_WEIGHT):
            self._states.popitem(last=False)
        return state

    def forget(self, connection: object) -> None:
        self._states.pop(connection, None)

    @property
    def _weight(self) -> int:
        return sum(state.weight for state in self._states.values())


class ByToken:
    """Binds a caller to its token's agent; to `default` if its token is bound to none."""

    def __init__(self, default: str | None, states: ConnectionStates | None = None) -> None:
        self._default, self._states = default, states or ConnectionStates()

    def bound(self, context: Any) -> str | None:
        token = bearer(context.request.scope)
        return (token.subject if token else None) or self._default


class Sessions(ByToken):
    """State for each session of the older revisions; none for the newest, which is stateless."""

    def state(self, context: Any) -> ConnectionState | None:
        session = context.request.headers.get("mcp-session-id")
        if session is None or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        return self._states.of(session)

    def forget(self, session: str | None) -> None:
        self._states.forget(session)


class NoSessions(Sessions):
    """No state, whatever id of a session a request names: another server may have given it."""

    def state(self, context: Any) -> ConnectionState | None:
        return None


IDLE_SECONDS = 30 * 60.0
"""When a session without requests ends."""


@dataclass(frozen=True)
class Endpoints:
    """What a transport serves, and how many sessions are open there."""

    router: Router
    sessions: Callable[[], int]


def streamable_site(service: Service, which: str, admission: Admission, *, keep_sessions: bool = True) -> Endpoints:
    """Streamable HTTP: one endpoint, without sessions in the newest protocol revision.

    It is served while the router's lifespan is entered.

    Args:
        service: what the tools work on.
        which: the tools, as in `select_tools`.
        admission: counts the requests in flight.
        keep_sessions: whether clients of the older revisions get a session, which only this process knows; without
            one, each of their requests stands alone, and any server of the same store may answer it (design/111).
    """
    sessions = Sessions(service.served.agent_id) if keep_sessions else NoSessions(service.served.agent_id)
    server: Server[Any] = make_server(service, which, lambda _: nullcontext(sessions))
    server.middleware += [hold_slot, log_requests]
    manager = StreamableHTTPSessionManager(
        server,
        stateless=not keep_sessions,
        max_request_body_size=messages.MAX_BYTES,
        session_idle_timeout=IDLE_SECONDS,
        max_sessions=MAX_SESSIONS,
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
    routes = [Route(f"{PATHS['http']}{slash}", endpoint=admitted) for slash in ("", "/")]
    router = Router(routes, redirect_slashes=False, lifespan=lambda _: manager.run())
    return Endpoints(router, lambda: len(manager._server_instances))  # pyright: ignore[reportPrivateUsage]


POSTS = "/messages/"
"""Where clients of the older transport post their requests."""


class OneStream(ByToken):
    """The connection of one client's stream, with state of its own."""

    def state(self, context: Any) -> ConnectionState | None:
        return self._states.of(self)


def sse_site(service: Service, which: str, admission: Admission) -> Endpoints:
    """The older transport (SSE): clients post requests, and read the answers from a stream of events."""
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

    routes = [
        Route(PATHS["sse"], endpoint=admission.before(events), methods=["GET"]),
        Mount(POSTS, app=admission.before(transport.handle_post_message)),
    ]
    return Endpoints(Router(routes, redirect_slashes=False), lambda: admission.streams.count)


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
