"""The providers whose key variable and package are known without importing pydantic-ai.

pydantic-ai's other providers (Bedrock, Azure, Vertex, ...) work as well. Opening one of their models shows what it
lacks.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mulligan.core.errors import InvalidInput
from mulligan.core.extras import numbers, require
from mulligan.models.settings import CallSettings
from mulligan.text.secret_rules import secrets_of
from mulligan.text.secrets import MASK

_SCHEMES = ("http", "https", "socks5", "socks5h")


class MissingKey(InvalidInput):
    """No environment variable contains the provider's key."""


@dataclass(frozen=True)
class Provider:
    """How to reach a provider.

    Attributes:
        keys: variables that may hold the key; the first one that is set counts.
        package: the package that must be importable.
        extra: the extra of pydantic-ai-slim that installs it.
        url: variables that may hold a base URL; none if only the provider's own server exists.
        home: the default base URL.
        keyless: whether it works without a key, as a user's own server does.
        example: the name of one of its models.
    """

    keys: tuple[str, ...]
    package: str = "openai"
    extra: str = "openai"
    url: tuple[str, ...] = ()
    home: str | None = None
    keyless: bool = False
    example: str = ""


def _read() -> dict[str, Provider]:
    table: dict[str, dict[str, Any]] = tomllib.loads(
        Path(__file__).with_name("providers.toml").read_text(encoding="utf-8")
    )
    for row in table.values():
        row |= {"keys": tuple(row["keys"]), "url": tuple(row.get("url", ()))}
    return {name: Provider(**row) for name, row in table.items()}


PROVIDERS = _read()


@dataclass(frozen=True)
class Access:
    """How to reach a provider: the variable that holds the key (for messages), the key, and the server."""

    variable: str = ""
    key: str | None = None
    base_url: str | None = None

    def __repr__(self) -> str:
        return f"Access(variable={self.variable!r}, key={MASK}, base_url={without_credentials(self.base_url)!r})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values to mask: the key, and the password in the base URL. For a provider that reads its own variables,
        such as Bedrock, also all variables whose names say that they hold a secret."""
        password = urlsplit(self.base_url).password if self.base_url else None
        others = () if self.key or self.variable else secrets_of(os.environ)
        return tuple(secret for secret in (self.key, password, *others) if secret)

    @property
    def at_home(self) -> bool:
        """Whether the server is on this machine."""
        return bool(self.base_url) and urlsplit(self.base_url).hostname in ("127.0.0.1", "localhost", "::1")


def without_credentials(url: str | None) -> str | None:
    """The URL without user, password and query."""
    if url is None:
        return None
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def check_proxies() -> None:
    """Raises `InvalidInput` for a proxy that cannot be used. It names the variable, and hides a password in it."""
    if "*" in (part.strip() for part in _variable("no_proxy")[1].split(",")):
        return
    for wanted in ("http_proxy", "https_proxy", "all_proxy"):
        name, value = _variable(wanted)
        if not value:
            continue
        try:
            url = urlsplit(value if "://" in value else f"http://{value}")
            usable = bool(url.hostname) and url.scheme in _SCHEMES and url.port != 0 and value == value.strip()
        except ValueError:  # a port that is not a number, a bracket that is not closed
            usable = False
        shown = value.rpartition("@")[2]
        if not usable:
            raise InvalidInput(
                f"The proxy in the variable {name} cannot be used: {shown!r}. Set it to http://HOST:PORT, or unset it."
            )
        if value.startswith("socks") and find_spec("socksio") is None:
            raise InvalidInput(f"The proxy in the variable {name}, {shown!r}, needs a package: pip install socksio")


def _variable(name: str) -> tuple[str, str]:
    """The name in lower or upper case that is set, and its value. As in other programs, lower case comes first."""
    for variant in (name, name.upper()):
        if value := os.environ.get(variant, ""):
            return variant, value
    return name, ""


def access(name: str, model: str, settings: CallSettings, given: str | None = None) -> Access:
    """Key and server of a provider of the table. given: a key to use instead of the one in the environment.

    Raises `InvalidInput`, which says what to set or to install.
    """
    require_sdk(f"{name}:{model} needs pydantic-ai")
    check_proxies()
    provider = PROVIDERS[name]
    if not _importable(provider.package):
        raise InvalidInput(
            f"{name}:{model} needs the package {provider.package!r}: "
            f"run  pip install 'pydantic-ai-slim[{provider.extra}]'"
        )
    if provider.package == "anthropic":
        _check_anthropic(f"{name}:{model}")
    if settings.base_url and not provider.url:
        raise InvalidInput(
            f"{name} does not support a base URL: write openai:{model} for a server that uses OpenAI's format."
        )
    base_url = settings.base_url or _first(provider.url)[1]
    if base_url and not base_url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"The server address for {name}, {without_credentials(base_url)!r}, must begin with http:// or https://."
        )
    if base_url and urlsplit(base_url).hostname == "api.openai.com":
        base_url = None  # OpenAI's own server is the default, and offers more than the format that others copy
    variable, key = ("", given) if given else _first((settings.key,) if settings.key else provider.keys)
    is_own_server = bool(base_url) and provider.keys == PROVIDERS["openai"].keys and not settings.key
    if key is None and not provider.keyless and not is_own_server:
        wanted = settings.key or " or ".join(provider.keys)
        raise MissingKey(f"{name}:{model} needs a key: set {wanted}, or use a model that needs none (model='local').")
    return Access(variable, key, base_url or provider.home)


def require_sdk(need: str) -> None:
    """Raises `MissingExtra`, whose message begins with `need`, if pydantic-ai is not installed."""
    require(need, "pydantic_ai", "models", distribution="pydantic-ai-slim")


def _check_anthropic(what: str) -> None:
    """Raises `InvalidInput` for a newer SDK that this version of pydantic-ai accepts but cannot call."""
    from importlib.metadata import version

    ours, theirs = version("pydantic-ai-slim"), version("anthropic")
    if numbers(ours) < [2, 32] and numbers(theirs) >= [1]:
        raise InvalidInput(
            f"{what} cannot be called by pydantic-ai {ours} with anthropic {theirs}: run  pip install 'anthropic<1'"
        )


def known_models() -> Sequence[str]:
    """The models that pydantic-ai knows, as PROVIDER:NAME; empty if it is not installed."""
    try:
        from pydantic_ai.models import known_model_names
    except ImportError:
        return ()
    return known_model_names()


def _first(variables: tuple[str, ...]) -> tuple[str, str | None]:
    """The first variable that is set, and its value; if none is set, the first variable and None."""
    for variable in variables:
        if value := os.environ.get(variable, "").strip():
            return variable, value
    return (variables[0] if variables else ""), None


def _importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False
