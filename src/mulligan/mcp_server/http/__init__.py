"""Serves many clients from one process, over Streamable HTTP or the older event streams (SSE)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.core.extras import require
from mulligan.mcp_server.lifecycle import background_learning
from mulligan.mcp_server.tools import SETS, select_tools
from mulligan.web.hosts import bind
from mulligan.web.identity import IdentityProvider
from mulligan.web.tokens import Token

MAX_DRAIN = 3600.0


@dataclass(frozen=True)
class Listening:
    """How a server listens.

    Attributes:
        transport: "http" or "sse".
        host: the address to bind to.
        port: the port; 0 takes a free one.
        tokens: the tokens that callers may bear; none: anybody on this machine may call.
        identity: whose access tokens callers may bear, too.
        origins: web pages that may call, besides those of this machine.
        proxies: addresses of reverse proxies that are believed when they say who calls.
        rate: requests a second for each token or address; 0: any number.
        concurrency: requests served at once.
        drain: seconds that calls in flight may take once the server is told to stop.
        metrics: whether to count and to answer GET /metrics.
        metrics_token: reads metrics, and nothing else.
        sessions: whether clients of the older revisions get sessions over "http"; None: unless servers on other
            machines may share the store.
    """

    transport: str = "http"
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Sequence[Token] = ()
    identity: IdentityProvider | None = None
    origins: Sequence[str] = ()
    proxies: Sequence[str] = ()
    rate: float = 200.0
    concurrency: int = 64
    drain: float = 10.0
    metrics: bool = False
    metrics_token: Token | None = None
    sessions: bool | None = None

    @property
    def is_guarded(self) -> bool:
        """Whether callers need a token."""
        return bool(self.tokens) or self.identity is not None


async def serve_http(
    service: Service,
    which: str,
    listening: Listening,
    tell: Callable[[str], object],
    stop: asyncio.Event | None = None,
) -> None:
    """Serves until SIGTERM, SIGINT or SIGHUP, or until `stop` is set; then lets calls in flight finish.

    Args:
        service: what the tools work on; closed at the end.
        which: the tools to serve, as in `select_tools`.
        listening: how to listen.
        tell: called with the URL once the server answers.
        stop: ends the server when it is set; signals are then left alone.

    Raises:
        InvalidInput: a setting is invalid, or the port is taken; nothing was served.
    """
    if not 0 <= listening.drain <= MAX_DRAIN:
        raise InvalidInput(f"The drain must be from 0 to {MAX_DRAIN:.0f} seconds, not {listening.drain}.")
    local = {name: kind for kind in ("hooks", "goals") for name in SETS[kind]}
    if tool := next((name for name in local if name in select_tools(which)), ""):
        # one reads what the caller names, and any project's bank; one runs a command
        raise InvalidInput(f"The tool `{tool}` is served only over stdio: remove `{local[tool]}` from --tools.")
    if listening.metrics:
        require("Metrics need prometheus-client", "prometheus_client", "serve", distribution="prometheus-client")
    bound = bind(listening.host, listening.port, guarded=listening.is_guarded)
    try:
        from mulligan.mcp_server.http.site import Site  # starlette, uvicorn

        async with background_learning(service):
            await Site(service, which, listening, bound).serve(tell, stop)
    finally:
        bound.listening.close()
        await service.close()
