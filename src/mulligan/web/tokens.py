"""Bearer tokens: who may call over HTTP, and as which agent."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mulligan.core.errors import InvalidInput

VARIABLE = "MULLIGAN_TOKEN"
METRICS_VARIABLE = "MULLIGAN_METRICS_TOKEN"
MIN_LENGTH = 16

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What RFC 6750 allows in a bearer token. It has no colon, so the last colon ends the agent's id."""


@dataclass(frozen=True)
class Token:
    """A token.

    Attributes:
        name: its name in logs.
        secret: the token itself.
        agent_id: the agent to which it is bound. None: any agent.
    """

    name: str
    secret: str = field(repr=False)
    agent_id: str | None = None

    @staticmethod
    def all_in_environment(agent_id: str | None = None) -> Sequence[Token]:
        """Returns the tokens in `MULLIGAN_TOKEN`, separated by white space, each `TOKEN` or `AGENT_ID:TOKEN`.

        This removes the variable from the environment, so that commands that run for a caller do not see it.

        Args:
            agent_id: the only agent that the server serves, if any.

        Raises:
            InvalidInput: a token is invalid. The message does not contain it.
        """
        value = os.environ.pop(VARIABLE, None)
        if value is None:
            return ()
        tokens = [_parse(word, number, agent_id) for number, word in enumerate(value.split(), 1)]
        if not tokens:
            raise InvalidInput(f"{VARIABLE} is set but empty: set it to a token, or unset it.")
        seen: dict[str, str] = {}
        for token in tokens:
            if other := seen.get(token.secret):
                raise InvalidInput(f"{VARIABLE}: {token.name} is the same as {other}: list each token only once.")
            seen[token.secret] = token.name
        return tokens

    @staticmethod
    def with_secret(secret: str, tokens: Sequence[Token]) -> Token | None:
        """Returns the token with this secret. Compares it with every token, in constant time."""
        given, found = _digest(secret), None
        for token in tokens:
            if hmac.compare_digest(_digest(token.secret), given):
                found = token
        return found


def read_metrics_token(others: Sequence[Token]) -> Token | None:
    """The token in `MULLIGAN_METRICS_TOKEN`, which reads metrics and nothing else; None: there is none.

    Removes the variable from the environment, as `Token.all_in_environment` does.

    Raises:
        InvalidInput: it is not a valid token, or one of the others.
    """
    value = os.environ.pop(METRICS_VARIABLE, None)
    if value is None:
        return None
    secret = _checked(value.strip(), f"{METRICS_VARIABLE}: the token")
    if other := Token.with_secret(secret, others):
        raise InvalidInput(f"{METRICS_VARIABLE} is the same as {other.name} of {VARIABLE}: create a different one.")
    return Token("the token for metrics", secret)


def _parse(word: str, number: int, served: str | None) -> Token:
    name = f"token {number}"
    agent_id, colon, secret = word.rpartition(":")
    if colon and not agent_id:
        raise InvalidInput(f"{VARIABLE}: {name} begins with a colon: write AGENT_ID:TOKEN, or TOKEN alone.")
    secret = _checked(secret, f"{VARIABLE}: {name}")
    if served is not None and agent_id and agent_id != served:
        raise InvalidInput(
            f"{VARIABLE}: {name} is bound to the agent {agent_id!r}, but --bank serves only {served!r}: omit one "
            "of them."
        )
    return Token(name, secret, agent_id or served)


def _checked(secret: str, what: str) -> str:
    if not _TOKEN.fullmatch(secret):
        raise InvalidInput(f"{what} contains characters other than letters, digits and -._~+/ (= at its end).")
    if len(secret) < MIN_LENGTH:
        raise InvalidInput(
            f"{what} is shorter than {MIN_LENGTH} characters and could be guessed: create one with   python -c "
            "'import secrets; print(secrets.token_urlsafe())'"
        )
    return secret


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
