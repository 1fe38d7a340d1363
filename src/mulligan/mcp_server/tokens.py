"""Checks bearer tokens for the SDK."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mulligan.mcp_server.tool import MAX_NAME
from mulligan.web.identity import IdentityProvider, scopes_in
from mulligan.web.tokens import Token

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken


class Verifier:
    """Checks tokens for the SDK: those that were made for this server, then those of the identity provider.

    Args:
        agent_id: the only agent that this server answers, if any; else a user of the provider is the agent.
    """

    def __init__(
        self, tokens: Sequence[Token], identity: IdentityProvider | None = None, agent_id: str | None = None
    ) -> None:
        self._tokens, self._identity, self._agent_id = tokens, identity, agent_id

    async def verify_token(self, token: str) -> AccessToken | None:
        from mcp.server.auth.provider import AccessToken

        found = Token.with_secret(token, self._tokens)
        if found is None and self._identity is not None and (claims := self._identity.claims(token)) is not None:
            user = claims["sub"]
            if not user.strip() or len(user) > MAX_NAME or not user.isprintable():
                return None
            agent, issuer = self._agent_id or user, {"iss": claims["iss"]}
            scopes = scopes_in(claims)
            return AccessToken(token="", client_id=f"user {user}", scopes=scopes, subject=agent, claims=issuer)
        if found is None:
            return None
        # the SDK keeps the sessions of different client_ids apart: each token is one, whatever its agent
        return AccessToken(token="", client_id=found.name, scopes=[], subject=found.agent_id)


def may(scope: Any, identity: IdentityProvider, action: str) -> bool:
    """Whether the token that an ASGI request bears allows an action. One in `MULLIGAN_TOKEN` has no scopes, and allows
    what it always did."""
    token = bearer(scope)
    needed = identity.scopes.get(action)
    return token is None or token.claims is None or needed is None or needed in token.scopes


def bearer(scope: Any) -> AccessToken | None:
    """The known token that an ASGI request bears, if any."""
    return getattr(scope.get("user"), "access_token", None)
