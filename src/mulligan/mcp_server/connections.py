"""What HTTP knows of a request: whose token it bears, and what is kept for its connection."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mulligan.mcp_server.tokens import bearer
from mulligan.mcp_server.tool import Link

SESSIONS = 1000
"""Sessions that may be open, and that are kept in mind."""

KEPT = 64_000_000
"""Characters that all connections of a server remember together."""


class Links:
    """What is kept for each connection. Where it is too much, the least used one is forgotten."""

    def __init__(self) -> None:
        self._links: OrderedDict[object, Link] = OrderedDict()

    def of(self, connection: object) -> Link:
        link = self._links.setdefault(connection, Link())
        self._links.move_to_end(connection)
        while len(self._links) > SESSIONS or (len(self._links) > 1 and self._weight > KEPT):
            self._links.popitem(last=False)
        return link

    def forget(self, connection: object) -> None:
        """One that has ended."""
        self._links.pop(connection, None)

    @property
    def _weight(self) -> int:
        return sum(link.weight for link in self._links.values())


class ByToken:
    """otherwise: the agent of callers whose token is bound to none."""

    def __init__(self, otherwise: str | None) -> None:
        self._otherwise = otherwise

    def bound(self, context: Any) -> str | None:
        token = bearer(context.request.scope)
        return (token.subject if token else None) or self._otherwise


class Sessions(ByToken):
    """A memory for each session of the older revisions; none for the stateless one."""

    def __init__(self, otherwise: str | None) -> None:
        super().__init__(otherwise)
        self._links = Links()

    def link(self, context: Any) -> Link | None:
        session = context.request.headers.get("mcp-session-id")
        if session is None or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        return self._links.of(session)

    def forget(self, session: str | None) -> None:
        """An ended session."""
        self._links.forget(session)
