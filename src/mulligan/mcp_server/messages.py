"""What is one message of JSON-RPC, whatever carried it: bytes become a message, or the error that their sender is told.

Nothing that is read can be larger than what is said here, nor its error tell more than where it is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
from pydantic import ValidationError
from pydantic_core import from_json

from mulligan.mcp_server.outline import outline

MEGABYTE = 1024 * 1024
LONGEST = 16 * MEGABYTE
"""Bytes that a message may have."""

VALUES = 250_000
"""Values (texts, numbers, lists, objects) that a message may hold: in memory each takes far more than on the wire."""

A_VALUE = 128
"""Bytes that a value is reckoned at, beside its text."""

BUSY = -32010
"""Our error code for a request that was not taken in: too many are in flight."""

_HALF = re.compile("[\ud800-\udfff]")
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Refused(Exception):
    """No message, or none that we take. `error` is the answer; None where it would answer an answer."""

    def __init__(self, error: types.JSONRPCError | None) -> None:
        super().__init__(error.error.message if error else "a broken answer")
        self.error = error


@dataclass(frozen=True)
class Message:
    """A message, and about how many bytes of memory it takes."""

    content: types.JSONRPCMessage
    weight: int


def read(raw: bytes) -> Message:
    """Raises `Refused`. What is nested more deeply than the parser goes (200 levels) is as good as no JSON."""
    if len(raw) > LONGEST:
        raise too_long(raw, raw)
    values = _values(raw)
    if values > VALUES:
        fields = outline(raw, raw)
        text = f"The message holds more than {VALUES} values: send less at a time."
        raise Refused(None) if _answers(fields) else refused(types.INVALID_REQUEST, text, _id(fields))
    try:
        said = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise _unreadable(raw, error) from None
    return Message(_checked(said), len(raw) + A_VALUE * values)


def refused(code: int, text: str, id: types.RequestId | None = None) -> Refused:
    return Refused(types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=text)))


def too_long(head: bytes = b"", tail: bytes = b"") -> Refused:
    """Said to the id that is found at one of the ends of the message."""
    fields = outline(head, tail)
    if _answers(fields):
        return Refused(None)
    text = f"The message is longer than {LONGEST // MEGABYTE} MB: send less at a time."
    return refused(types.INVALID_REQUEST, text, _id(fields))


def written(message: types.JSONRPCMessage) -> bytes:
    """The message as JSON, without a line end. What JSON cannot hold becomes an error for whoever waits for it."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        id = getattr(message, "id", None)
        return written(answered_with(types.INTERNAL_ERROR, "The answer holds what JSON cannot.", id))


def answered_with(code: int, text: str, id: types.RequestId | None) -> types.JSONRPCError:
    return cast("types.JSONRPCError", refused(code, text, id).error)


def holds_too_much(raw: bytes) -> bool:
    """Whether this JSON holds more values than a message may."""
    return _values(raw) > VALUES


def _values(raw: bytes) -> int:
    """How many values there are at most: commas and brackets begin them. Texts are set aside only where it matters."""
    crude = _marks(raw)
    return crude if crude <= VALUES else _marks(_TEXT.sub(b"", raw))


def _marks(raw: bytes) -> int:
    return 1 + raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _unreadable(raw: bytes, error: ValueError) -> Refused:
    """Said to the id that it has, if one is found: somebody may wait for it."""
    fields = outline(raw, raw)
    if _answers(fields):
        return Refused(None)
    return refused(types.PARSE_ERROR, f"This is no JSON in UTF-8 that can be read here: {error}.", _id(fields))


def _id(fields: Mapping[str, Any]) -> types.RequestId | None:
    """The id, if it is one and can be given back."""
    id = fields.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        return id
    return id if isinstance(id, str) and not _HALF.search(id) else None


def _answers(fields: Mapping[str, Any]) -> bool:
    return "method" not in fields and ("result" in fields or "error" in fields)


def _checked(said: Any) -> types.JSONRPCMessage:
    if not isinstance(said, dict):
        batch = " Batches are no part of the revisions that are served." if isinstance(said, list) else ""
        raise refused(types.INVALID_REQUEST, f"A message is one JSON object.{batch}")
    fields = cast("dict[str, Any]", said)
    id = _id(fields)
    if "method" in fields and "id" in fields and id is None:  # taken for a notification, nobody would answer it
        raise refused(types.INVALID_REQUEST, "The id of a request must be a text or a whole number.")
    try:
        return types.jsonrpc_message_adapter.validate_python(fields, by_name=False)
    except ValidationError:
        if _answers(fields):
            raise Refused(None) from None
        text = 'A message needs "jsonrpc": "2.0", a method that is a text, and params that are an object, if any.'
        raise refused(types.INVALID_REQUEST, text, id) from None
