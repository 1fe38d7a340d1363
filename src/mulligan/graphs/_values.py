"""Convert values of databases to JSON. What JSON cannot express becomes a string: ISO 8601 dates, "Infinity"."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from mulligan.core.records import Json


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
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
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
    """In ISO 8601: P3DT7200S."""
    seconds = value.seconds + value.microseconds / 1_000_000
    days = f"{value.days}D" if value.days else ""
    rest = f"T{seconds:g}S" if seconds or not days else ""
    return f"P{days}{rest}"


def _key(value: Any) -> str:
    """The key of a map: a string in JSON."""
    made = json_of(value, str)
    return made if isinstance(made, str) else str(made)
