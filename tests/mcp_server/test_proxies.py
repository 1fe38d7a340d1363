"""Reverse proxies: what they forward counts from a trusted one alone, before hosts, origins and rates are looked at."""

import socket
from typing import Any

import pytest

from mulligan.core.errors import InvalidInput
from mulligan.web.hosts import Bound, HostPolicy
from mulligan.web.proxies import BehindProxies

FORWARDED = {"x-forwarded-host": "evil.example.org, mcp.example.org", "x-forwarded-for": "203.0.113.7"}


def policy() -> HostPolicy:
    with socket.socket() as listening:
        return HostPolicy(Bound(listening, "127.0.0.1", 8000, True), ["https://mcp.example.org"])


async def reached(peer: str | None, *proxies: str, **headers: str) -> tuple[str, str | None]:
    """The Host and the caller that the application sees."""
    scopes: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)

    named = {"host": "127.0.0.1:8000", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope: dict[str, Any] = {
        "type": "http",
        "scheme": "http",
        "client": None if peer is None else (peer, 50000),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    await BehindProxies(app, proxies, policy())(scope, None, None)  # pyright: ignore[reportArgumentType]
    (seen,) = scopes
    (host,) = [value.decode() for name, value in seen["headers"] if name == b"host"]
    return host, seen["client"] and seen["client"][0]


@pytest.mark.parametrize("proxy", ["127.0.0.1", "127.0.0.0/8"])
async def test_a_trusted_proxy_says_who_calls_and_by_which_name(proxy: str) -> None:
    assert await reached("127.0.0.1", proxy, **FORWARDED) == ("mcp.example.org", "203.0.113.7")
    assert await reached("127.0.0.1", proxy) == ("127.0.0.1:8000", "127.0.0.1")


@pytest.mark.parametrize(("peer", "proxies"), [("127.0.0.1", ()), ("10.0.0.9", ("127.0.0.1",)), (None, ("127.0.0.1",))])
async def test_from_anybody_else_these_headers_mean_nothing(peer: str | None, proxies: tuple[str, ...]) -> None:
    assert await reached(peer, *proxies, **FORWARDED) == ("127.0.0.1:8000", peer)


def test_what_is_no_address_is_refused_and_a_forwarded_name_has_to_be_one_of_ours() -> None:
    with pytest.raises(InvalidInput, match="--trusted-proxy"):
        BehindProxies(None, ["proxy.example.org"], policy())  # pyright: ignore[reportArgumentType]
    assert policy().allows_host("mcp.example.org")
    assert not policy().allows_host("evil.example.org")


async def test_a_page_on_the_proxys_machine_cannot_name_itself_by_a_header() -> None:
    """Its own name was made to point here, and its requests come from the proxy's address."""
    page = {"host": "evil.example.org:8000", "x-forwarded-host": "127.0.0.1"}
    assert await reached("127.0.0.1", "127.0.0.1", **page) == ("evil.example.org:8000", "127.0.0.1")
