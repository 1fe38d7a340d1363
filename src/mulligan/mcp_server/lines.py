"""Bytes as they come, cut into lines, of which none is held that is too long."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Feed it bytes; it gives the lines that they end. A line longer than `longest` is given as None, at its end."""

    def __init__(self, longest: int) -> None:
        self._longest, self._kept, self._skipping = longest, bytearray(), False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        """The lines that end in this chunk, without their line ends."""
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            yield self._line(part)
        self._keep(rest)

    def end(self) -> Iterator[bytes | None]:
        """The line that was begun and never ended, if there is one."""
        if self._kept or self._skipping:
            yield self._line(b"")

    def _line(self, part: bytes) -> bytes | None:
        self._keep(part)
        line = None if self._skipping else bytes(self._kept)
        self._kept.clear()
        self._skipping = False
        return line

    def _keep(self, part: bytes) -> None:
        if self._skipping:
            return
        if len(self._kept) + len(part) > self._longest:
            self._kept = bytearray()
            self._skipping = True
        else:
            self._kept += part
