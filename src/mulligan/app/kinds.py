"""Checks a setting's value against the annotation of its parameter, and describes the annotation in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def fits(value: Any, kind: Any) -> bool:
    """Whether the value fits the annotation. Any value fits one that is not made of plain kinds."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in parts)
    if origin is Literal:
        return value in parts
    if kind in (int, float):
        return isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    if kind in _WORDS:
        return isinstance(value, kind)
    if origin in (Sequence, list, tuple):
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            return False
        return not parts or all(fits(one, parts[0]) for one in cast(Sequence[Any], value))
    return isinstance(value, Mapping) if origin in (Mapping, dict) else True


def worded(kind: Any) -> str:
    """The annotation in words: "a whole number or null"."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(worded(part) for part in parts)
    if origin is Literal:
        return " or ".join(repr(part) for part in parts)
    if origin in (Sequence, list, tuple):
        each = worded(parts[0]) if parts else ""
        return f"a list of {each}" if each else "a list"
    return _WORDS.get(kind, "a table" if origin in (Mapping, dict) else "")
