"""What HTTP knows of a request: whose token it bears, and which session of the older revisions it belongs to."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mulligan.mcp_server.tokens import bearer
from mulligan.mcp_server.tool import Link

SESSIONS = 1000
"""Sessions that may be open, and that are kept in mind."""


class ByToken:
    """otherwise: the agent of callers whose token is bound to none."""

    def __init__(self, otherwise: str | None) -> None:
        self._otherwise = otherwise

    def bound(self, context: Any) -> str | None:
        token = bearer(context.request.scope)
        return (token.subject if token else None) or self._otherwise


class Sessions(ByToken):
    """A memory for each session of the older revisions; none for the stateless one. The least used is forgotten."""

    def __init__(self, otherwise: str | None) -> None:
        super().__init__(otherwise)
        self._links: OrderedDict[str, Link] = OrderedDict()

    def link(self, context: Any) -> Link | None:
        session = context.request.headers.get("mcp-session-id")
        if session is None or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        link = self._links.setdefault(session, Link())
        self._links.move_to_end(session)
        while len(self._links) > SESSIONS:
            self._links.popitem(last=False)
        return link

    def forget(self, session: str | None) -> None:
        """An ended session."""
        self._links.pop(session or "", None)
