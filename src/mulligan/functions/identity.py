"""Identifies functions and their arguments across processes, so that a call that was cut off is found again."""

from __future__ import annotations

import copyreg
import functools
import hashlib
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from mulligan.core.codec import json_text
from mulligan.core.errors import InvalidInput
from mulligan.core.records import Json

_PLAIN = (str, int, bool, type(None))
"""Types that JSON represents exactly. It does so for finite floats as well."""
_HEAP_TYPE = 1 << 9
"""The flag of classes that a program creates while it runs (Py_TPFLAGS_HEAPTYPE)."""
MAX_BYTES = 1 << 24
"""A larger value, such as an array, is not identified."""


def identity(value: Any) -> Json:
    """JSON that is the same for equal values in any process, and differs for different ones.

    A list and a tuple of the same items count as equal, and so do dicts that differ only in the order of their keys.
    Functions differ if their code differs, or a value that they hold: in a closure, as a default, as an argument of a
    `partial`, or in the object that they are a method of. Other objects differ by their class and attributes, or by
    what `pickle` would write.

    Raises `InvalidInput` for a value whose contents cannot be inspected, such as a lock.
    """
    try:
        return _identity(value, frozenset())
    except RecursionError:
        raise InvalidInput("a list that contains itself cannot be represented as JSON") from None


def name_of(function: Any) -> str:
    """The module and the name of a function; for another object, those of its class."""
    named = cast(Any, function if hasattr(function, "__qualname__") else type(function))
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}"


def _identity(value: Any, within: frozenset[int]) -> Json:
    """See `identity`. within: the ids of the objects that contain this value."""
    kind = cast(Any, type(value))
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if value - value == 0 else _tagged("float", repr(value))
    if kind in (list, tuple):
        return [_identity(item, within) for item in value]
    if kind is dict:
        return {"items": _items(value.items(), within)}
    if kind in (set, frozenset):
        return _tagged(kind.__name__, sorted((_identity(item, within) for item in value), key=_sort_key))
    if kind in (bytes, bytearray):
        return _tagged(kind.__name__, value.hex() if len(value) <= 64 else hashlib.sha256(value).hexdigest())
    if kind is ModuleType:
        return _tagged("module", value.__name__)
    if id(value) in within:  # the value contains itself
        return _tagged("within", name_of(value))
    inside = within | {id(value)}
    if isinstance(value, type):
        return _class(cast("type[Any]", value), inside)
    if isinstance(value, (MethodType, functools.partial)) or inspect.isroutine(value):
        return _function(value, inside)
    return _object(value, inside)


def _tagged(kind: str, of: Json, **more: Json) -> Json:
    """The identity of a value without a JSON form. A dict of the user's is written under "items", so it never looks
    like this one."""
    return {"is": kind, "of": of, **more}


def _items(items: Iterable[tuple[Any, Any]], within: frozenset[int]) -> list[Json]:
    return sorted(([_identity(key, within), _identity(value, within)] for key, value in items), key=_sort_key)


def _sort_key(value: Json) -> str:
    return json_text(value, canonical=True)


def _function(function: Any, within: frozenset[int]) -> Json:
    name = name_of(function)
    if isinstance(function, functools.partial):
        partial = cast("functools.partial[Any]", function)
        held = [_identity(part, within) for part in (partial.func, partial.args, partial.keywords, vars(partial))]
        return _tagged("partial", held)
    if isinstance(function, MethodType):
        return _tagged(name, [_identity(function.__self__, within), _identity(function.__func__, within)])
    if isinstance(function, FunctionType):
        cells = [_identity(_cell_value(cell), within) for cell in function.__closure__ or ()]
        attributes = {key: value for key, value in vars(function).items() if key != "__wrapped__"}
        held = [_identity(part, within) for part in (function.__defaults__, function.__kwdefaults__, attributes)]
        return _tagged(name, [*_code(function.__code__)], cells=cells, held=held)
    parts = [getattr(function, name, None) for name in ("__self__", "__wrapped__")]  # functools.cache sets them
    return _tagged(name, [_identity(None if isinstance(part, ModuleType) else part, within) for part in parts])


