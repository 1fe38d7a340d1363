"""Values that can be read only once: arguments that the first try used up, and results that the judge would use up."""

from __future__ import annotations

import inspect
import io
import itertools
import operator
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from types import GeneratorType
from typing import Any, cast

from mulligan.recording.outages import warn_once

FEW = 20
"""Items of a list, a tuple or a dict that are looked at."""
_LAZY = (GeneratorType, map, filter, zip, enumerate, reversed)
"""Iterators of the language that have no use but to be read, besides those of `itertools`."""


class Inputs:
    """The arguments of a call that can be read only once."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._once = {name: (one, _place(one)) for name, one in _parts(arguments) if _is_read_once(one)}

    def warn(self, function: str) -> None:
        """Names, once for each function, the arguments that a try has read."""
        for name, (value, before) in self._once.items():
            now = _place(value)
            if now is None or now != before:
                warn_once(
                    f"{function} {name}",
                    f"{function}: the first try used up the argument {name} ({_kind(value)})",
                    "the next one gets only the rest. Pass a list or a string, or open it inside the function.",
                )


def twice(value: Any) -> tuple[Any, Any]:
    """The value for the caller and for the judge, each of which may read it. Raises `TypeError`, which says what it is,
    for one that can be read only once and cannot be copied."""
    if _is_lazy(value):
        one, other = itertools.tee(value)
        return (item for item in one), (item for item in other)
    made: Any = value.__class__
    if made in (list, tuple, dict) and any(_is_read_once(item) for _, item in _parts({"": value})):
        pairs = [twice(item) for item in (value.values() if made is dict else value)]
        for_caller, for_judge = ([pair[n] for pair in pairs] for n in (0, 1))
        if made is dict:
            return dict(zip(value, for_caller, strict=True)), dict(zip(value, for_judge, strict=True))
        return (for_caller, for_judge) if made is list else (tuple(for_caller), tuple(for_judge))
    if _is_read_once(value) and not _can_go_back(value):
        raise TypeError(_kind(value))
    return value, value


def going_back(value: Any) -> Callable[[], object]:
    """What puts a file back to where it stands now; nothing for another value."""
    file = _file(value)
    if file is not None and _can_go_back(file):
        place = file.tell()
        return lambda: None if file.closed else file.seek(place)
    return lambda: None


def _parts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each argument and the items of short containers, by name."""
    for name, value in arguments.items():
        yield repr(name), value
        if isinstance(value, (list, tuple, dict)) and len(cast("list[Any]", value)) <= FEW:
            items = (
                cast("dict[Any, Any]", value).items()
                if isinstance(value, dict)
                else enumerate(cast("list[Any]", value))
            )
            yield from ((f"{name!r}[{key!r}]", item) for key, item in items)


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
    """The open file that the value is, or reads from: `NamedTemporaryFile`, `os.popen`, uploads and codecs wrap one."""
    if isinstance(value, io.IOBase):
        return value
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict) or not hasattr(value, "read"):
        return None
    inner = (cast("dict[str, Any]", held).get(name) for name in ("file", "_stream", "stream"))
    return next((one for one in inner if isinstance(one, io.IOBase)), None)


def _can_go_back(value: Any) -> bool:
    try:
        return (file := _file(value)) is not None and file.seekable()
    except Exception:
        return False


def _place(value: Any) -> Any:
    """How far the value has been read; None where it does not say."""
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
