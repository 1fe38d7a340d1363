"""Read files in OpenTelemetry's JSON form: a request on each line, as collectors write them, or one for the file.

Nothing is held but the request that is read. Files may be gzipped.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import math
import os
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Any, Literal, TypeAlias, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json
from mulligan.text.json_lines import parsed

LARGEST = 64 * 1024 * 1024
"""Bytes of one request at most: of a line, or of a file that is one."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_REMOTE_KNOWN, _REMOTE = 0x100, 0x200
"""Flags of a span: whether it says where its parent is, and that this is in another process."""
_BYTES = re.compile(r"[0-9a-fA-F]*")


@dataclass(frozen=True)
class SpanEvent:
    """An event of a span, or a record of a log that names one.

    Attributes:
        body: of a record, what it says.
        trace, span: whose event it is; "" where nothing says so.
        at: where it stands, for errors.
    """

    name: str
    attributes: Mapping[str, Json]
    body: Json = None
    time: float = 0.0
    trace: str = ""
    span: str = ""
    at: str = ""


Status: TypeAlias = Literal["", "ok", "error"]


@dataclass(frozen=True)
class Span:
    """A span. Times are seconds since the epoch.

    Attributes:
        parent: the id of the span that it is part of; "" for none.
        near: its parent is of the same process, so that it is recorded, too.
        said: what its status says of it.
        at: where it stands, for errors.
    """

    trace: str
    id: str
    name: str = ""
    parent: str = ""
    near: bool = False
    attributes: Mapping[str, Json] = field(default_factory=dict[str, Json])
    events: tuple[SpanEvent, ...] = ()
    status: Status = ""
    said: str = ""
    start: float = 0.0
    end: float = 0.0
    at: str = ""

    def text(self, *keys: str) -> str:
        """The first text under these keys; "" where none has one."""
        return next((value for key in keys if isinstance(value := self.attributes.get(key), str) and value), "")


class TraceFile:
    """The spans and records of logs in a file.

    Attributes:
        torn: whether the last line was cut off: who writes it has not finished.
        others: metrics and other records that are neither spans nor events.
    """

    def __init__(self, file: str | os.PathLike[str], name: str = "") -> None:
        self.name = name or os.fspath(file)
        self._file = file
        self.torn = False
        self.others = 0

    def __iter__(self) -> Iterator[Span | SpanEvent]:
        """Raises `InvalidInput` that names the line and the span."""
        try:
            with open(self._file, "rb") as opened:
                yield from self.read(opened)
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def read(self, opened: IO[bytes]) -> Iterator[Span | SpanEvent]:
        """Those in an open file. Raises `InvalidInput`."""
        plain = _plain(opened, self.name)
        if _is_printed(plain):
            yield from self._printed(plain)
            return
        for at, request in self._requests(plain):
            for one in cast("list[Json]", request) if isinstance(request, list) else [request]:
                yield from self._in_request(one, at)

    def _requests(self, opened: IO[bytes]) -> Iterator[tuple[str, Json]]:
        """Each request with the line that it stands on."""
        number, first = 0, True
        while line := _line(opened, f"{self.name}:{number + 1}"):
            number += 1
            if not line.strip():
                continue
            where = f"{self.name}:{number}"
            try:
                yield where, parsed(self.name, _decoded(line, where).rstrip("\r\n"), number)
            except InvalidInput:
                if first:  # a file that is one request, on many lines
                    rest = _line(opened, self.name, whole=True)
                    if rest.strip():
                        whole = _decoded(line, where) + _decoded(rest, where)
                        yield self.name, parsed(self.name, whole, number)
                        return
                elif not line.endswith(b"\n"):
                    self.torn = True
                    return
                raise
            first = False
        if first:
            raise InvalidInput(f"{self.name} is empty.")

    def _printed(self, opened: IO[bytes]) -> Iterator[Span]:
        """The spans that Python's ConsoleSpanExporter printed: an object each, on one line, or with its braces alone in
        their lines. What a program printed around them is no span."""
        lines: list[str] = []
        number = start = 0
        while line := _line(opened, f"{self.name}:{number + 1}"):
            number += 1
            text = _decoded(line, f"{self.name}:{number}").rstrip("\r\n")
            alone = not start and _CONSOLE.match(text.encode()) is not None
            if text == "{" or alone:
                lines, start = [], number
            if start:
                lines.append(text)
            if alone or (text == "}" and start):
                place = f"{self.name}:{start}"
                yield _printed_span(_table(parsed(self.name, "\n".join(lines), start), place), place)
                start = 0
        self.torn = bool(start)

    def _in_request(self, request: Json, at: str) -> Iterator[Span | SpanEvent]:
        table = _table(request, at)
        known = False
        number = 0
        for key, scopes, listed in _KINDS:
            for n, resource in enumerate(_list(table, key, at), 1):
                where = f"{at}, {key} {n}"
                about = _attributes(_table(_table(resource, where).get("resource") or {}, where), where)
                older = "instrumentationLibrary" + scopes.removeprefix("scope")  # until 2022
                for scope in (
                    *_list(_table(resource, where), scopes, where),
                    *_list(_table(resource, where), older, where),
                ):
                    for one in _list(_table(scope, where), listed, where):
                        number += 1
                        place = f"{at}, {_NAMES[listed]} {number}"
                        if listed == "spans":
                            yield _span(_table(one, place), about, place)
                        elif event := _record(_table(one, place), about, place):
                            yield event
                        else:
                            self.others += 1
            known = known or key in table
        if not known and "resourceMetrics" not in table and table:
            raise InvalidInput(f"{at} has no resourceSpans or resourceLogs, which OTLP exporters write.")
        self.others += "resourceMetrics" in table


