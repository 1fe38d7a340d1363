"""Bearer tokens: who may call at all over HTTP, and as which agent."""

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
SHORTEST = 16

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What RFC 6750 lets a bearer token be made of: no colon, so the last one ends the agent's id."""


@dataclass(frozen=True)
class Token:
    """A secret, and the agent that its bearers are; None: any. `name` is what logs may say."""

    name: str
    secret: str = field(repr=False)
    agent_id: str | None = None


def read_tokens(agent_id: str | None = None) -> Sequence[Token]:
    """The tokens of `MULLIGAN_TOKEN`, separated by white space, each `TOKEN` or `AGENT_ID:TOKEN`; none where it is not
    set. The variable is taken out of the environment, so that no command that is run on somebody's behalf sees it.

    agent_id: the one that this server answers alone. Raises `InvalidInput`, which quotes no token.
    """
    said = os.environ.pop(VARIABLE, None)
    if said is None:
        return ()
    tokens = [_read(word, number, agent_id) for number, word in enumerate(said.split(), 1)]
    if not tokens:
        raise InvalidInput(f"{VARIABLE} is set and empty: put a token there, or unset it.")
    seen: dict[str, str] = {}
    for token in tokens:
        if other := seen.get(token.secret):
            raise InvalidInput(f"{VARIABLE}: {token.name} is the same as {other}: each stands there once.")
        seen[token.secret] = token.name
    return tokens


def _read(word: str, number: int, served: str | None) -> Token:
    name = f"token {number}"
    agent_id, colon, secret = word.rpartition(":")
    if colon and not agent_id:
        raise InvalidInput(f"{VARIABLE}: {name} begins with a colon: write AGENT_ID:TOKEN, or TOKEN alone.")
    if not _TOKEN.fullmatch(secret):
        raise InvalidInput(f"{VARIABLE}: {name} holds other characters than letters, digits and -._~+/ (= at its end).")
    if len(secret) < SHORTEST:
        raise InvalidInput(
            f"{VARIABLE}: {name} is shorter than {SHORTEST} characters, and could be guessed: make one by "
            "  python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if served is not None and agent_id and agent_id != served:
        raise InvalidInput(
            f"{VARIABLE}: {name} is bound to the agent {agent_id!r}, and --agent-id serves {served!r} alone: leave one "
            "of the two out."
        )
    return Token(name, secret, agent_id or served)


class Verifier:
    """What the SDK asks for each request. Every token is compared, and each in the same time, whatever it is."""

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
        # client_id sets the owner of a session apart: each token is one, whatever agent it is bound to
        return AccessToken(token="", client_id=found.name, scopes=[], subject=found.agent_id)


def bearer(scope: Any) -> AccessToken | None:
    """Who bears a known token in this request of ASGI; None where nobody does."""
    return getattr(scope.get("user"), "access_token", None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
