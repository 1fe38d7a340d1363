"""A load balancer for tests that remembers nobody: each request goes to the next of several servers.

    balancer = Balancer([first.url, second.url])
    async with Client(balancer.over()) as client: ...
    assert min(balancer.asked) > 0

A server that does not take the connection is passed over, as a balancer does that looks after its servers; one that
takes it and fails is not asked again, because it may have done what it was asked for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client


class Balancer:
    """asked: how many requests each server has answered. addresses: those of the servers, which may change."""

    def __init__(self, addresses: Sequence[str] | Callable[[], Sequence[str]]) -> None:
        self._addresses: Callable[[], Sequence[str]] = addresses if callable(addresses) else lambda: addresses
        self.asked = [0] * len(self._addresses())
        self._turn = 0

    @asynccontextmanager
    async def over(self, token: str | None = None, **headers: str) -> AsyncGenerator[Any]:
        """The transport that `mcp.Client` takes, bearing this token and, in each request, these headers."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx2.Timeout(30, read=60)
        async with (
            httpx2.AsyncClient(transport=_Turns(self), headers=headers, timeout=timeout) as http,
            streamable_http_client(self._addresses()[0], http_client=http) as streams,
        ):
            yield streams

    def next(self) -> tuple[int, httpx2.URL]:
        """The server whose turn it is: its number, and where it answers."""
        addresses = self._addresses()
        number = self._turn % len(addresses)
        self._turn += 1
        return number, httpx2.URL(addresses[number])

    def __len__(self) -> int:
        return len(self.asked)


class _Turns(httpx2.AsyncBaseTransport):
    """Sends the requests of one client where the balancer says."""

    def __init__(self, balancer: Balancer) -> None:
        self._balancer, self._http = balancer, httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for left in reversed(range(len(self._balancer))):
            number, url = self._balancer.next()
            request.url = request.url.copy_with(host=url.host, port=url.port)
            request.headers["Host"] = f"{url.host}:{url.port}"
            try:
                response = await self._http.handle_async_request(request)
            except httpx2.ConnectError:
                if not left:
                    raise
            else:
                self._balancer.asked[number] += 1
                return response
        raise AssertionError("there are no servers")

    async def aclose(self) -> None:
        await self._http.aclose()
