"""Bearer tokens: who may call over HTTP, and as which agent."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mulligan.core.errors import InvalidInput

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

VARIABLE = "MULLIGAN_TOKEN"
MIN_LENGTH = 16

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What RFC 6750 allows in a bearer token. It has no colon, so the last colon ends the agent's id."""


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes:
        name: what logs call it.
        secret: the token itself.
        agent_id: the agent that it is bound to; None: none.
    """

    name: str
    secret: str = field(repr=False)
    agent_id: str | None = None


def read_tokens(agent_id: str | None = None) -> Sequence[Token]:
    """The tokens in `MULLIGAN_TOKEN`, separated by white space, each `TOKEN` or `AGENT_ID:TOKEN`.

    Removes the variable from the environment, so that commands run for a caller do not see it.

    Args:
        agent_id: the only agent that this server answers, if any.

    Raises:
        InvalidInput: a token is invalid. The message quotes no token.
    """
    value = os.environ.pop(VARIABLE, None)
    if value is None:
        return ()
    tokens = [_parse(word, number, agent_id) for number, word in enumerate(value.split(), 1)]
    if not tokens:
        raise InvalidInput(f"{VARIABLE} is set but empty: put a token there, or unset it.")
    seen: dict[str, str] = {}
    for token in tokens:
        if other := seen.get(token.secret):
            raise InvalidInput(f"{VARIABLE}: {token.name} is the same as {other}: name each token once.")
        seen[token.secret] = token.name
    return tokens


def _parse(word: str, number: int, served: str | None) -> Token:
    name = f"token {number}"
    agent_id, colon, secret = word.rpartition(":")
    if colon and not agent_id:
        raise InvalidInput(f"{VARIABLE}: {name} begins with a colon: write AGENT_ID:TOKEN, or TOKEN alone.")
    if not _TOKEN.fullmatch(secret):
        raise InvalidInput(f"{VARIABLE}: {name} has characters other than letters, digits and -._~+/ (= at its end).")
    if len(secret) < MIN_LENGTH:
        raise InvalidInput(
            f"{VARIABLE}: {name} is shorter than {MIN_LENGTH} characters, and could be guessed: make one by "
            "  python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if served is not None and agent_id and agent_id != served:
        raise InvalidInput(
            f"{VARIABLE}: {name} is bound to the agent {agent_id!r}, but --agent-id serves {served!r} alone: leave one "
            "of the two out."
        )
    return Token(name, secret, agent_id or served)


class Verifier:
    """Checks tokens for the SDK. It compares every known token, in constant time."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._known = [(_digest(token.secret), token) for token in tokens]

    async def verify_token(self, token: str) -> AccessToken | None:
        from mcp.server.auth.provider import AccessToken

        given, found = _digest(token), None
        for digest, known in self._known:
            if hmac.compare_digest(given, digest):
                found = known
        if found is None:
            return None
        # the SDK keeps the sessions of different client_ids apart: each token is one, whatever its agent
        return AccessToken(token="", client_id=found.name, scopes=[], subject=found.agent_id)


def bearer(scope: Any) -> AccessToken | None:
    """The known token that an ASGI request bears, if any."""
    return getattr(scope.get("user"), "access_token", None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
