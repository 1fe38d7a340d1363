"""Values that can be read only once: the first try may use up an argument, and the judge may use up a result."""

from __future__ import annotations

import inspect
import io
import itertools
import operator
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import GeneratorType
from typing import Any, cast

from mulligan.recording.outages import Outages

SEARCHED_ITEMS = 20
"""Only lists, tuples and dicts with at most this many items are searched."""
_LAZY = (GeneratorType, map, filter, zip, enumerate, reversed)
"""Iterators that are only ever read, so that `itertools.tee` can replace them; those of `itertools` are others."""


class Inputs:
    """The arguments of a call that can be read only once."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._values = {name: (value, _position(value)) for name, value in _read_once(arguments)}

    def warn(self, function: str) -> None:
        """Warns of the arguments that a try has read, once for each function."""
        for name, (value, first_position) in self._values.items():
            position = _position(value)
            if position is None or position != first_position:
                Outages(f"{function} {name}").warn(
                    f"{function}: the first try used up the argument {name} ({_kind(value)})",
                    "the next one gets only the rest. Pass a list or a string, or open it inside the function.",
                )


def twice(value: Any) -> tuple[Any, Any]:
    """The value for the caller and for the judge, so that both can read it.

    Raises `TypeError`, whose text names the kind of value, if it can be read only once and cannot be copied.
    """
    if _is_lazy(value):
        one, other = itertools.tee(value)
        return (item for item in one), (item for item in other)
    kind: Any = value.__class__
    if kind in (list, tuple, dict) and any(True for _ in _read_once({"": value})):
        pairs = [twice(item) for item in (value.values() if kind is dict else value)]
        for_caller = [pair[0] for pair in pairs]
        for_judge = [pair[1] for pair in pairs]
        if kind is dict:
            return dict(zip(value, for_caller, strict=True)), dict(zip(value, for_judge, strict=True))
        return (for_caller, for_judge) if kind is list else (tuple(for_caller), tuple(for_judge))
    if _is_read_once(value) and not _can_seek(value):
        raise TypeError(_kind(value))
    return value, value


def position_restorer(value: Any) -> Callable[[], object]:
    """A function that puts a file back to its present position; for other values it does nothing."""
    file = _file(value)
    if file is not None and _can_seek(file):
        position = file.tell()
        return lambda: None if file.closed else file.seek(position)
    return lambda: None


def _read_once(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments, and the items of those that are short containers, that can be read only once, by name."""
    for name, value in arguments.items():
        if _is_read_once(value):
            yield repr(name), value
        if isinstance(value, (list, tuple, dict)) and len(cast("list[Any]", value)) <= SEARCHED_ITEMS:
            items = (
                cast("dict[Any, Any]", value).items()
                if isinstance(value, dict)
                else enumerate(cast("list[Any]", value))
            )
            yield from ((f"{name!r}[{key!r}]", item) for key, item in items if _is_read_once(item))


def _is_lazy(value: Any) -> bool:
    return isinstance(value, _LAZY) or (
        isinstance(value, Iterator) and type(cast(Any, value)).__module__ == "itertools"
    )


def _is_read_once(value: Any) -> bool:
    if (file := _file(value)) is not None:
        try:
            return not file.closed and file.readable()
        except Exception:
            return False
    return isinstance(value, (Iterator, AsyncIterator)) or inspect.isasyncgen(value)


def _file(value: Any) -> io.IOBase | None:
    """The open file that the value is or wraps, as `NamedTemporaryFile`, `os.popen`, uploads and codecs do."""
    if isinstance(value, io.IOBase):
        return value
    attributes = getattr(value, "__dict__", None)
    if not isinstance(attributes, dict) or not hasattr(value, "read"):
        return None
    wrapped = (cast("dict[str, Any]", attributes).get(name) for name in ("file", "_stream", "stream"))
    return next((file for file in wrapped if isinstance(file, io.IOBase)), None)


def _can_seek(value: Any) -> bool:
    try:
        return (file := _file(value)) is not None and file.seekable()
    except Exception:
        return False


def _position(value: Any) -> Any:
    """How far the value has been read; None if that is unknown."""
    try:
        if inspect.isgenerator(value):
            return None if inspect.getgeneratorstate(value) != inspect.GEN_CREATED else 0
        if (file := _file(value)) is not None:
            return file.tell()
        left = operator.length_hint(value, -1)
        return left if left >= 0 else None
    except Exception:
        return None


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
