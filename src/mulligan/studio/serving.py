"""Serves the studio until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from mulligan.plugins import InvalidInput
from mulligan.serving import HostPolicy, Server, Service, Token, bind
from mulligan.studio.application import application
from mulligan.studio.live import Listeners

DRAIN_SECONDS = 2.0
"""How long open requests may take to finish when the server stops."""


async def serve_studio(
    service: Service,
    tell: Callable[[str], object],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    write: bool = False,
    tokens: Sequence[Token] = (),
    origins: Sequence[str] = (),
    proxies: Sequence[str] = (),
    stop: asyncio.Event | None = None,
) -> None:
    """Serves until SIGTERM, SIGINT or SIGHUP, or until `stop` is set.

    Args:
        service: the store and the banks, of the agent that it was started for. It is closed at the end.
        tell: called with the URL once the server answers.
        port: 0 takes a free one.
        write: whether visitors may change anything.
        tokens: visitors must send one of them.
        origins: other addresses that browsers use for the studio, such as a proxy's.
        proxies: addresses of reverse proxies whose X-Forwarded-Host is trusted.
        stop: ends the server when it is set. Signals are then not handled.

    Raises:
        InvalidInput: a token belongs to an agent that is not the only one served, the host is unknown, the port is
            taken, or other machines could visit without a token.
    """
    for token in tokens:
        if token.agent_id != service.served.agent_id:
            raise InvalidInput(
                f"MULLIGAN_TOKEN: {token.name} is bound to the agent {token.agent_id!r}, but this studio is not "
                f"limited to that agent. Start the studio with --bank {token.agent_id}, or remove the agent from the "
                "token."
            )
    bound = bind(host, port, guarded=bool(tokens))
    try:
        listeners = Listeners()
        cookie = f"mulligan_studio_{bound.port}"
        policy = HostPolicy(bound, origins)
        app = application(policy, service=service, write=write, tokens=tokens, cookie=cookie, listeners=listeners)
        server = Server(app, policy, proxies, DRAIN_SECONDS, lambda: tell(bound.url))
        await server.serve_until(stop, bound.listening, listeners.close)
    finally:
        bound.listening.close()
