"""Standard input and output as the protocol's wire: one message to a line, and nothing else on it.

A line that is too long is never held; one that is no message is answered with an error, so that nobody waits for it.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

log = logging.getLogger("mulligan.serve")

LONGEST = 4 * 1024 * 1024
"""Bytes that one message may have, as over HTTP."""

Heard = SessionMessage | Exception
Take = Callable[[bytes | None], Awaitable[None]]


@asynccontextmanager
async def wire() -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Heard], MemoryObjectSendStream[SessionMessage]]]:
    """The two ends for `Server.run`. Meanwhile whatever reads standard input finds it empty, and what is printed goes
    to standard error: no tool and no child process comes between.
    """
    incoming, outgoing = _aside()
    heard, reading = anyio.create_memory_object_stream[Heard](0)
    writing, said = anyio.create_memory_object_stream[SessionMessage](0)
    ended = asyncio.Event()

    async def take(line: bytes | None) -> None:
        message, refusal = (None, _too_long()) if line is None else parsed(line)
        if message is not None:
            await heard.send(SessionMessage(message))
        elif refusal is not None:
            await writing.send(SessionMessage(refusal))

    async def read() -> None:
        given = (incoming, asyncio.get_running_loop(), take, ended.set)
        threading.Thread(target=_lines, args=given, name="mulligan-stdin", daemon=True).start()
        async with heard:
            await ended.wait()

    async def write() -> None:
        gone = False
        async with said:
            async for one in said:
                try:
                    if not gone:
                        await anyio.to_thread.run_sync(_put, outgoing, written(one.message), abandon_on_cancel=True)
                except OSError:  # the client reads no more, so there is nobody to serve
                    gone = True
                    ended.set()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(write)
            yield reading, writing
            tasks.cancel_scope.cancel()
    finally:
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)


def parsed(line: bytes) -> tuple[types.JSONRPCMessage | None, types.JSONRPCError | None]:
    """The message of this line, or what its sender is told; neither for an empty line, or for a broken answer."""
    if not line.strip():
        return None, None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        return None, _why(line, error)
    if isinstance(message, types.JSONRPCNotification) and b'"id"' in line and "id" in _loosely(line):
        return None, _refused(None, types.INVALID_REQUEST, "The id of a request must be a text or a whole number.")
    return message, None


def written(message: types.JSONRPCMessage) -> bytes:
    """The message as its line. What cannot be written at all is an error to whoever waits for it."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError:
        log.exception("a message could not be written")
        id = getattr(message, "id", None)
        return written(_refused(id, types.INTERNAL_ERROR, "The answer holds what JSON cannot."))


def _aside() -> tuple[int, int]:
    """Descriptors of standard input and output, whose places are taken by nothing and by standard error."""
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def _lines(incoming: int, loop: asyncio.AbstractEventLoop, take: Take, ended: Callable[[], object]) -> None:
    """Hands each line on, one when the one before was taken; None for one that is too long. Then says that it ended."""
    source = io.BufferedReader(io.FileIO(incoming, closefd=False), 1 << 16)
    with suppress(OSError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody listens
        while line := source.readline(LONGEST + 1):
            whole = len(line) <= LONGEST or line.endswith(b"\n")
            rest = line
            while not whole and rest and not rest.endswith(b"\n"):
                rest = source.readline(1 << 16)
            asyncio.run_coroutine_threadsafe(cast(Any, take(line if whole else None)), loop).result()
    with suppress(RuntimeError):  # the loop was closed before
        loop.call_soon_threadsafe(ended)


def _put(outgoing: int, line: bytes) -> None:
    rest = memoryview(line)
    while rest:
        rest = rest[os.write(outgoing, rest) :]


def _why(line: bytes, error: ValidationError) -> types.JSONRPCError | None:
    """What is wrong with a line that is no message, said to the id that it has, if that can be found."""
    found = _loosely(line)
    for one in error.errors(include_url=False):
        if one["type"] == "json_invalid":
            said = f"This line cannot be read as JSON in UTF-8: {one.get('ctx', {}).get('error', 'it is broken')}."
            return _refused(_id(found), types.PARSE_ERROR, said)
    if "method" not in found and ("result" in found or "error" in found):
        return None
    said = "A message is one JSON object: a request, a notification or an answer."
    return _refused(_id(found), types.INVALID_REQUEST, said)


def _id(found: Mapping[str, Any]) -> str | int | None:
    """The id to answer to; None for one that is none, or that cannot be given back as it came."""
    id = found.get("id")
    if isinstance(id, str):
        return id if id.isprintable() and "\ufffd" not in id else None
    return id if isinstance(id, int) and not isinstance(id, bool) else None


def _too_long() -> types.JSONRPCError:
    return _refused(None, types.INVALID_REQUEST, f"The message is longer than {LONGEST} bytes, so it was not read.")


def _loosely(line: bytes) -> Mapping[str, Any]:
    """What the line says, as far as Python can read it; empty where it cannot, or where that is no object."""
    try:
        found: Any = json.loads(line.decode("utf-8", "replace"), parse_int=_whole)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= 4000 else None  # Python reads no more than 4300


def _refused(id: str | int | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))
