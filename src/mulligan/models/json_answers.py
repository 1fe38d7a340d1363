"""Finds the JSON in a model's answer, whatever surrounds it, and reads what is nearly JSON (design/119)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import NamedTuple, cast

from mulligan.core.records import Json
from mulligan.models.near_json import NearJson
from mulligan.text.thoughts import spoken

_FENCED = re.compile(r"```[ \t]*(?:\w+[ \t]*)?\n(.*?)```", re.DOTALL)
_ESCAPED = re.compile(r'\s*[{\[]\s*\{?\s*\\"')
"""JSON with escaped quotation marks, as inside a string, but without the quotation marks around it."""
_START = re.compile(r"[{\[]")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
MAX_STARTS = 2000  # opening brackets that are tried
DEEPEST = 100  # levels of nesting: deeper values cannot be recorded, exported and checked everywhere
UNWRAPPED = "the object was taken out of a list of one"
UNQUOTED = "the JSON was taken out of a text in quotes"


class Reading(NamedTuple):
    """A JSON value that was found in a text.

    Attributes:
        repairs: the faults that were repaired.
        is_whole: the text is this value and nothing else.
    """

    value: Json
    repairs: tuple[str, ...] = ()
    is_whole: bool = False


def parse(text: str, schema: Json = None) -> Json:
    """Returns the JSON value in `text`: see `read`."""
    return read(text, schema).value


def read(text: str, schema: Json = None) -> Reading:
    """The JSON value in `text`: the whole text, else the last value that fits the schema, else the last of its type.

    Thoughts are ignored. Only a value of the schema's outermost type counts. Raw line breaks inside strings are
    allowed, NaN is not. Text that is nearly JSON is repaired if it can be read in only one way. Raises `ValueError`
    with the reason, and with the position if the text is nearly JSON.
    """
    types = _wanted_types(schema)
    try:
        reading = _of_type(Reading(whole(text), is_whole=True), types)
    except ValueError:
        reading = None
    if reading:
        return reading
    answer, finished = spoken(text)
    answer = answer.strip()
    if not answer:
        raise ValueError("the answer is empty" if finished else "the answer is empty but for thoughts")
    readings = [reading for candidate in _candidates(answer) if (reading := _of_type(candidate, types))]
    if not readings:
        raise ValueError(f"the answer is not valid JSON: {_reason(answer, schema)}")

    def rank(reading: Reading) -> tuple[bool, int, bool]:
        fits = _fits(reading.value, schema)
        return fits, 0 if fits else _count_named_keys(reading.value, schema), bool(reading.value)

    return max(reversed(readings), key=rank)  # of equal ones, the last


def read_object(text: str) -> Reading:
    """Returns the entire text as one JSON object, repaired as by `read`.

    Raises `ValueError`, also if there is other text around it.
    """
    text = text.strip()
    try:
        reading = Reading(whole(text), is_whole=True)
    except ValueError:
        near = NearJson(text, 0, DEEPEST)
        reading = Reading(recordable(near.value()), tuple(near.repairs))
        if near.at < len(text):
            raise
    if (found := _of_type(reading, (dict,))) is None:
        raise ValueError("it is not a JSON object")
    return found


def _candidates(text: str) -> Iterator[Reading]:
    """The JSON values in the text. Whole texts and fences that are neither objects nor lists come first."""
    for inner in (text, *_FENCED.findall(text)):
        if _ESCAPED.match(inner):
            inner = f'"{inner.strip()}"'
        if inner.lstrip()[:1] not in ("{", "["):
            try:
                yield Reading(whole(inner))
            except ValueError:
                continue
    position = 0
    for _ in range(MAX_STARTS):
        start = _START.search(text, position)
        if not start:
            return
        near = NearJson(text, start.start(), DEEPEST)
        try:
            value, position = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            try:
                value = near.value()
            except ValueError:
                if near.is_too_deep:
                    return
                position = max(near.at, start.end())  # skips the values inside: they are parts, not the answer
                continue
            position = near.at
        try:
            reading = Reading(recordable(value), tuple(near.repairs))
        except ValueError:
            continue
        yield reading


def _of_type(reading: Reading, wanted: tuple[type, ...] | None) -> Reading | None:
    """The reading if its value has one of these types, or the value inside a string or a list of one that has."""
    value, repairs = reading.value, reading.repairs
    if wanted is None or _has_type(value, wanted):
        return reading
    if isinstance(value, str) and (dict in wanted or list in wanted):
        try:
            inner = whole(value)
        except ValueError:
            return None
        return Reading(inner, (*repairs, UNQUOTED)) if _has_type(inner, wanted) else None
    if dict in wanted and isinstance(value, list):
        values = cast(list[Json], value)
        if len(values) == 1 and isinstance(values[0], dict):
            return Reading(values[0], (*repairs, UNWRAPPED))
    return None


def _fits(value: Json, schema: Json) -> bool:
    """Whether the value fits the schema, judged by types, required keys and fixed values."""
    if not isinstance(schema, dict):
        return True
    rule = cast(dict[str, Json], schema)
    for key in ("anyOf", "oneOf"):
        if key in rule and not any(_fits(value, option) for option in cast(list[Json], rule[key])):
            return False
    kind: Json = rule.get("type")
    names = cast(list[Json], kind) if isinstance(kind, list) else [kind]
    kinds = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    if kinds and not any(_has_type(value, types) for types in kinds):
        return False
    if ("enum" in rule and value not in rule["enum"]) or ("const" in rule and value != rule["const"]):
        return False
    if isinstance(value, list) and "items" in rule:
        return all(_fits(item, rule["items"]) for item in cast(list[Json], value))
    if not isinstance(value, dict):
        return True
    table = cast(dict[str, Json], value)
    properties = cast(dict[str, Json], rule.get("properties") or {})
    required = cast(list[str], rule.get("required") or [])
    unknown = table.keys() - properties.keys() if rule.get("additionalProperties") is False else ()
    if unknown or not all(key in table for key in required):
        return False
    return all(_fits(item, properties[key]) for key, item in table.items() if key in properties)


def _count_named_keys(value: Json, schema: Json) -> int:
    """How many of the value's keys the schema names."""
    properties: Json = cast(dict[str, Json], schema).get("properties") if isinstance(schema, dict) else None
    names = set(cast(dict[str, Json], properties)) if isinstance(properties, dict) else set[str]()
    return len(names.intersection(cast(dict[str, Json], value))) if isinstance(value, dict) else 0


