"""Values of databases as JSON. What JSON has no word for becomes text: dates as ISO 8601, infinities by name."""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Mapping
from typing import Any

from mulligan.core.records import Json


def plain(value: Any) -> Json:
    """A value without nodes in it: the rest each database tells apart by itself. Anything unknown as `str` says it."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, datetime.timedelta):
        return duration(value)
    if isinstance(value, datetime.date | datetime.time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    return str(value)


def number(value: float) -> Json:
    """A float, or "NaN", "Infinity", "-Infinity", which strict JSON has no numbers for."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def duration(value: datetime.timedelta) -> str:
    """As ISO 8601 says it: P3DT7200S."""
    seconds = value.seconds + value.microseconds / 1_000_000
    days = f"{value.days}D" if value.days else ""
    rest = f"T{seconds:g}S" if seconds or not days else ""
    return f"P{days}{rest}"


def key(value: Any) -> str:
    """A key of a map: JSON has texts only."""
    made = plain(value)
    return made if isinstance(made, str) else str(made)


def node(id: str, label: str, properties: Mapping[str, Json]) -> Json:
    return {"id": id, "label": label, "properties": dict(properties)}


def edge(label: str, source: str, target: str, properties: Mapping[str, Json]) -> Json:
    return {"label": label, "source": source, "target": target, "properties": dict(properties)}
