"""Bytes as they come, cut into lines, of which none is held that is too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mulligan.mcp_server.outline import ENDS


@dataclass(frozen=True)
class TooLong:
    """What is kept of a line that is too long: both its ends."""

    head: bytes
    tail: bytes


class Lines:
    """Feed it bytes; it gives the lines that they end. Of one longer than `longest` the ends are given, at its end."""

    def __init__(self, longest: int) -> None:
        self._longest, self._kept = longest, bytearray()
        self._head: bytes | None = None

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that end in this chunk, without their line ends."""
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield self._line(part)
        self._keep(rest)

    def end(self) -> Iterator[bytes | TooLong]:
        """The line that was begun and never ended, if there is one."""
        if self._kept or self._head is not None:
            yield self._line(b"")

    def _line(self, part: bytes) -> bytes | TooLong:
        self._keep(part)
        line = bytes(self._kept) if self._head is None else TooLong(self._head, bytes(self._kept))
        self._kept, self._head = bytearray(), None
        return line

    def _keep(self, part: bytes) -> None:
        if self._head is None and len(self._kept) + len(part) > self._longest:
            self._head = bytes((self._kept + part)[:ENDS])
        self._kept += part
        if self._head is not None:
            self._kept = self._kept[-ENDS:]