def _reason(text: str, schema: Json) -> str:
    """Why the text has no value that can be used."""
    try:
        whole(text)
    except ValueError as error:
        return str(error)
    return f"it is not of the type {schema['type']!r} that the schema asks for"


def _wanted_types(schema: Json) -> tuple[type, ...] | None:
    kind: Json = cast(dict[str, Json], schema).get("type") if isinstance(schema, dict) else None
    return _TYPES.get(kind) if isinstance(kind, str) else None


def _has_type(value: Json, wanted: tuple[type, ...]) -> bool:
    return isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


_TOO_DEEP = "it is nested too deeply"
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse, parse_float=_finite)


def whole(text: str) -> Json:
    """The whole text as one JSON value. Raises `ValueError`."""
    try:
        return recordable(_DECODER.decode(text.strip()))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def recordable(value: Json, levels: int = DEEPEST) -> Json:
    """The value in a form that can be recorded and sent again: with lone surrogates replaced.

    Raises `ValueError` if it is nested more than `levels` deep, or contains nan or inf.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return _refuse(str(value))
    if not isinstance(value, list | dict):
        return value
    if not levels:
        raise ValueError(_TOO_DEEP)
    if isinstance(value, list):
        return [recordable(inner, levels - 1) for inner in cast(list[Json], value)]
    table = cast(dict[str, Json], value)
    return {cast(str, recordable(key)): recordable(inner, levels - 1) for key, inner in table.items()}
