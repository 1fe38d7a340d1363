"""Which items of a LangGraph store are meant: filters on values, and patterns of namespaces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def fits(value: Mapping[str, Json], wanted: Mapping[str, Any] | None) -> bool:
    """Whether the value holds what is wanted, key by key: a value to equal, or {"$gte": 0.5} and the like.

    Raises `InvalidInput` for an operator that there is not.
    """
    return all(_fits(value.get(name), one) for name, one in (wanted or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        table = cast(Mapping[str, Any], wanted)
        if any(str(name).startswith("$") for name in table):
            return all(_compared(value, name, against) for name, against in table.items())
        return isinstance(value, Mapping) and fits(cast(Mapping[str, Json], value), table)
    if isinstance(wanted, list | tuple):
        listed = cast(Sequence[Any], wanted)
        if not isinstance(value, list | tuple) or len(cast(Sequence[Any], value)) != len(listed):
            return False
        return all(_fits(one, other) for one, other in zip(cast(Sequence[Any], value), listed, strict=True))
    return value == wanted


def _compared(value: Any, name: str, against: Any) -> bool:
    if name not in _COMPARED:
        raise InvalidInput(f"A filter knows {', '.join(_COMPARED)}, and not {name}.")
    try:
        return bool(_COMPARED[name](value, against))
    except TypeError:  # of different kinds: neither is more
        return False


def matches(namespace: tuple[str, ...], condition: tuple[str, tuple[str, ...]]) -> bool:
    """Whether a namespace begins, or ends, with this path; "*" stands for any label."""
    kind, path = condition
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", there) for wanted, there in zip(path, part, strict=True))
