"""For servers in front of a bank: the service, the HTTP server, tokens, allowed hosts, and proxies.

    from mulligan.serving import Server, Service

See docs/python.md. Each name is imported when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from mulligan.app.service import ServerOptions, Service
    from mulligan.web.hosts import HostPolicy, bind
    from mulligan.web.server import Server
    from mulligan.web.tokens import Token

_HOMES = {
    "app.service": "ServerOptions Service",
    "web.hosts": "HostPolicy bind",
    "web.server": "Server",
    "web.tokens": "Token",
}

__all__ = [
    "HostPolicy",
    "Server",
    "ServerOptions",
    "Service",
    "Token",
    "bind",
]


def __getattr__(name: str) -> Any:
    from mulligan.core.lazy import lookup

    return lookup(__name__, _HOMES, name)
