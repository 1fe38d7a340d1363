"""Checks bearer tokens for the SDK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mulligan.web.tokens import Token, bearer_of

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken


class Verifier:
    """Checks tokens for the SDK."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        from mcp.server.auth.provider import AccessToken

        found = bearer_of(self._tokens, token)
        if found is None:
            return None
        # the SDK keeps the sessions of different client_ids apart: each token is one, whatever its agent
        return AccessToken(token="", client_id=found.name, scopes=[], subject=found.agent_id)


def bearer(scope: Any) -> AccessToken | None:
    """The known token that an ASGI request bears, if any."""
    return getattr(scope.get("user"), "access_token", None)
