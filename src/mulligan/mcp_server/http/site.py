"""The HTTP application in its layers, served by uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server.auth.handlers.metadata import ProtectedResourceMetadataHandler
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.shared.auth import ProtectedResourceMetadata
from pydantic import AnyHttpUrl
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route, Router

from mulligan.app.service import Service
from mulligan.core.operations import watched_by
from mulligan.mcp_server.client_config import PATHS
from mulligan.mcp_server.http.admission import Admission
from mulligan.mcp_server.http.guard import Guard, NeedsToken, RateLimit, RequestLog, only_http
from mulligan.mcp_server.http.metrics import CountedResponses, Metrics, MetricsPage
from mulligan.mcp_server.http.transports import Endpoints, sse_site, streamable_site
from mulligan.mcp_server.server import tools_of
from mulligan.mcp_server.tokens import Verifier
from mulligan.store import is_local
from mulligan.web.hosts import Bound, HostPolicy
from mulligan.web.identity import IdentityProvider
from mulligan.web.server import Server

if TYPE_CHECKING:
    from mulligan.mcp_server.http import Listening

log = logging.getLogger("mulligan.serve.http")

FLUSH_SECONDS = 0.2
"""How long to wait for the last answers to leave, once all calls are done."""


def _metadata(identity: IdentityProvider) -> Route:
    """The page that names the provider whose tokens this server takes (RFC 9728)."""
    said: dict[str, Any] = {
        "resource": identity.resource,
        "authorization_servers": [identity.issuer],
        "scopes_supported": list(dict.fromkeys(identity.scopes.values())) or None,
        "resource_name": "Mulligan",
    }
    handler = ProtectedResourceMetadataHandler(ProtectedResourceMetadata.model_validate(said))
    return Route(AnyHttpUrl(identity.metadata_url).path or "/", endpoint=handler.handle, methods=["GET"])


class Site:
    """The application and its server."""

    def __init__(self, service: Service, which: str, listening: Listening, bound: Bound) -> None:
        self._listening, self._bound = listening, bound
        self._url = f"{bound.url}{PATHS[listening.transport]}"
        read_only = [tool.name for tool in tools_of(service, which) if tool.definition["annotations"]["readOnlyHint"]]
        self._admission = Admission(listening.concurrency, listening.identity, read_only)
        if listening.transport == "sse":
            endpoints = sse_site(service, which, self._admission)
        else:
            keep = is_local(service.config.store) if listening.sessions is None else listening.sessions
            endpoints = streamable_site(service, which, self._admission, keep_sessions=keep)
        metrics = self._metrics(endpoints) if listening.metrics else None
        hosts = [listening.identity.host] if listening.identity else []
        self._policy = HostPolicy(bound, listening.origins, hosts)
        self._guard = Guard(self._layers(endpoints.router, service, metrics), self._policy)
        self._app, self._watched = RequestLog(self._guard), contextlib.nullcontext()
        if metrics:
            self._app, self._watched = RequestLog(CountedResponses(self._guard, metrics)), watched_by(metrics.watch)

    def _metrics(self, endpoints: Endpoints) -> Metrics:
        return Metrics(
            {
                "sessions": endpoints.sessions,
                "requests_in_flight": lambda: self._admission.calls.count,
                "event_streams": lambda: self._admission.streams.count,
            }
        )

    def _layers(self, app: Any, service: Service, metrics: Metrics | None) -> Any:
        """Innermost first: a caller without a token is counted by address before it is refused."""
        identity, guarded = self._listening.identity, self._listening.is_guarded
        if guarded:
            app = only_http(NeedsToken(app, identity), app)
        if identity:
            app = only_http(Router([_metadata(identity)], redirect_slashes=False, default=app), app)
        if metrics:
            app = MetricsPage(app, metrics, lambda: service.store.memory.queue, self._listening)
        app = RateLimit(app, self._listening.rate)
        if guarded:
            verifier = Verifier(self._listening.tokens, identity, service.served.agent_id)
            app = AuthenticationMiddleware(app, BearerAuthBackend(verifier))
        return CORSMiddleware(  # the guard refuses other origins
            app,
            allow_origin_regex=".*",
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=("Mcp-Session-Id", "Retry-After", "WWW-Authenticate"),
        )

    async def serve(self, tell: Callable[[str], object], stop: asyncio.Event | None) -> None:
        listening = self._listening
        server = Server(self._app, self._policy, listening.proxies, listening.drain, lambda: tell(self._url))
        with self._watched:
            await server.serve_until(stop, self._bound.listening, self._end)

    async def _end(self) -> None:
        """Lets the requests in flight finish, then ends what is still open."""
        log.info("stopping: %d requests are in flight", self._admission.calls.count)
        self._guard.closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._listening.drain):
                await self._admission.calls.idle()
        await asyncio.sleep(FLUSH_SECONDS)
        self._admission.end()
