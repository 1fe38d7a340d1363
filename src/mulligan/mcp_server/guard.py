"""What stands before the endpoints over HTTP: layers of ASGI that let a request in, or say why not."""

from __future__ import annotations

import logging
import math
import re
import time
from collections import OrderedDict
from ipaddress import ip_network
from typing import Any

import mcp_types as types
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.hosts import Doors
from mulligan.mcp_server.messages import BUSY, answered_with, written
from mulligan.mcp_server.tokens import bearer

log = logging.getLogger("mulligan.serve.http")

CALLERS = 10_000
"""Callers whose rate is kept in mind, the least recent forgotten first."""


def refusal(status: int, why: str | types.JSONRPCError, **headers: str) -> Response:
    """An HTTP answer that refuses, with a JSON-RPC error for clients that look into it."""
    if isinstance(why, str):
        why = answered_with(BUSY if status in (429, 503) else types.INVALID_REQUEST, why, None)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(written(why), status, named, "application/json")


def header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def only_http(layer: ASGIApp, app: ASGIApp) -> ASGIApp:
    """The layer for requests; what else ASGI has to say, such as that the server begins, goes past it."""

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        await (layer if scope["type"] == "http" else app)(scope, receive, send)

    return either


class Told:
    """Logs each request: what, how it ended, how long it took; nothing of what was in it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not log.isEnabledFor(logging.INFO):
            return await self._app(scope, receive, send)
        began, facts = time.monotonic(), dict[str, Any](status=None, bytes=0)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                facts["status"] = message["status"]
            facts["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            token, client = bearer(scope), scope.get("client")
            path = re.sub(r"[^\w./-]", "?", scope["path"])[:80]
            facts |= {"method": scope["method"][:10], "path": path, "peer": client[0] if client else None}
            facts |= {"ms": round((time.monotonic() - began) * 1000, 1), "token": token.client_id if token else None}
            text = "{method} {path} {status} in {ms} ms".format(**facts)
            log.info(text, extra={"facts": facts})


class Door:
    """Turns away whom `Doors` do not know, and everybody once it is closed."""

    def __init__(self, app: ASGIApp, doors: Doors) -> None:
        self._app, self._doors, self.closed = app, doors, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._refusal(scope) if scope["type"] == "http" else None
        await (answer or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if self.closed:
            return refusal(503, "The server is shutting down.", retry_after="5", connection="close")
        if header(scope, b"content-length") and header(scope, b"transfer-encoding"):
            text = "Content-Length and Transfer-Encoding contradict each other: send one of the two."
            return refusal(400, text, connection="close")
        if not self._doors.host(header(scope, b"host")):
            return refusal(421, "This Host is not served here: name the server by the address that it is bound to.")
        if not self._doors.origin(header(scope, b"origin")):
            return refusal(403, "Pages of this Origin may not call here: --allow-origin lets them.")
        return None


class Rate:
    """So many requests a second from each token, or from each address where there is none; twice that in a burst."""

    def __init__(self, app: ASGIApp, rate: float) -> None:
        if not 0 <= rate < math.inf:
            raise InvalidInput(f"The rate must be 0 (no limit) or more requests a second, not {rate}.")
        self._app, self._rate, self._burst = app, rate, max(2 * rate, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait = self.wait(_caller(scope), time.monotonic()) if self._rate and scope["type"] == "http" else 0.0
        app: ASGIApp = self._app
        if wait:
            app = refusal(429, "Too many requests: ask more slowly.", retry_after=str(math.ceil(wait)))
        await app(scope, receive, send)

    def wait(self, caller: str, now: float) -> float:
        """Seconds until this caller may ask; 0 takes one of its requests."""
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        self._left[caller] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > CALLERS:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._rate


def _caller(scope: Scope) -> str:
    """The token, or the peer; of the addresses of IPv6 one network counts as one peer."""
    if token := bearer(scope):
        return token.client_id
    host = scope["client"][0] if scope.get("client") else ""
    return str(ip_network((host.partition("%")[0], 64), strict=False)) if ":" in host else host
