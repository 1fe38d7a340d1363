"""ASGI layers before the endpoints: log requests, refuse unknown hosts and origins, limit the rate of each caller."""

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
from mulligan.mcp_server.messages import BUSY, error_response, serialize
from mulligan.mcp_server.tokens import bearer
from mulligan.web.hosts import HostPolicy
from mulligan.web.identity import IdentityProvider

log = logging.getLogger("mulligan.serve.http")

MAX_CALLERS = 10_000
"""Callers whose rate is remembered; beyond that the least recent are forgotten."""


def refusal(status: int, reason: str | types.JSONRPCError, **headers: str) -> Response:
    """An HTTP response that refuses, with a JSON-RPC error as its body."""
    if isinstance(reason, str):
        reason = error_response(BUSY if status in (429, 503) else types.INVALID_REQUEST, reason, None)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(serialize(reason), status, named, "application/json")


def header(scope: Scope, name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), None)


def only_http(layer: ASGIApp, app: ASGIApp) -> ASGIApp:
    """Applies the layer to requests; other ASGI events, such as the server's start, bypass it."""

    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        await (layer if scope["type"] == "http" else app)(scope, receive, send)

    return either


class RequestLog:
    """Logs each request: method, path, status, duration; never its contents."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not log.isEnabledFor(logging.INFO):
            return await self._app(scope, receive, send)
        start, facts = time.monotonic(), dict[str, Any](status=None, bytes=0)

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                facts["status"] = message["status"]
            facts["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            token, client = bearer(scope), scope.get("client")
            path = re.sub(r"[^\w./-]", "?", scope["path"])[:80]
            facts |= {
                "event": "request",
                "method": scope["method"][:10],
                "path": path,
                "peer": client[0] if client else None,
            }
            facts |= {"ms": round((time.monotonic() - start) * 1000, 1), "token": token.client_id if token else None}
            text = "{method} {path} {status} in {ms} ms".format(**facts)
            log.info(text, extra={"facts": facts})


class Guard:
    """Refuses requests that `HostPolicy` does not allow, and all requests once it is closed."""

    def __init__(self, app: ASGIApp, policy: HostPolicy) -> None:
        self._app, self._policy, self.closed = app, policy, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = self._refusal(scope) if scope["type"] == "http" else None
        await (response or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        if self.closed:
            return refusal(503, "The server is shutting down.", retry_after="5", connection="close")
        if header(scope, b"content-length") and header(scope, b"transfer-encoding"):
            text = "Content-Length and Transfer-Encoding contradict each other: send one of the two."
            return refusal(400, text, connection="close")
        if not self._policy.allows_host(header(scope, b"host")):
            return refusal(421, "This Host is not served here: use the address that the server is bound to.")
        if not self._policy.allows_origin(header(scope, b"origin")):
            return refusal(
                403, "Web pages from this origin may not call this server. To permit them, use --allow-origin."
            )
        return None


class NeedsToken:
    """Refuses requests without a valid token, and says where to get one."""

    def __init__(self, app: ASGIApp, identity: IdentityProvider | None) -> None:
        reason = "A valid token is required: Authorization: Bearer TOKEN."
        challenge = identity.challenge("invalid_token", reason, "read") if identity else 'Bearer error="invalid_token"'
        self._app, self._refusal = app, refusal(401, reason, www_authenticate=challenge)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app: ASGIApp = self._app if bearer(scope) else self._refusal
        await app(scope, receive, send)


class RateLimit:
    """Allows each token, or each address where there is none, `rate` requests a second, and twice that in a burst."""

    def __init__(self, app: ASGIApp, rate: float) -> None:
        if not 0 <= rate < math.inf:
            raise InvalidInput(f"The rate must be at least 0 requests per second (0: no limit), not {rate}.")
        self._app, self._rate, self._burst = app, rate, max(2 * rate, 1.0)
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait = self.wait(_caller(scope), time.monotonic()) if self._rate and scope["type"] == "http" else 0.0
        app: ASGIApp = self._app
        if wait:
            app = refusal(429, "Too many requests: send fewer per second.", retry_after=str(math.ceil(wait)))
        await app(scope, receive, send)

    def wait(self, caller: str, now: float) -> float:
        """Seconds until this caller may send a request; 0: now, and one is counted."""
        left, at = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        self._left[caller] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._rate


def _caller(scope: Scope) -> str:
    """The token's name, else the address; an IPv6 network counts as one address."""
    if token := bearer(scope):
        return token.client_id
    host = scope["client"][0] if scope.get("client") else ""
    return str(ip_network((host.partition("%")[0], 64), strict=False)) if ":" in host else host
