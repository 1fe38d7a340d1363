"""The server over HTTP, with Streamable HTTP or the older event streams: many clients, one process.

Starlette and uvicorn are imported when it serves, and by nothing that stdio needs. What is ours and what the SDK's:
design/013.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mulligan.app.service import Service
from mulligan.core.errors import InvalidInput
from mulligan.mcp_server.background import in_the_background
from mulligan.mcp_server.hosts import Bound, Doors, bind
from mulligan.mcp_server.signals import told_to_stop
from mulligan.mcp_server.tokens import Token, Verifier

if TYPE_CHECKING:
    from mulligan.mcp_server.admission import Admission
    from mulligan.mcp_server.guard import Door

log = logging.getLogger("mulligan.serve.http")

LAST_WORDS = 0.2
"""Seconds for the last answers to leave, once all calls are done."""

LONGEST_DRAIN = 3600.0


@dataclass(frozen=True)
class Listening:
    """How a server listens.

    transport: "http" or "sse". origins: whose pages may call, beside those of this machine. rate: requests a second for
    each token or address, 0 any number. concurrency: requests served at once. drain: seconds that calls in flight have
    when the server is told to stop.
    """

    transport: str = "http"
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: Sequence[Token] = ()
    origins: Sequence[str] = ()
    rate: float = 200.0
    concurrency: int = 64
    drain: float = 10.0


async def serve_http(
    service: Service,
    which: str,
    listening: Listening,
    tell: Callable[[str], object],
    stop: asyncio.Event | None = None,
) -> None:
    """Serves until SIGTERM, SIGINT or SIGHUP, or until `stop` is set where it is given; then takes nothing more, lets
    calls in flight end, closes the service and returns.

    tell: is given the URL once it answers. Raises `InvalidInput` for what cannot be, before anything is served.
    """
    if not 0 <= listening.drain <= LONGEST_DRAIN:
        raise InvalidInput(f"The drain must be from 0 to {LONGEST_DRAIN:.0f} seconds, not {listening.drain}.")
    bound = bind(listening.host, listening.port, guarded=bool(listening.tokens))
    try:
        async with in_the_background(service):
            await _Site(service, which, listening, bound).serve(tell, stop)
    finally:
        bound.listening.close()
        await service.close()


class _Site:
    """The application in its layers, and how it comes and goes."""

    def __init__(self, service: Service, which: str, listening: Listening, bound: Bound) -> None:
        from mulligan.mcp_server.admission import Admission

        if listening.transport == "sse":
            from mulligan.mcp_server.sse import ENDPOINT, site
        else:
            from mulligan.mcp_server.streamable import ENDPOINT, site

        self._listening, self._bound = listening, bound
        self._url = f"{bound.url}{ENDPOINT}"
        self._admission: Admission = Admission(listening.concurrency)
        self._app, self._door = self._layered(site(service, which, self._admission))

    def _layered(self, app: Any) -> tuple[Any, Door]:
        """From the inside: who bears no token is counted by address, and told so only then."""
        from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
        from starlette.middleware.authentication import AuthenticationMiddleware
        from starlette.middleware.cors import CORSMiddleware

        from mulligan.mcp_server.guard import Door, Rate, Told, only_http

        tokens = self._listening.tokens
        if tokens:
            app = only_http(RequireAuthMiddleware(app, []), app)
        app = Rate(app, self._listening.rate)
        if tokens:
            app = AuthenticationMiddleware(app, BearerAuthBackend(Verifier(tokens)))
        app = CORSMiddleware(  # for the origins that the door lets in
            app,
            allow_origin_regex=".*",
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=("Mcp-Session-Id", "Retry-After", "WWW-Authenticate"),
        )
        door = Door(app, Doors(self._bound, self._listening.origins))
        return Told(door), door

    async def serve(self, tell: Callable[[str], object], stop: asyncio.Event | None) -> None:
        server = _server(self._app, self._listening.drain)
        with told_to_stop() if stop is None else contextlib.nullcontext(stop) as told:
            serving = asyncio.create_task(server.serve([self._bound.listening]))
            watching = asyncio.create_task(self._stop_when(told, server))
            starting = asyncio.create_task(server.answers.wait())
            try:
                await asyncio.wait((starting, serving), return_when=asyncio.FIRST_COMPLETED)
                if server.answers.is_set():
                    tell(self._url)
                await serving
            finally:
                for task in (watching, starting):
                    task.cancel()

    async def _stop_when(self, told: asyncio.Event, server: Any) -> None:
        """No more requests; those in flight are answered; what is still open then is ended."""
        await told.wait()
        log.info("told to stop: %d requests are in flight", self._admission.calls.count)
        self._door.closed = server.should_exit = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._listening.drain):
                await self._admission.calls.idle()
        await asyncio.sleep(LAST_WORDS)
        self._admission.end()


def _server(app: Any, drain: float) -> Any:
    """uvicorn's server, which leaves signals to us and says when it answers."""
    import uvicorn

    from mulligan.mcp_server.patience import PatientProtocol

    class Server(uvicorn.Server):
        answers = asyncio.Event()

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            self.answers.set()

    return Server(
        uvicorn.Config(
            app,
            http=PatientProtocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=int(drain) + 5,
            h11_max_incomplete_event_size=32 * 1024,
        )
    )
