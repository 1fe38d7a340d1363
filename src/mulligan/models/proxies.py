"""The proxies that the environment names, checked before anything is asked over HTTP."""

from __future__ import annotations

import os
from importlib.util import find_spec
from urllib.parse import urlsplit

from mulligan.core.errors import InvalidInput

_SCHEMES = ("http", "https", "socks5", "socks5h")


def check_proxies() -> None:
    """Raises `InvalidInput` that names the variable whose proxy cannot be used; a password in it is not shown."""
    if "*" in (part.strip() for part in _variable("no_proxy")[1].split(",")):
        return
    for wanted in ("http_proxy", "https_proxy", "all_proxy"):
        name, value = _variable(wanted)
        if not value:
            continue
        try:
            url = urlsplit(value if "://" in value else f"http://{value}")
            usable = bool(url.hostname) and url.scheme in _SCHEMES and url.port != 0 and value == value.strip()
        except ValueError:  # a port that is no number, a bracket that is not closed
            usable = False
        shown = value.rpartition("@")[2]
        if not usable:
            raise InvalidInput(
                f"The proxy in the variable {name} cannot be used: {shown!r}. Write http://HOST:PORT, or unset it."
            )
        if value.startswith("socks") and find_spec("socksio") is None:
            raise InvalidInput(f"The proxy in the variable {name}, {shown!r}, needs a package: pip install socksio")


def _variable(name: str) -> tuple[str, str]:
    """The name that is set and its value; the small letters come first, as for other programs."""
    for written in (name, name.upper()):
        if value := os.environ.get(written, ""):
            return written, value
    return name, ""
