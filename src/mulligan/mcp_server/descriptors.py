"""Standard input and output as the protocol's own, and waiting for them without a thread."""

from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from mulligan.core.errors import InvalidInput

AT_ONCE = getattr(select, "PIPE_BUF", 512)
"""Bytes that a pipe takes without making us wait, once it says that it can be written to."""


@contextmanager
def kept_apart() -> Generator[tuple[int, int]]:
    """Descriptors of what were standard input and output. Meanwhile 0 is empty and 1 is standard error: no stray print,
    and no child process, can read what the client says or write between our answers.

    Raises `InvalidInput` when one of the two is closed.
    """
    if (
        sys.__stdin__ is None or sys.__stdout__ is None
    ):  # Python's word for a descriptor that was closed before it began
        raise InvalidInput(
            "Standard input or output is closed, and over stdio the client is spoken to there: let the client start "
            "this command, or serve over --transport http."
        )
    _open_standard_error()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield incoming, outgoing
    finally:
        _flush()
        for kept, standard in ((incoming, 0), (outgoing, 1)):
            os.dup2(kept, standard)
            os.close(kept)


def _open_standard_error() -> None:
    """Where it was closed, it goes nowhere: or the next descriptor that is opened would be taken for it."""
    try:
        os.fstat(2)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != 2:
            os.dup2(nothing, 2)
            os.close(nothing)


def _flush() -> None:
    """What was printed and still waits goes to standard error, before 1 is the client's again."""
    with suppress(OSError, ValueError):
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()


async def read_some(descriptor: int) -> bytes:
    """What has come, as soon as something has; b"" at the end."""
    loop = asyncio.get_running_loop()
    await _ready(loop.add_reader, loop.remove_reader, descriptor)
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # the terminal has hung up, a socket was reset
        return b""


async def write_all(descriptor: int, data: bytes) -> None:
    """Waits for a reader that is slow, and meanwhile holds up nothing else. Raises `OSError` when there is none."""
    loop, rest, waiting = asyncio.get_running_loop(), memoryview(data), select.poll()
    waiting.register(descriptor, select.POLLOUT)
    while rest:
        if not waiting.poll(0):
            await _ready(loop.add_writer, loop.remove_writer, descriptor)
        rest = rest[os.write(descriptor, rest[:AT_ONCE]) :]


async def _ready(add: Callable[..., Any], remove: Callable[[int], Any], descriptor: int) -> None:
    ready = asyncio.Event()
    try:
        add(descriptor, ready.set)
    except PermissionError:  # a file is always ready
        await asyncio.sleep(0)
        return
    try:
        await ready.wait()
    finally:
        remove(descriptor)
