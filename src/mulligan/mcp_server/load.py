"""What a server has taken on and not yet answered: how many requests, how heavy, and of which ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from mulligan.mcp_server.messages import MEGABYTE

HEAVIEST = 64 * MEGABYTE
"""Bytes that all requests in flight may take together."""


class Load:
    """Counts tickets; `full` says when no more may be given out."""

    def __init__(self, most: int, heaviest: int = HEAVIEST) -> None:
        self.most, self.heaviest = most, heaviest
        self.count = self.weight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def full(self, weight: int = 0) -> bool:
        return self.count >= self.most or self.weight + weight > self.heaviest

    def add(self, weight: int) -> None:
        self.count, self.weight = self.count + 1, self.weight + weight
        self._idle.clear()

    def remove(self, weight: int) -> None:
        self.count, self.weight = self.count - 1, self.weight - weight
        if not self.count:
            self._idle.set()

    async def idle(self) -> None:
        """Until nothing is in flight."""
        await self._idle.wait()


class Ticket:
    """One request's share of the load, until all who hold it have let go. Made with one holder."""

    def __init__(self, load: Load, weight: int = 0) -> None:
        self._load, self._weight, self._holders = load, weight, 0
        self._over: list[Callable[[], None]] = []
        self.hold()

    def hold(self) -> None:
        if not self._holders:
            self._load.add(self._weight)
        self._holders += 1

    def heavier(self, weight: int) -> bool:
        """Whether that much more still fits; if so it is counted."""
        if self._load.weight + weight > self._load.heaviest:
            return False
        self._load.weight += weight
        self._weight += weight
        return True

    def release(self) -> None:
        self._holders -= 1
        if not self._holders:
            self._load.remove(self._weight)
            while self._over:
                self._over.pop()()

    def then(self, over: Callable[[], None]) -> None:
        """Called when the last holder lets go."""
        self._over.append(over)


class Calls:
    """The requests of one connection that wait for an answer, by id. `1` and `"1"` count as one: so does the SDK."""

    def __init__(self) -> None:
        self._waiting: dict[str, Ticket] = {}

    def __contains__(self, id: Hashable) -> bool:
        return str(id) in self._waiting

    def begin(self, id: Hashable, ticket: Ticket) -> None:
        self._waiting[str(id)] = ticket

    def end(self, id: Hashable) -> None:
        if ticket := self._waiting.pop(str(id), None):
            ticket.release()

    def end_all(self) -> None:
        for id in list(self._waiting):
            self.end(id)


def taken(id: Hashable) -> str:
    """What the sender of a second request with the same id is told."""
    return f"The id {str(id)[:80]} belongs to a request that is not answered yet: take another."
