"""What HTTP knows of a request: the agent that its token is bound to, and the state kept for its connection."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mulligan.mcp_server.tokens import bearer
from mulligan.mcp_server.tool import ConnectionState

MAX_SESSIONS = 1000
"""Sessions that may be open, and connections whose state is kept."""

MAX_WEIGHT = 64_000_000
"""Characters that the states of all connections may hold together."""


class ConnectionStates:
    """The state of each connection. Over a limit, the least recently used is forgotten."""

    def __init__(self) -> None:
        self._states: OrderedDict[object, ConnectionState] = OrderedDict()

    def of(self, connection: object) -> ConnectionState:
        state = self._states.setdefault(connection, ConnectionState())
        self._states.move_to_end(connection)
        while len(self._states) > MAX_SESSIONS or (len(self._states) > 1 and self._weight > MAX_WEIGHT):
            self._states.popitem(last=False)
        return state

    def forget(self, connection: object) -> None:
        self._states.pop(connection, None)

    @property
    def _weight(self) -> int:
        return sum(state.weight for state in self._states.values())


class ByToken:
    """Binds a caller to its token's agent; to `default` if its token is bound to none."""

    def __init__(self, default: str | None) -> None:
        self._default = default

    def bound(self, context: Any) -> str | None:
        token = bearer(context.request.scope)
        return (token.subject if token else None) or self._default


class Sessions(ByToken):
    """State for each session of the older revisions; none for the newest, which is stateless."""

    def __init__(self, default: str | None) -> None:
        super().__init__(default)
        self._states = ConnectionStates()

    def state(self, context: Any) -> ConnectionState | None:
        session = context.request.headers.get("mcp-session-id")
        if session is None or context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return None
        return self._states.of(session)

    def forget(self, session: str | None) -> None:
        self._states.forget(session)
