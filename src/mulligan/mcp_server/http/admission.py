"""Admits HTTP requests: limits how many are served at once, their size, and the time that a body takes to arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import CallNext, ServerRequestContext
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.core.errors import InvalidInput
from mulligan.mcp_server import messages
from mulligan.mcp_server.http.guard import header, refusal
from mulligan.mcp_server.inflight import InFlight, Slot, id_in_use
from mulligan.mcp_server.tokens import bearer, may
from mulligan.web.identity import IdentityProvider

MAX_STREAMS = 256
"""Event streams that may be open."""

BODY_SECONDS = 30.0
"""How long a whole body may take to arrive."""

HEAD_SECONDS = 0.5
"""How long to wait for the first bytes of a body that is declared too large: they may hold its id."""

FOR_ANY_TOKEN = {"initialize", "ping", "server/discover"}
"""Requests that need no scope: a client learns by them what there is."""
SLOT = "mulligan.slot"
"""The key of a request's slot in its ASGI scope."""


class Admission:
    """Shared by all endpoints: what is being served, and the means to end it.

    Args:
        concurrency: requests served at once.
        identity: whose tokens need a scope for what they do.
        read_only: the names of the tools that change nothing.
    """

    def __init__(
        self, concurrency: int, identity: IdentityProvider | None = None, read_only: Collection[str] = ()
    ) -> None:
        if concurrency < 1:
            raise InvalidInput(f"The concurrency must be at least 1, not {concurrency}.")
        self.calls, self.streams = InFlight(concurrency), InFlight(MAX_STREAMS)
        self._open: set[anyio.CancelScope] = set()
        self._ids: set[tuple[str, str, str]] = set()
        self._identity, self._read_only = identity, read_only

    def before(self, app: ASGIApp) -> ASGIApp:
        """The application, called only with admitted requests, their bodies read."""
        return _Admitted(self, app)

    def end(self) -> None:
        """Ends all that is open: event streams in good form, calls without their answer."""
        for scope in list(self._open):
            scope.cancel()

    async def admit(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        requests = self.streams if scope["method"] == "GET" or _listens(scope) else self.calls
        if requests.full():
            text = f"{requests.count} requests are being served already: try again later."
            return await refusal(503, text, retry_after="1")(scope, receive, send)
        scope[SLOT] = slot = Slot(requests)
        response, ended = _Response(send), anyio.CancelScope()
        self._open.add(ended)
        try:
            with ended:
                await self._serve(app, scope, receive, response, slot)
                served, slot = slot, Slot(requests)
                served.release()  # with the request's id: a client that has read the whole answer may reuse it
                await response.finish()
            if ended.cancelled_caught:
                await response.cut_off(scope, receive)
        finally:
            self._open.discard(ended)
            slot.release()

    async def _serve(self, app: ASGIApp, scope: Scope, receive: Receive, response: _Response, slot: Slot) -> None:
        body = await _read_body(scope, receive, slot)
        if body is None:
            return
        if isinstance(body, bytes):
            app = self._refuse(scope, body, slot) or app
            receive = _replay(body, receive)
        else:
            app = body
        try:
            await app(scope, receive, response.send)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            if not response.complete:  # else the session ended after it answered
                raise

    def _refuse(self, scope: Scope, body: bytes, slot: Slot) -> Response | None:
        if scope["method"] != "POST":
            return None
        try:
            message = messages.parse(body)
        except messages.Refused as refused:
            return refusal(400, refused.error or str(refused))
        if not slot.grow(message.weight - len(body)):
            return _no_memory()
        if not isinstance(message.content, types.JSONRPCRequest):
            return None
        if _listens(scope) and message.content.method != messages.LISTEN:
            text = f"The header Mcp-Method says {messages.LISTEN}, but the body does not."
            return refusal(400, messages.error_response(types.INVALID_REQUEST, text, message.content.id))
        if denied := self._denied(scope, message.content):
            return denied
        if (session := header(scope, b"mcp-session-id")) is None:
            return None
        id, token = message.content.id, bearer(scope)
        key = (token.client_id if token else "", session, str(id))  # by token, so nobody probes another's session
        if key in self._ids:
            return refusal(400, messages.error_response(types.INVALID_REQUEST, id_in_use(id), id))
        self._ids.add(key)
        slot.on_free(lambda: self._ids.discard(key))
        return None

    def _denied(self, scope: Scope, request: types.JSONRPCRequest) -> Response | None:
        """A refusal where the caller's token lacks the scope for this request."""
        if self._identity is None or request.method in FOR_ANY_TOKEN:
            return None
        calls = request.method == "tools/call" and (request.params or {}).get("name") not in self._read_only
        action = "write" if calls or request.method in ("tasks/update", "tasks/cancel") else "read"
        if may(scope, self._identity, action):
            return None
        reason = f"The token lacks the scope {self._identity.scopes[action]}."
        challenge = self._identity.challenge("insufficient_scope", reason, action)
        error = messages.error_response(types.INVALID_REQUEST, reason, request.id)
        return refusal(403, error, www_authenticate=challenge)


def _listens(scope: Scope) -> bool:
    return header(scope, b"mcp-method") == messages.LISTEN


async def hold_slot(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> Any:
    """Middleware of the SDK's server: a call is in flight until it has ended, even if its client has hung up.

    In a session it has ended when its task has, which writes the answer: one that takes the id before would get it.
    """
    request = ctx.request
    slot = slot_of(request)
    if request is None or slot is None:
        return await call_next(ctx)
    slot.hold()
    task = asyncio.current_task()
    if task and header(request.scope, b"mcp-session-id"):
        task.add_done_callback(lambda _: slot.release())
        return await call_next(ctx)
    try:
        return await call_next(ctx)
    finally:
        slot.release()


def slot_of(request: Any) -> Slot | None:
    """The slot of a Starlette request."""
    return None if request is None else request.scope.get(SLOT)


class _Admitted:
    """An ASGI application. It is an object, as Starlette takes a function for an endpoint with one argument."""

    def __init__(self, admission: Admission, app: ASGIApp) -> None:
        self._admission, self._app = admission, app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._admission.admit(self._app, scope, receive, send)


class _Response:
    """Tracks what was sent of a response, so that it can be ended properly. Its last part waits for `finish`, because
    the application may still have something to clean up.
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


async def _read_body(scope: Scope, receive: Receive, slot: Slot) -> bytes | Response | None:
    """The whole body; a refusal; None if the client has left."""
    declared = header(scope, b"content-length") or ""
    if declared.isdigit() and int(declared[:20]) > messages.MAX_BYTES:
        head = b""
        with anyio.move_on_after(HEAD_SECONDS):
            head = (await receive()).get("body", b"")
        return _too_large(head)
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            chunk = message.get("body", b"")
            if len(body) + len(chunk) > messages.MAX_BYTES:
                return _too_large(bytes(body))
            if not slot.grow(len(chunk)):
                return _no_memory()
            body += chunk
            if not message.get("more_body", False):
                return bytes(body)
    return refusal(408, f"The body did not arrive within {BODY_SECONDS:.0f} seconds.", connection="close")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read already, then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _too_large(head: bytes) -> Response:
    return refusal(413, messages.too_long(head).error or "The body is too large.")


def _no_memory() -> Response:
    return refusal(503, "The requests being served use too much memory: try again later.", retry_after="1")
