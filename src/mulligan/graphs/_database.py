"""A database inside the worker process: its protocol, the error that it raises, and how it writes values as JSON."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from mulligan.plugins import Json


GRACE = 0.25
"""The seconds after its time limit in which a query may still report that it was too slow; then it is killed."""
EXHAUSTED = 77
"""The exit status of a worker that ran out of memory."""
LONGEST = 2_000
"""The characters of an error message that are kept."""


def address_space() -> int | None:
    """The bytes of address space that this process uses; None if the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            found = re.search(r"^VmSize:\s+(\d+)", status.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) << 10 if found else None


class Trouble(Exception):
    """An error to send to the parent. kind: one of `QueryError`'s, or "gone": the database cannot be reached."""

    def __init__(self, message: str, kind: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line
        self.column = column

    @classmethod
    def clipped(cls, message: str, kind: str, line: int | None, column: int | None) -> Trouble:
        """An error whose long message is cut short."""
        return cls(message if len(message) <= LONGEST else message[:LONGEST] + " ...", kind, line, column)


class Database(Protocol):
    """An open database. `rows` and `schema` raise `Trouble`.

    Attributes:
        files: Whether it opens files or sockets after it is open.
        reserved: The bytes of address space that it has reserved and fills later; they count as its memory.
    """

    files: bool
    reserved: int

    def rows(
        self, query: str, parameters: Mapping[str, Json], seconds: float, rows: int
    ) -> tuple[Sequence[str], Iterator[Sequence[Json]]]:
        """Run a query; return the columns and an iterator over the rows' values.

        Args:
            seconds: The time limit.
            rows: As many rows will be read, and one more to see whether there are more.
        """
        ...

    def schema(self, seconds: float) -> Json:
        """Return the schema as the JSON of a `GraphSchema`."""
        ...

    def settle(self) -> None:
        """Release the last query after its answer was sent. It must not take long."""
        ...


def json_of(value: Any, item: Callable[[Any], Json]) -> Json:
    """Convert a value that is not a node, an edge or a path. Unknown types become `str(value)`.

    Args:
        item: Converts what a list or a map holds.
    """
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, list | tuple):
        return [item(each) for each in cast(list[Any], value)]
    if isinstance(value, dict):
        return {_key(name): item(each) for name, each in cast(dict[Any, Any], value).items()}
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if math.isnan(value):
            return "NaN"
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, decimal.Decimal):  # one with decimals or an exponent stays as it is written: 1.50, 1E+2
        return int(value) if value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, datetime.timedelta):
        return _duration(value)
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return str(value)


def node(id: str, label: str, properties: Mapping[str, Json]) -> Json:
    return {"id": id, "label": label, "properties": dict(properties)}


def edge(label: str, source: str, target: str, properties: Mapping[str, Json]) -> Json:
    return {"label": label, "source": source, "target": target, "properties": dict(properties)}


def _duration(value: datetime.timedelta) -> str:
    """In ISO 8601, as days and seconds: P3DT7200S, -PT0.5S."""
    if value < datetime.timedelta(0):
        return f"-{_duration(-value)}"
    days = f"{value.days}D" if value.days else ""
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    time = f"T{value.seconds}{fraction}S" if value.seconds or fraction or not days else ""
    return f"P{days}{time}"


def _key(value: Any) -> str:
    """The key of a map: a string in JSON."""
    made = json_of(value, str)
    return made if isinstance(made, str) else str(made)
