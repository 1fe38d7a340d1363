"""Counts the requests in flight: how many, how much memory they take, and their ids."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import mcp_types as types

from mulligan.mcp_server.messages import MEGABYTE

MAX_BYTES = 64 * MEGABYTE
"""Memory that all requests in flight may take together."""


class InFlight:
    """The requests in flight of a server; `full` says whether another one may start."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.count = self.bytes = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def full(self, size: int = 0) -> bool:
        return self.count >= self.limit or self.bytes + size > MAX_BYTES

    def add(self, size: int) -> None:
        self.count, self.bytes = self.count + 1, self.bytes + size
        self._idle.clear()

    def remove(self, size: int) -> None:
        self.count, self.bytes = self.count - 1, self.bytes - size
        if not self.count:
            self._idle.set()

    async def idle(self) -> None:
        """Waits until nothing is in flight."""
        await self._idle.wait()


class Slot:
    """One request's place among those in flight, free again when every holder has released it. Starts with one."""

    def __init__(self, requests: InFlight, size: int = 0) -> None:
        self._requests, self._size, self._holders = requests, size, 0
        self._callbacks: list[Callable[[], None]] = []
        self.hold()

    def hold(self) -> None:
        """Also counts the request again if it was free: over SSE a post may end before its request is read."""
        if not self._holders:
            self._requests.add(self._size)
        self._holders += 1

    def grow(self, size: int) -> bool:
        """Counts that many more bytes, and returns whether there was room for them."""
        if self._requests.bytes + size > MAX_BYTES:
            return False
        self._requests.bytes += size
        self._size += size
        return True

    def release(self) -> None:
        self._holders -= 1
        if not self._holders:
            self._requests.remove(self._size)
            while self._callbacks:
                self._callbacks.pop()()

    def on_free(self, callback: Callable[[], None]) -> None:
        """Calls this when the last holder has released the slot."""
        self._callbacks.append(callback)


class PendingRequests:
    """The unanswered requests of one connection, by id. `1` and `"1"` are the same id, as in the SDK."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}

    def __contains__(self, id: types.RequestId) -> bool:
        return str(id) in self._slots

    def begin(self, id: types.RequestId, slot: Slot) -> None:
        self._slots[str(id)] = slot

    def end(self, id: types.RequestId | None) -> None:
        """Forgets a request; an id that is not pending is ignored."""
        if slot := self._slots.pop(str(id), None):
            slot.release()

    async def cancelled(self, id: types.RequestId) -> None:
        """For the SDK to call: a cancelled request is never answered."""
        self.end(id)

    def sent(self, message: types.JSONRPCMessage) -> None:
        """Ends the request that this message answers, if it is an answer."""
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self.end(message.id)

    def end_all(self) -> None:
        for id in list(self._slots):
            self.end(id)


def id_in_use(id: types.RequestId) -> str:
    """The error message for a second request with an id that is in flight."""
    return f"The id {str(id)[:80]} belongs to a request that has not been answered yet: use another id."