_KINDS = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
_NAMES = {"spans": "span", "logRecords": "record"}


def looks_like_traces(beginning: bytes) -> bool:
    """Whether a file that begins so is one to read here."""
    if beginning.startswith(_ZSTD):
        return True
    if beginning.startswith(_GZIP):
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(beginning, _HEAD)
        except zlib.error:
            return False
    start = beginning[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    return bool(_BEGINNING.match(start) or _CONSOLE.search(start))


_HEAD = 4096
_CONSOLE = re.compile(rb'(?m)^\{\s*"name": "[^\n]*",\s*"context": \{\s*"trace_id": "0x')
"""How a span that Python's ConsoleSpanExporter prints begins."""
_BEGINNING = re.compile(rb'(?:\[\s*)?\{\s*"resource(?:Spans|Logs|Metrics)"\s*:')


def _is_printed(opened: IO[bytes]) -> bool:
    try:
        return bool(_CONSOLE.search(cast(Any, opened).peek(_HEAD)[:_HEAD]))
    except (EOFError, zlib.error, gzip.BadGzipFile):  # reading says so
        return False


def _plain(opened: IO[bytes], name: str) -> IO[bytes]:
    """What is in the file once it is unpacked."""
    head = cast(Any, opened).peek(4)[:4] if hasattr(opened, "peek") else b""
    if head.startswith(_ZSTD):
        raise InvalidInput(
            f"{name} is compressed with zstd, which Mulligan cannot read. Decompress it first: zstd -d {name}"
        )
    return cast(IO[bytes], gzip.open(opened)) if head.startswith(_GZIP) else opened


def _line(opened: IO[bytes], at: str, *, whole: bool = False) -> bytes:
    try:
        line = opened.read(LARGEST + 1) if whole else opened.readline(LARGEST + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InvalidInput(f"{at}: the file cannot be unpacked: {error}.") from error
    if len(line) > LARGEST:
        raise InvalidInput(
            f"{at}: one request is larger than {LARGEST:,} bytes. Write one request per line, as the collector's "
            "file exporter does."
        )
    return line


def _decoded(line: bytes, at: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{at}: not valid UTF-8 (byte {error.start}).") from error


# --- one span --------------------------------------------------------------------------------------------------------


def _span(row: Mapping[str, Json], about: Mapping[str, Json], at: str) -> Span:
    trace, id = _id(row, "traceId", 32, at), _id(row, "spanId", 16, at)
    if not trace or not id:
        raise InvalidInput(f"{at}: {'spanId' if trace else 'traceId'} is missing.")
    status = _table(row.get("status") or {}, f"{at}, status")
    code = status.get("code")
    said = status.get("message")
    flags = row.get("flags")
    events = tuple(_event(one, at, n) for n, one in enumerate(_list(row, "events", at), 1))
    parent = _id(row, "parentSpanId", 16, at)
    here = flags & (_REMOTE_KNOWN | _REMOTE) == _REMOTE_KNOWN if isinstance(flags, int) else False
    return Span(
        trace,
        id,
        _text(row, "name", at),
        parent,
        bool(parent) and here,
        {**about, **_attributes(row, at)},
        tuple(replace(event, trace=trace, span=id) for event in events),
        "error" if code in (2, "STATUS_CODE_ERROR") else "ok" if code in (1, "STATUS_CODE_OK") else "",
        said if isinstance(said, str) else "",
        _time(row, "startTimeUnixNano", at),
        _time(row, "endTimeUnixNano", at),
        at,
    )


def _printed_span(row: Mapping[str, Json], at: str) -> Span:
    """A span as Python's ConsoleSpanExporter prints it. The processor of one process has all of its spans."""
    about, status = _table(row.get("context") or {}, at), _table(row.get("status") or {}, at)
    ids = {
        key: value.removeprefix("0x") if isinstance(value, str) else None
        for key, value in (
            ("traceId", about.get("trace_id")),
            ("spanId", about.get("span_id")),
            ("parentSpanId", row.get("parent_id")),
        )
    }
    trace, id, parent = _id(ids, "traceId", 32, at), _id(ids, "spanId", 16, at), _id(ids, "parentSpanId", 16, at)
    if not trace or not id:
        raise InvalidInput(f"{at}: {'span_id' if trace else 'trace_id'} is missing.")
    resource = _table(_table(row.get("resource") or {}, at).get("attributes") or {}, at)
    events: list[SpanEvent] = []
    for n, one in enumerate(_list(row, "events", at), 1):
        where = f"{at}, event {n}"
        event = _table(one, where)
        attributes = _table(event.get("attributes") or {}, where)
        name, time = _text(event, "name", where), _moment(event, "timestamp", where)
        events.append(SpanEvent(name, attributes, None, time, trace, id, where))
    code = status.get("status_code")
    return Span(
        trace,
        id,
        _text(row, "name", at),
        parent,
        bool(parent),
        {**resource, **_table(row.get("attributes") or {}, at)},
        tuple(events),
        "error" if code == "ERROR" else "ok" if code == "OK" else "",
        _text(status, "description", at),
        _moment(row, "start_time", at),
        _moment(row, "end_time", at),
        at,
    )


def _moment(row: Mapping[str, Json], key: str, at: str) -> float:
    """Seconds since the epoch of a time as ISO 8601 has it; 0 where there is none."""
    text = _text(row, key, at)
    try:
        return datetime.fromisoformat(text).timestamp() if text else 0.0
    except ValueError:
        raise InvalidInput(f"{at}: {key} must be a time such as 2026-01-31T12:00:00Z, not {text!r:.60}.") from None


def _event(value: Json, at: str, number: int) -> SpanEvent:
    where = f"{at}, event {number}"
    row = _table(value, where)
    time = _time(row, "timeUnixNano", where)
    return SpanEvent(_text(row, "name", where), _attributes(row, where), None, time, at=where)


def _record(row: Mapping[str, Json], about: Mapping[str, Json], at: str) -> SpanEvent | None:
    """The event that a record of a log is; None for one that is none."""
    attributes = {**about, **_attributes(row, at)}
    name = row.get("eventName") or attributes.get("event.name")
    if not isinstance(name, str) or not name:
        return None
    body = row.get("body")
    time = _time(row, "timeUnixNano", at) or _time(row, "observedTimeUnixNano", at)
    trace, span = _id(row, "traceId", 32, at), _id(row, "spanId", 16, at)
    return SpanEvent(name, attributes, None if body is None else _value(body, at), time, trace, span, at)


def _id(row: Mapping[str, Json], key: str, digits: int, at: str) -> str:
    """An id in hexadecimal digits; in base64, as some write it, it is turned into them. "" where all are zero."""
    text = _text(row, key, at)
    if len(text) != digits or not _BYTES.fullmatch(text):
        if not text:
            return ""
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) * 2 != digits:
            raise InvalidInput(f"{at}: {key} must be {digits} hexadecimal digits, not {text!r:.60}.")
        text = raw.hex()
    return text.lower() if text.strip("0") else ""


def _time(row: Mapping[str, Json], key: str, at: str) -> float:
    value = row.get(key)
    if value is None:
        return 0.0
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 25:
        return int(value) / 1e9
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e24:
        return value / 1e9
    raise InvalidInput(f"{at}: {key} must be nanoseconds since 1970, not {value!r:.60}.")


def _attributes(row: Mapping[str, Json], at: str) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for n, one in enumerate(_list(row, "attributes", at), 1):
        where = f"{at}, attribute {n}"
        pair = _table(one, where)
        found[_text(pair, "key", where)] = _value(pair.get("value"), where)
    return found


def _value(value: Json, at: str) -> Json:
    """The value in one of the forms of OTLP."""
    if value is None:
        return None
    table = _table(value, at)
    try:
        for key, one in table.items():
            if one is None:
                continue
            if key in ("stringValue", "boolValue") and isinstance(one, str if key == "stringValue" else bool):
                return one
            if key == "intValue" and isinstance(one, (int, str)) and not isinstance(one, bool):
                return int(one)
            if key == "doubleValue" and isinstance(one, (int, float, str)) and not isinstance(one, bool):
                number = float(one)
                return number if math.isfinite(number) else None
            if key == "bytesValue":
                return "[bytes]"
            if key == "arrayValue":
                return [_value(each, at) for each in _list(_table(one, at), "values", at)]
            if key == "kvlistValue":
                pairs = [_table(each, at) for each in _list(_table(one, at), "values", at)]
                return {_text(pair, "key", at): _value(pair.get("value"), at) for pair in pairs}
            raise InvalidInput(f"{at}: {key!r:.40} with {one!r:.40} is not a valid OTLP value.")
    except InvalidInput:
        raise
    except (ValueError, OverflowError):
        raise InvalidInput(f"{at}: {table!s:.60} is not a number.") from None
    except RecursionError:
        raise InvalidInput(f"{at} is nested too deeply.") from None
    return None


def _table(value: Json, at: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{at} must be an object, not {type(value).__name__}.")
    return cast("dict[str, Json]", value)


def _list(row: Mapping[str, Json], key: str, at: str) -> Sequence[Json]:
    value = row.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidInput(f"{at}: {key} must be a list, not {type(value).__name__}.")
    return cast("list[Json]", value)


def _text(row: Mapping[str, Json], key: str, at: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(f"{at}: {key} must be a string, not {type(value).__name__}.")
    return value