def _class(cls: type[Any], within: frozenset[int]) -> Json:
    """Identifies a class by its name and the code of its methods, but not by other attributes, which programs change.

    For a class that was defined inside a function, the values that its methods hold count as well.
    """
    if cls.__module__ in sys.stdlib_module_names:
        return _tagged("class", name_of(cls))
    functions = {name: value for name, value in vars(cls).items() if isinstance(value, FunctionType)}
    is_local = "<locals>" in cls.__qualname__
    methods = {
        name: _identity(function, within) if is_local else [*_code(function.__code__)]
        for name, function in functions.items()
    }
    bases: list[Json] = [_identity(base, within) for base in cls.__bases__ if base is not object]
    return _tagged("class", name_of(cls), methods={"items": [[*pair] for pair in methods.items()]}, bases=bases)


def _object(value: Any, within: frozenset[int]) -> Json:
    """Identifies an object by its class, its attributes, and what `pickle` would write."""
    cls = cast("type[Any]", type(value))
    if cls is object or getattr(value, "nbytes", 0) > MAX_BYTES:
        raise InvalidInput(f"{cls.__name__}: nothing identifies it")
    class_identity = _class(cls, within)
    if isinstance(value, Enum):
        return {"is": class_identity, "of": [value.name, _identity(value.value, within)]}
    if cls.__module__ in sys.stdlib_module_names:  # its attributes may be caches
        return {"is": class_identity, "of": _pickled(value, cls, within)}
    attributes = _identity(_attributes(value, cls), within)
    return {"is": class_identity, "has": attributes, "of": None if _is_open(cls) else _pickled(value, cls, within)}


def _is_open(cls: type[Any]) -> bool:
    """Whether the attributes of an object are its whole contents: no base class comes from the interpreter or a
    compiled module."""
    root = cls
    while root.__base__ not in (object, None):
        root = root.__base__
    names = vars(root)
    return bool(root.__flags__ & _HEAP_TYPE) and ("__slots__" in names or {"__dict__", "__weakref__"} <= names.keys())


def _pickled(value: Any, cls: type[Any], within: frozenset[int]) -> Json:
    """Identifies what `pickle` would write. Raises `InvalidInput` for an object that cannot be pickled."""
    try:
        reduce: Callable[[Any], Any] | None = copyreg.dispatch_table.get(cls)
        reduced: Any = reduce(value) if reduce is not None else value.__reduce_ex__(4)
    except Exception as error:
        raise InvalidInput(f"{cls.__name__} cannot be represented as JSON: {error}") from error
    if isinstance(reduced, str):  # the name of a global object
        return reduced
    function, args, state, items, pairs, *_ = (*reduced, None, None, None, None)
    item_list = _identity(None if items is None else list(items), within)
    pair_list: Json = None
    if pairs is not None:
        pair_list = _identity(list(pairs), within) if isinstance(value, OrderedDict) else _items(pairs, within)
    return [name_of(function), _identity(args, within), _identity(state, within), item_list, pair_list]


def _attributes(value: Any, cls: type[Any]) -> dict[str, Any]:
    """All attributes of an object except the values of cached properties, even if a pickle would leave them out."""
    names = set[str](getattr(value, "__dict__", ()))
    excluded = {"__dict__", "__weakref__"}
    for base in cls.__mro__:
        slots: Any = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            is_private = name.startswith("__") and not name.endswith("__")
            names.add(f"_{base.__name__.lstrip('_')}{name}" if is_private else name)
        excluded.update(name for name, of in vars(base).items() if isinstance(of, functools.cached_property))
    return {name: getattr(value, name) for name in sorted(names - excluded) if hasattr(value, name)}


def _cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is still empty
        return None


@lru_cache(maxsize=1000)
def _code(code: CodeType) -> tuple[Json, ...]:
    return code.co_code.hex(), list(code.co_names), [_constant(one) for one in code.co_consts]


def _constant(value: Any) -> Json:
    """A constant of the code, in a form that is the same in each process (the `repr` of a set is not)."""
    if isinstance(value, CodeType):
        return list(_code(value))
    if isinstance(value, tuple):
        return [_constant(item) for item in cast("tuple[Any, ...]", value)]
    if isinstance(value, frozenset):
        return sorted(repr(item) for item in cast("frozenset[Any]", value))
    return repr(value)
