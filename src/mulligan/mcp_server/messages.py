"""Parses and serializes JSON-RPC messages, with limits on their size.

All transports share this. Bytes become a message, or the error response to send back. For a message that cannot be
parsed, the id is looked for in its first and last bytes, so that its sender learns which request failed.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from pydantic_core import from_json

from mulligan.core.errors import InvalidInput

log = logging.getLogger("mulligan.serve")

MEGABYTE = 1024 * 1024
MAX_BYTES = 16 * MEGABYTE
"""The largest message accepted."""

MAX_VALUES = 250_000
"""The most values (strings, numbers, arrays, objects) in a message: each takes far more memory than bytes."""

VALUE_BYTES = 128
"""Estimated memory for a value, besides its text."""

BUSY = -32010
"""Error code for a request refused because too many are in flight."""

HEAD = 64 * 1024
"""Bytes at the start of an unparsable message that are searched for top-level fields."""

TAIL = 2048
"""Bytes at its end that are searched for the fields after its params."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NAME = re.compile(rb'[\s,{]*"([^"\\]{0,40})"\s*:\s*')
_SCALAR = re.compile(rb'(?:"(?:[^"\\]|\\.)*"|-?\d{1,4000}|true|false|null)(?=\s*[,}])', re.DOTALL)
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


class Refused(Exception):
    """A message was not accepted. `error` is the response; None if the message was itself a response."""

    def __init__(self, error: types.JSONRPCError | None) -> None:
        super().__init__(error.error.message if error else "a malformed response")
        self.error = error


LISTEN = "subscriptions/listen"
"""The request whose answer is a stream of notifications: it is no call, and nobody waits for its end."""


@dataclass(frozen=True)
class Message:
    """A message, and about how many bytes of memory it takes."""

    content: types.JSONRPCMessage
    weight: int


def parse(raw: bytes) -> Message:
    """Returns the message in these bytes.

    Raises:
        Refused: for invalid JSON, JSON nested more than 200 levels, an invalid message, or one over a limit.
    """
    if len(raw) > MAX_BYTES:
        raise too_long(raw, raw)
    values = _count_values(raw)
    if values > MAX_VALUES:
        raise _refuse(raw, raw, types.INVALID_REQUEST, f"The message has more than {MAX_VALUES} values: send fewer.")
    try:
        value = from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        raise _refuse(raw, raw, types.PARSE_ERROR, f"The message is not valid JSON in UTF-8: {error}.") from None
    return Message(_validate(value), len(raw) + VALUE_BYTES * values)


def too_long(head: bytes = b"", tail: bytes = b"") -> Refused:
    """The refusal of a message over `MAX_BYTES`, given both its ends."""
    return _refuse(head, tail, types.INVALID_REQUEST, f"The message is longer than {MAX_BYTES // MEGABYTE} MB.")


def refused(code: int, text: str, id: types.RequestId | None = None) -> Refused:
    return Refused(error_response(code, text, id))


def error_response(code: int, text: str, id: types.RequestId | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=text))


def serialize(message: types.JSONRPCMessage) -> bytes:
    """The message as JSON without a newline; an error response if JSON cannot express it."""
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode()
    except ValueError:
        id = getattr(message, "id", None)
        return serialize(error_response(types.INTERNAL_ERROR, "The answer cannot be written as JSON.", id))


def too_many_values(raw: bytes) -> bool:
    """Whether this JSON has more values than a message may have."""
    return _count_values(raw) > MAX_VALUES


def _count_values(raw: bytes) -> int:
    """An upper bound: commas and brackets start values. Strings are removed only if they could change the verdict."""
    count = _count_separators(raw)
    return count if count <= MAX_VALUES else _count_separators(_STRING.sub(b"", raw))


def _count_separators(raw: bytes) -> int:
    return 1 + raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def _validate(value: Any) -> types.JSONRPCMessage:
    if not isinstance(value, dict):
        batch = " The protocol revisions served here do not support batches." if isinstance(value, list) else ""
        raise refused(types.INVALID_REQUEST, f"A message must be a single JSON object.{batch}")
    fields = cast("dict[str, Any]", value)
    id = _id(fields)
    if "method" in fields and "id" in fields and id is None:  # as a notification it would never be answered
        raise refused(types.INVALID_REQUEST, "The id of a request must be a string or an integer.")
    try:
        return types.jsonrpc_message_adapter.validate_python(fields, by_name=False)
    except ValidationError:
        if _is_response(fields):
            raise Refused(None) from None
        text = 'A message needs "jsonrpc": "2.0"and a string as method; params, if given, must be an object.'
        raise refused(types.INVALID_REQUEST, text, id) from None


def _refuse(head: bytes, tail: bytes, code: int, text: str) -> Refused:
    fields = outline(head, tail)
    return Refused(None) if _is_response(fields) else refused(code, text, _id(fields))


def _id(fields: Mapping[str, Any]) -> types.RequestId | None:
    """The id, if it is valid and can be encoded."""
    id = fields.get("id")
    if isinstance(id, int) and not isinstance(id, bool):
        return id
    return id if isinstance(id, str) and not _SURROGATE.search(id) else None


def _is_response(fields: Mapping[str, Any]) -> bool:
    return "method" not in fields and ("result" in fields or "error" in fields)


def outline(head: bytes, tail: bytes) -> Mapping[str, Any]:
    """Finds the top-level fields of a message that cannot be parsed: too long, too deep, malformed.

    Args:
        head: its first bytes.
        tail: its last bytes, which may overlap.

    Returns:
        Scalar fields with their values, others with None.
    """
    return {**_first_fields(head[:HEAD]), **_last_fields(tail[-TAIL:])}


def _first_fields(head: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    at = len(head) - len(head.lstrip())
    if not head[at:].startswith(b"{"):
        return fields
    while name := _NAME.match(head, at):
        scalar = _SCALAR.match(head, name.end())
        fields[name[1].decode("utf-8", "replace")] = _load(scalar[0]) if scalar else None
        end = scalar.end() if scalar else _closing_bracket(head, name.end())
        if end is None:
            break
        at = end
    return fields


def _closing_bracket(head: bytes, at: int) -> int | None:
    """Where the array or object that starts at `at` ends; None: beyond `head`."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(head, at):
        if match[0] in b"[{":
            depth += 1
        elif match[0] in b"]}":
            depth -= 1
        if depth <= 0:
            return match.end()
    return None


def _last_fields(tail: bytes) -> dict[str, Any]:
    """The fields in the longest end of the message that is valid JSON with a bracket put before it."""
    for comma in re.finditer(rb',(?=\s*")', tail):
        found = _load(b"{" + tail[comma.end() :])
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    return {}


def _load(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8", "replace"), parse_int=_parse_int)
    except (ValueError, RecursionError):
        return None


def _parse_int(digits: str) -> int | None:
    """None for a number with more digits than Python converts."""
    return int(digits) if len(digits) <= 4000 else None


@asynccontextmanager
async def protocol_errors(context: ServerRequestContext[Any, Any]) -> AsyncGenerator[None]:
    """Raises `InvalidInput` as `INVALID_PARAMS`; logs any other exception, and raises `INTERNAL_ERROR` for it."""
    try:
        yield
    except MCPError:
        raise
    except InvalidInput as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except Exception as error:
        log.exception("%s failed", context.method)
        raise MCPError(types.INTERNAL_ERROR, "The server failed; see its log.") from error
