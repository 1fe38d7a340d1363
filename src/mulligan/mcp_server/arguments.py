"""Converts a tool's arguments to the types in its schema: models send numbers, booleans and lists as strings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json

from mulligan.core.records import Json
from mulligan.mcp_server.messages import too_many_values

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.0+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,15})?")
_BOOLEANS = {"true": True, "false": False}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def coerce(value: Json, schema: Mapping[str, Json]) -> Json:
    """The value, with each string in it that has one clear meaning converted to the type that the schema wants.

    `"3"` becomes 3, `"true"` true, the JSON text of an array or object its value; null is dropped from an object where
    the field is optional. The rest stays as it is, for the tool to refuse in its own words.
    """
    schemas: list[Json] = schema.get("anyOf") or [schema]
    fitting = [one for one in schemas if _fits(value, one)]
    if not fitting and isinstance(value, str):
        for one in schemas:
            converted = _convert(value.strip(), one)
            if _fits(converted, one):
                return _coerce_children(converted, one)
    return _coerce_children(value, fitting[0]) if fitting else value


def _fits(value: Json, schema: Mapping[str, Json]) -> bool:
    kind = schema.get("type", "null")
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _convert(text: str, schema: Mapping[str, Json]) -> Json:
    """The value of that type that this text means; the text itself if that is not clear."""
    match schema.get("type"):
        case "integer" if _INTEGER.fullmatch(text):
            return int(text.partition(".")[0])
        case "number" if _NUMBER.fullmatch(text):
            return float(text) if "." in text else int(text)
        case "boolean":
            return _BOOLEANS.get(text.lower(), text)
        case "array" | "object" if not too_many_values(raw := text.encode("utf-8", "surrogatepass")):
            try:
                return from_json(raw, allow_inf_nan=False)
            except ValueError:
                return text
        case _:
            return text


def _coerce_children(value: Json, schema: Mapping[str, Json]) -> Json:
    if isinstance(value, list):
        items: Mapping[str, Json] = schema.get("items", {})
        return [coerce(one, items) for one in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    fields: Mapping[str, Any] = schema.get("properties", {})
    optional = fields.keys() - set(schema.get("required", ()))
    return {
        name: coerce(one, fields.get(name, {}))
        for name, one in cast("dict[str, Json]", value).items()
        if not (one is None and name in optional)
    }
