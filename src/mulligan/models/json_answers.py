"""Find the JSON in a model's answer, whatever surrounds it."""

from __future__ import annotations

import json
import math
import re
from typing import cast

from mulligan.core.records import Json

_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"```[ \t]*\w*[ \t]*\n(.*?)```", re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_STARTS_TRIED = 200
DEEPEST = 100  # levels of nesting: what is deeper cannot be recorded, exported and checked everywhere


def parse(text: str, schema: Json = None) -> Json:
    """The JSON value in `text`: all of it, else in a code fence, else the longest in the prose.

    Only a value of the schema's outermost type counts. Raw line breaks inside strings are allowed, NaN is not.
    Raises `ValueError` with the reason, and with the place if the text is nearly JSON.
    """
    text = _THOUGHTS.sub("", text).strip()
    if not text:
        raise ValueError("the answer is empty")
    wanted = _wanted(schema)
    try:
        value = whole(text)
    except ValueError as error:
        reason = str(error)
    else:
        if wanted is None or _is(value, wanted):
            return value
        reason = f"it is not of the type {schema['type']!r} that the schema asks for"
    for inner in _FENCED.findall(text):
        try:
            value = whole(inner)
        except ValueError:
            continue
        if wanted is None or _is(value, wanted):
            return value
    found = _longest(text, wanted)
    if found is None:
        raise ValueError(f"the answer is not valid JSON: {reason}")
    return found


def _wanted(schema: Json) -> tuple[type, ...] | None:
    kind: Json = cast(dict[str, Json], schema).get("type") if isinstance(schema, dict) else None
    return _TYPES.get(kind) if isinstance(kind, str) else None


def _is(value: Json, wanted: tuple[type, ...]) -> bool:
    return isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not a JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits)


_TOO_DEEP = "it is nested too deeply"
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse, parse_float=_finite)


def whole(text: str) -> Json:
    """All of `text` as one JSON value. Raises `ValueError`."""
    try:
        return recordable(_DECODER.decode(text.strip()))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def recordable(value: Json, levels: int = DEEPEST) -> Json:
    """The value in a form that can be recorded and sent again: lone surrogates are replaced.

    Raises `ValueError` for what is nested more than `levels` deep, and for nan and inf.
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


def _longest(text: str, wanted: tuple[type, ...] | None) -> Json:
    """The object or array that covers most of the text; the first of several that are as long."""
    best: Json = None
    length = at = 0
    for _ in range(_STARTS_TRIED):
        start = min((n for n in (text.find("{", at), text.find("[", at)) if n >= 0), default=-1)
        if start < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, start)
            value = recordable(value)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        at = end
        if end - start > length and (wanted is None or _is(value, wanted)):
            best, length = value, end - start
    return best
