"""Arguments as their schema has them: models send numbers, truths, lists and objects as text, and null for nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json

from mulligan.core.records import Json
from mulligan.mcp_server.messages import holds_too_much

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.0+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")
_TRUTHS = {"true": True, "false": False}
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def fitted(value: Json, schema: Mapping[str, Json]) -> Json:
    """The value, with whatever in it can mean one thing alone made into the kind that the schema wants.

    `"3"` becomes 3, `"true"` true, the JSON text of a list or an object what it says, and null is left out of an object
    where it is not required. All else stays as it is, for the tool to refuse in its own words.
    """
    kinds: list[Json] = schema.get("anyOf") or [schema]
    fits = [kind for kind in kinds if _is(value, kind)]
    if not fits and isinstance(value, str):
        for kind in kinds:
            made = _made(value.strip(), kind)
            if _is(made, kind):
                return _within(made, kind)
    return _within(value, fits[0]) if fits else value


def _is(value: Json, schema: Mapping[str, Json]) -> bool:
    kind = schema.get("type", "null")
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _KINDS[kind])


def _made(text: str, schema: Mapping[str, Json]) -> Json:
    """What this text says as a value of that kind; the text itself where that is not plain."""
    match schema.get("type"):
        case "integer" if _WHOLE.fullmatch(text):
            return int(text.partition(".")[0])
        case "number" if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        case "boolean":
            return _TRUTHS.get(text.lower(), text)
        case "array" | "object" if not holds_too_much(raw := text.encode("utf-8", "surrogatepass")):
            try:
                return from_json(raw, allow_inf_nan=False)
            except ValueError:
                return text
        case _:
            return text


def _within(value: Json, schema: Mapping[str, Json]) -> Json:
    if isinstance(value, list):
        items: Mapping[str, Json] = schema.get("items", {})
        return [fitted(one, items) for one in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    fields: Mapping[str, Any] = schema.get("properties", {})
    optional = fields.keys() - set(schema.get("required", ()))
    return {
        name: fitted(one, fields.get(name, {}))
        for name, one in cast("dict[str, Json]", value).items()
        if not (one is None and name in optional)
    }
