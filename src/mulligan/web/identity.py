"""An identity provider whose access tokens callers may use. Its signing keys come from a file."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from mulligan.core.errors import InvalidInput
from mulligan.text.files import read_text

log = logging.getLogger("mulligan.serve")

LEEWAY = 30.0
"""Seconds by which the clocks of the provider and of this machine may differ."""

ALGORITHMS: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""The signature algorithms by type of key. Keys that both sides share are not accepted."""


ACTIONS = ("read", "write", "administer")
"""The actions that may need a scope: reading, calling tools that change something, reading the server's metrics."""

_SCOPE = re.compile(r"[!#-\[\]-~]+")
"""The characters of a scope (RFC 6749, section 3.3)."""


class IdentityProvider:
    """Checks JWT access tokens (RFC 9068): signature, issuer, audience, expiry.

    The file is read again when it changes, so that keys can be rotated. If it cannot be read, the keys stay.

    Args:
        issuer: the provider's URL, as tokens name it (`iss`).
        jwks: the file with its public keys (RFC 7517).
        resource: the URL by which callers know this server, as tokens name it (`aud`).
        scopes: the scopes that actions need, each as ACTION=SCOPE. An action without one is allowed to every token;
            only `administer` is then allowed to none.

    Raises:
        InvalidInput: a URL is not valid, a scope is not valid, or the file has no usable key.
    """

    def __init__(self, issuer: str, jwks: str, resource: str, scopes: Sequence[str] = ()) -> None:
        for option, url in (("--issuer", issuer), ("--resource", resource)):
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
                raise InvalidInput(f"{option} must be a URL such as https://example.org/mcp, not {url!r}.")
        self.issuer, self.resource = issuer, resource
        self.scopes = _scopes(scopes)
        self._file = Path(jwks).expanduser()
        self._read = self._modified()
        self._keys = _keys_in(self._file)

    @property
    def host(self) -> str:
        """The name of the host by which callers know this server."""
        return cast(str, urlsplit(self.resource).hostname)

    @property
    def metadata_url(self) -> str:
        """Where the server's metadata is: the well-known path goes between host and path (RFC 9728, section 3.1)."""
        parts = urlsplit(self.resource)
        return f"{parts.scheme}://{parts.netloc}/.well-known/oauth-protected-resource{parts.path.rstrip('/')}"

    def challenge(self, error: str, reason: str, action: str) -> str:
        """The header `WWW-Authenticate` of a refusal, with the scope that the action needs (RFC 6750, section 3)."""
        fields = {"error": error, "error_description": reason, "resource_metadata": self.metadata_url}
        if action in self.scopes:
            fields["scope"] = self.scopes[action]
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items())

    def claims(self, token: str) -> Mapping[str, Any] | None:
        """Return the claims of a valid token; None if it is not valid."""
        import jwt

        try:
            kid, keys = jwt.get_unverified_header(token).get("kid"), self._current()
            key = keys.get(kid) if kid is not None else next(iter(keys.values())) if len(keys) == 1 else None
            if key is None:
                return None
            return jwt.decode(
                token,
                key.key,
                algorithms=ALGORITHMS[key.key_type],
                audience=self.resource,
                issuer=self.issuer,
                leeway=LEEWAY,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None

    def _current(self) -> Mapping[str | None, Any]:
        modified = self._modified()
        if modified != self._read:
            self._read = modified
            try:
                self._keys = _keys_in(self._file)
            except InvalidInput as error:
                log.warning("the keys stay as they were: %s", error)
        return self._keys

    def _modified(self) -> int:
        return self._file.stat().st_mtime_ns if self._file.exists() else 0


def scopes_in(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes of a token: `scope` (RFC 9068), or `scp` of some providers, as a text or a list."""
    scopes: list[str] = []
    for value in (claims.get("scope"), claims.get("scp")):
        if isinstance(value, str):
            scopes += value.split()
        elif isinstance(value, list):
            scopes += [one for one in cast("list[Any]", value) if isinstance(one, str)]
    return scopes


def _scopes(given: Sequence[str]) -> Mapping[str, str]:
    scopes: dict[str, str] = {}
    for one in given:
        action, _, scope = one.partition("=")
        if action not in ACTIONS or action in scopes or not _SCOPE.fullmatch(scope):
            raise InvalidInput(
                f"--scope must have the form ACTION=SCOPE, such as --scope write=memory.write, not {one!r}. Use "
                f"it once for each action ({', '.join(ACTIONS)})."
            )
        scopes[action] = scope
    return scopes


def _keys_in(file: Path) -> Mapping[str | None, Any]:
    """Return the public signing keys by id. Raises `InvalidInput` if there are none."""
    import jwt

    keys: dict[str | None, Any] = {}
    text = read_text(file, "--jwks")
    try:
        for one in json.loads(text)["keys"]:
            if one.get("kty") in ALGORITHMS and one.get("use", "sig") == "sig":
                with suppress(jwt.PyJWTError):  # of a curve that PyJWT does not know
                    keys[one.get("kid")] = jwt.PyJWK(one)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise InvalidInput(f"--jwks {file} is not a set of public keys (JWKS, RFC 7517).") from None
    if not keys:
        raise InvalidInput(f"--jwks {file} contains no public signing key (RSA, EC or OKP).")
    return keys
