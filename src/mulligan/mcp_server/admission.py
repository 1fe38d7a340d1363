"""How many requests are served at once over HTTP, how large they may be and how slowly they may come."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import CallNext, ServerRequestContext
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.core.errors import InvalidInput
from mulligan.mcp_server import messages
from mulligan.mcp_server.guard import header, refusal
from mulligan.mcp_server.load import Load, Ticket, taken
from mulligan.mcp_server.tokens import bearer

STREAMS = 256
"""Event streams that may be open."""

BODY_SECONDS = 30.0
"""Until a whole body has to be here."""

HEAD_SECONDS = 0.5
"""For the beginning of a body whose length was said to be too much."""

TICKET = "mulligan.ticket"
"""Where the scope of a request holds its share of the load."""


class Admission:
    """Shared by all endpoints: what is being served, and the power to end it."""

    def __init__(self, most: int) -> None:
        if most < 1:
            raise InvalidInput(f"The concurrency must be at least 1, not {most}.")
        self.calls, self.streams = Load(most), Load(STREAMS)
        self._open: set[anyio.CancelScope] = set()
        self._asked: set[tuple[str, str, str]] = set()

    def before(self, app: ASGIApp) -> ASGIApp:
        """The application, given only requests that there is room for, with their bodies read."""
        return _Before(self, app)

    def end(self) -> None:
        """Ends all that is still open: event streams as if they were over, calls without their answer."""
        for one in list(self._open):
            one.cancel()

    async def admit(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        load = self.streams if scope["method"] == "GET" else self.calls
        if load.full():
            text = f"{load.count} requests are being served already: ask again later."
            return await refusal(503, text, retry_after="1")(scope, receive, send)
        scope[TICKET] = ticket = Ticket(load)
        answer, ended = _Answer(send), anyio.CancelScope()
        self._open.add(ended)
        try:
            with ended:
                await self._served(app, scope, receive, answer, ticket)
                served, ticket = ticket, Ticket(load)
                served.release()  # with the request's id: whoever has read the whole answer may use it again
                await answer.finish()
            if ended.cancelled_caught:
                await answer.cut_off(scope, receive)
        finally:
            self._open.discard(ended)
            ticket.release()

    async def _served(self, app: ASGIApp, scope: Scope, receive: Receive, answer: _Answer, ticket: Ticket) -> None:
        body = await _body(scope, receive, ticket)
        if isinstance(body, bytes):
            refused = self._refused(scope, body, ticket)
            await self._given(refused or app, scope, _replayed(body, receive), answer)
        elif body is not None:
            await body(scope, receive, answer.send)

    async def _given(self, app: ASGIApp, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            await app(scope, receive, answer.send)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            if not answer.complete:  # else the session ended between our answer and its taking
                raise

    def _refused(self, scope: Scope, body: Any, ticket: Ticket) -> Response | None:
        if scope["method"] != "POST":
            return None
        try:
            message = messages.read(body)
        except messages.Refused as unfit:
            return refusal(400, unfit.error or str(unfit))
        if not ticket.heavier(message.weight - len(body)):
            return _too_much()
        session = header(scope, b"mcp-session-id")
        if session is None or not isinstance(message.content, types.JSONRPCRequest):
            return None
        token = bearer(scope)  # who knows another's session learns nothing of what is asked there
        key = (token.client_id if token else "", session, str(message.content.id))  # as the SDK keeps ids apart
        if key in self._asked:
            id = message.content.id
            return refusal(400, messages.answered_with(types.INVALID_REQUEST, taken(id), id))
        self._asked.add(key)
        ticket.then(lambda: self._asked.discard(key))
        return None


async def held(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    """Middleware of the SDK's server: a call counts until it has ended, even if its client has hung up."""
    ticket = ticket_of(ctx.request)
    if ticket is None:
        return await call_next(ctx)
    ticket.hold()
    try:
        return await call_next(ctx)
    finally:
        ticket.release()


def ticket_of(request: Any) -> Ticket | None:
    """The share of the load that a request of Starlette's has."""
    return None if request is None else request.scope.get(TICKET)


class _Before:
    """An object, as Starlette takes a function for one of a request and not of ASGI."""

    def __init__(self, admission: Admission, app: ASGIApp) -> None:
        self._admission, self._app = admission, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._admission.admit(self._app, scope, receive, send)


class _Answer:
    """What was sent of an answer, so that it can be ended in good form. Its last part waits for `finish`: until then
    whatever made it may still have something to put away.
    """

    def __init__(self, send: Send) -> None:
        self._send, self._started, self._finished = send, False, False
        self._last: Message | None = None

    @property
    def complete(self) -> bool:
        return self._last is not None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._last = message
        else:
            self._started = True
            await self._send(message)

    async def finish(self) -> None:
        if self._last is not None:
            self._finished = True
            await self._send(self._last)

    async def cut_off(self, scope: Scope, receive: Receive) -> None:
        if not self._started:
            await refusal(503, "The server was stopped before this was done.")(scope, receive, self._send)
        elif not self._finished:
            await self._send(self._last or {"type": "http.response.body", "body": b"", "more_body": False})


async def _body(scope: Scope, receive: Receive, ticket: Ticket) -> bytes | Response | None:
    """The whole body; a refusal; None when the client has left."""
    declared = header(scope, b"content-length") or ""
    if declared.isdigit() and int(declared[:20]) > messages.LONGEST:
        return _too_large(await _beginning(receive))
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > messages.LONGEST:
                return _too_large(bytes(body))
            if not ticket.heavier(len(chunk)):
                return _too_much()
            body += chunk
            if not message.get("more_body", False):
                return bytes(body)
    return refusal(408, f"The body was not here after {BODY_SECONDS:.0f} seconds.", connection="close")


def _replayed(body: bytes, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _beginning(receive: Receive) -> bytes:
    """What has come of a body that is not taken, for its id."""
    with anyio.move_on_after(HEAD_SECONDS):
        return (await receive()).get("body", b"")
    return b""


def _too_large(head: bytes) -> Response:
    return refusal(413, messages.too_long(head).error or "An answer is longer than what is taken.")


def _too_much() -> Response:
    return refusal(503, "Too much is being served already: ask again later.", retry_after="1")
