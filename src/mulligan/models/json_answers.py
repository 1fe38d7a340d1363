"""Find the JSON in a model's answer, whatever surrounds it, and read what is nearly JSON: design/119."""

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
"""JSON as it stands in a text, without the quotation marks around it."""
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
_STARTS_TRIED = 2000
DEEPEST = 100  # levels of nesting: what is deeper cannot be recorded, exported and checked everywhere
UNWRAPPED = "the object was taken out of a list of one"
UNQUOTED = "the JSON was taken out of a text in quotes"


class Reading(NamedTuple):
    """A JSON value in a text. `is_whole`: the text is that value and nothing else. `repairs`: faults that it had."""

    value: Json
    repairs: tuple[str, ...] = ()
    is_whole: bool = False


def parse(text: str, schema: Json = None) -> Json:
    """The JSON value in `text`: see `read`."""
    return read(text, schema).value


def read(text: str, schema: Json = None) -> Reading:
    """The JSON value in `text`: all of it, else the last one in it that fits the schema, else the last of its type.

    Thoughts are passed over. Only a value of the schema's outermost type counts. Raw line breaks inside strings are
    allowed, NaN is not; what is nearly JSON is repaired where it can be read in one way only. Raises `ValueError` with
    the reason, and with the place if the text is nearly JSON.
    """
    wanted = _wanted(schema)
    try:
        found = _as(Reading(whole(text), is_whole=True), wanted)
    except ValueError:
        found = None
    if found:
        return found
    answer, finished = spoken(text)
    answer = answer.strip()
    if not answer:
        raise ValueError("the answer is empty" if finished else "the answer is empty but for thoughts")
    best: tuple[tuple[bool, int, bool], Reading] | None = None
    for candidate in _candidates(answer):
        if found := _as(candidate, wanted):
            fits = _fits(found.value, schema)
            rank = fits, 0 if fits else _shared(found.value, schema), bool(found.value)
            if best is None or rank >= best[0]:
                best = rank, found
    if best is None:
        raise ValueError(f"the answer is not valid JSON: {_reason(answer, wanted, schema)}")
    return best[1]


def read_object(text: str) -> Reading:
    """All of `text` as one JSON object, repaired as by `read`. Raises `ValueError`, also for anything around it."""
    text = text.strip()
    try:
        found = Reading(whole(text), is_whole=True)
    except ValueError:
        near = NearJson(text, 0, DEEPEST)
        found = Reading(recordable(near.value()), tuple(near.repairs))
        if near.at < len(text):
            raise
    if (taken := _as(found, (dict,))) is None:
        raise ValueError("it is not a JSON object")
    return taken


def _candidates(text: str) -> Iterator[Reading]:
    """The JSON values in the text, those of fences that are neither objects nor lists before the others."""
    for inner in (text, *_FENCED.findall(text)):
        if _ESCAPED.match(inner):
            inner = f'"{inner.strip()}"'
        if inner.lstrip()[:1] not in ("{", "["):
            try:
                yield Reading(whole(inner))
            except ValueError:
                continue
    at = 0
    for _ in range(_STARTS_TRIED):
        start = _START.search(text, at)
        if not start:
            return
        near = NearJson(text, start.start(), DEEPEST)
        try:
            value, at = _DECODER.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            try:
                value = near.value()
            except ValueError:
                if near.is_too_deep:
                    return
                at = max(near.at, start.end())  # what was read of it is a part of something else, and no answer
                continue
            at = near.at
        try:
            found = Reading(recordable(value), tuple(near.repairs))
        except ValueError:
            continue
        yield found


def _as(found: Reading, wanted: tuple[type, ...] | None) -> Reading | None:
    """The value if it is of this type, or the one of this type that is in it: in quotes, or in a list of one."""
    value, repairs = found.value, found.repairs
    if wanted is None or _is(value, wanted):
        return found
    if isinstance(value, str) and (dict in wanted or list in wanted):
        try:
            inner = whole(value)
        except ValueError:
            return None
        return Reading(inner, (*repairs, UNQUOTED)) if _is(inner, wanted) else None
    if dict in wanted and isinstance(value, list):
        values = cast(list[Json], value)
        if len(values) == 1 and isinstance(values[0], dict):
            return Reading(values[0], (*repairs, UNWRAPPED))
    return None


def _fits(value: Json, schema: Json) -> bool:
    """Whether the value fits the schema, as far as types, required keys and listed values go."""
    if not isinstance(schema, dict):
        return True
    rule = cast(dict[str, Json], schema)
    for key in ("anyOf", "oneOf"):
        if key in rule and not any(_fits(value, each) for each in cast(list[Json], rule[key])):
            return False
    kind: Json = rule.get("type")
    names = cast(list[Json], kind) if isinstance(kind, list) else [kind]
    kinds = [_TYPES[name] for name in names if isinstance(name, str) and name in _TYPES]
    if kinds and not any(_is(value, one) for one in kinds):
        return False
    if ("enum" in rule and value not in rule["enum"]) or ("const" in rule and value != rule["const"]):
        return False
    if isinstance(value, list) and "items" in rule:
        return all(_fits(one, rule["items"]) for one in cast(list[Json], value))
    if not isinstance(value, dict):
        return True
    table, parts = cast(dict[str, Json], value), cast(dict[str, Json], rule.get("properties") or {})
    required = cast(list[str], rule.get("required") or [])
    strange = table.keys() - parts.keys() if rule.get("additionalProperties") is False else ()
    if strange or not all(key in table for key in required):
        return False
    return all(_fits(one, parts[key]) for key, one in table.items() if key in parts)


def _shared(value: Json, schema: Json) -> int:
    """How many keys the value has of those that the schema names."""
    named: Json = cast(dict[str, Json], schema).get("properties") if isinstance(schema, dict) else None
    keys = set(cast(dict[str, Json], named)) if isinstance(named, dict) else set[str]()
    return len(keys.intersection(cast(dict[str, Json], value))) if isinstance(value, dict) else 0


def _reason(text: str, wanted: tuple[type, ...] | None, schema: Json) -> str:
    try:
        whole(text)
    except ValueError as error:
        return str(error)
    return f"it is not of the type {schema['type']!r} that the schema asks for"


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
