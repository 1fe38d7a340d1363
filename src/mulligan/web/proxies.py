"""Trusts the headers of known reverse proxies about the caller's address and the server's name."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from mulligan.core.errors import InvalidInput
from mulligan.web.hosts import HostPolicy


class BehindProxies:
    """An ASGI layer that applies the headers of trusted proxies: `X-Forwarded-For`, `-Proto` and `-Host`.

    It replaces the connection's own values before anything reads them. These headers from anybody else are ignored.

    The connection's own Host must be allowed, too: a browser on the proxy's machine has its address, and a page there
    may send any of these headers to a name that was made to point here (DNS rebinding).

    Args:
        proxies: addresses and networks of the proxies.
        policy: which Host headers are accepted.

    Raises:
        InvalidInput: A proxy is not an address or network.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str], policy: HostPolicy) -> None:
        self._policy = policy
        try:
            self._networks = [ip_network(one, strict=False) for one in proxies]
        except ValueError as error:
            raise InvalidInput(
                f"--trusted-proxy must be an address such as 127.0.0.1 or 10.0.0.0/8: {error}."
            ) from None
        client: Any = ProxyHeadersMiddleware
        self._app: ASGIApp = client(app, list(map(str, self._networks)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._trusts(scope):
            hosts = [value for name, value in scope["headers"] if name == b"x-forwarded-host"]
            if hosts:  # the last is what the proxy itself wrote
                own = [(name, value) for name, value in scope["headers"] if name != b"host"]
                scope = {**scope, "headers": [*own, (b"host", hosts[-1].rpartition(b",")[2].strip())]}
        await self._app(scope, receive, send)

    def _trusts(self, scope: Scope) -> bool:
        try:
            peer = ip_address(scope["client"][0])
        except (TypeError, ValueError):
            return False
        own_host = Headers(scope=scope).get("host")
        return any(peer in network for network in self._networks) and self._policy.allows_host(own_host)
